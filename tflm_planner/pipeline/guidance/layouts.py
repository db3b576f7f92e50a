"""Says which inputs come with their channels first, as PyTorch's converter leaves them.

    x (1, 3, 64, 64) --TRANSPOSE--> (1, 64, 64, 3) --CONV_2D--

The input lies in both layouts until it is turned, or its tiles are.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Model, Op, Tensor

_CHANNELS_LAST = [0, 2, 3, 1]


def channels_first_notes(model: Model) -> Iterator[str]:
    """Yield a note for each input of images that operators turn first."""
    for tensor in model.main.inputs:
        if any(map(_turns, _first_readers(tensor))):
            yield (
                f"the input {tensor.name!r} has its channels first, and TRANSPOSE turns its "
                f"{tensor.nbytes:,} B: a model that is exported with its channels last, as cameras "
                "give them, does without (litert_torch.to_channel_last_io(model, args=[0]))"
            )


def _first_readers(tensor: Tensor) -> list[Op]:
    """The operators that read an input, behind a QUANTIZE."""
    quantised = [op for op in tensor.consumers if op.kind == "QUANTIZE"]
    return [*tensor.consumers, *(reader for op in quantised for reader in op.outputs[0].consumers)]


def _turns(op: Op) -> bool:
    return op.kind == "TRANSPOSE" and integers(op.inputs[-1]) == _CHANNELS_LAST
