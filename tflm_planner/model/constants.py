"""Reading the values of small constants (axes, paddings, permutations)."""

from __future__ import annotations

import numpy as np

from tflm_planner.model.ir import Tensor


def integers(tensor: Tensor | None) -> list[int] | None:
    """The values of a constant integer tensor; None when it is not one."""
    if tensor is None:
        return None
    dtype = {"int32": "<i4", "int64": "<i8"}.get(tensor.type_name)
    if dtype is None or not tensor.is_constant or tensor.buffer.data is None:
        return None
    data = tensor.buffer.data[: tensor.nbytes].tobytes()
    return [int(v) for v in np.frombuffer(data, dtype)]
