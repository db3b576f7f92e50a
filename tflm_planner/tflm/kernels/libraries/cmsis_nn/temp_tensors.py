"""Which tensors the Prepare of a CMSIS-NN kernel fetches, where it is not as in the reference.

Read from the Prepare functions of tflite-micro 90b983c, tensorflow/lite/micro/kernels/cmsis_nn.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels.libraries.reference.temp_tensors import named_tensors, temp_tensors

_CONVOLUTION = "i0 i1 o0 i0 i1 i2 o0"
_FETCHED = {
    "CONV_2D": _CONVOLUTION,
    "DEPTHWISE_CONV_2D": _CONVOLUTION,
    "AVERAGE_POOL_2D": "i0 o0 i0 o0",
}


def own_temp_tensors(op: Op) -> list[Tensor]:
    """The tensors that Prepare fetches, in order; one that is fetched twice is there twice."""
    sequence = _FETCHED.get(op.kind)
    return temp_tensors(op) if sequence is None else named_tensors(op, sequence)
