"""What kernels ask of an operator's operands: types, dimensions, sizes of copies of shapes."""

from __future__ import annotations

from tflm_planner.model.ir import Op, Tensor


def element_type(op: Op, index: int = 0) -> str:
    """Name of an input's element type; empty if there is no such input."""
    tensor = op.inputs[index] if index < len(op.inputs) else None
    return "" if tensor is None else tensor.type_name


def dimension(tensor: Tensor, axis: int) -> int:
    """Size along an axis; 0 if there is no such axis."""
    shape = tensor.shape or ()
    return shape[axis] if -len(shape) <= axis < len(shape) else 0


def dims_bytes(tensor: Tensor) -> int:
    """Bytes of a TfLiteIntArray that holds the tensor's shape."""
    return 4 + 4 * len(tensor.shape or ())
