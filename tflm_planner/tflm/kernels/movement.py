"""How a kernel moves the data of one operand: what `KernelBuild.movements_of` answers with.

The forms that TFLM's kernels have are in `data_movement` and `row_movements`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflm_planner.model.ir import Tensor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Movement:
    """How an operator moves the data of one operand: all distances from `least` bytes on are safe,
    whatever the distances from other operands; also those at which the result starts at least
    `beyond` bytes above the operand, if that is given.

    times: computes the time of the last read of each byte of `operand` (-1 if it is not read), and
    of the first write of each byte of `result` (on demand, because the bounds do not need them).
    """

    operand: Tensor
    result: Tensor
    least: int
    times: Callable[[], tuple[Times, Times]]
    beyond: int | None = None
