"""Reads the numbers of constants (axes, paddings, permutations, weights); packs and unpacks int4.

int4   byte 0 = element 1 << 4 | element 0,  byte 1 = element 3 << 4 | element 2,  ...
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from tflm_planner.model.ir import Tensor
from tflm_planner.support.deferred import defer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = defer("numpy")

NUMPY_CODES = {
    "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4",
    "int64": "i8", "uint64": "u8", "float16": "f2", "float32": "f4", "float64": "f8", "bool": "?",
    "int4": "i1",
}  # fmt: skip
"""Types -> how numpy calls the type of their numbers."""


def integers(tensor: Tensor | None) -> list[int] | None:
    """The values of a constant integer tensor; None if the tensor is not one."""
    if tensor is None:
        return None
    form = {"int32": "i", "int64": "q"}.get(tensor.type_name)
    if form is None or not tensor.is_constant or tensor.buffer.data is None:
        return None
    data = tensor.buffer.data[: tensor.nbytes].tobytes()
    return list(struct.unpack(f"<{len(data) // struct.calcsize(f'<{form}')}{form}", data))


def numbers_of(tensor: Tensor) -> npt.NDArray[Any] | None:
    """The numbers of a constant in its shape, each of int4 as a byte; None if they are not in the
    file, or of a type that has none."""
    data, code = tensor.buffer.data, NUMPY_CODES.get(tensor.type_name)
    if tensor.is_sparse or tensor.external_data or data is None or code is None:
        return None
    if data.size < tensor.nbytes:
        return None
    raw, shape = np.ascontiguousarray(data[: tensor.nbytes], np.uint8), tensor.shape or ()
    if tensor.type_name == "int4":
        return unpack_int4(raw, shape)
    numbers = raw.view(np.dtype(code).newbyteorder("<")).reshape(shape)
    return numbers.astype(code, copy=False)  # where types agree, these are the bytes of the file


def unpack_int4(data: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> npt.NDArray[np.int8]:
    """The elements of a tensor with four bits per element, one element per byte."""
    count = int(np.prod(shape, dtype=np.int64))
    halves = np.stack([data & 15, data >> 4], -1).reshape(-1)[:count].astype(np.int8)
    return np.where(halves > 7, halves - 16, halves).astype(np.int8).reshape(shape)


def pack_int4(values: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """The packed bytes of int4 elements. The last half byte is 0 if their number is odd."""
    flat = (values.reshape(-1) & 15).astype(np.uint8)
    even = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    return (even[::2] | even[1::2] << 4).astype(np.uint8)
