"""Where a kernel library permits a result to overlap its operand, beyond what every library
permits.

TFLM does not check this: a result that overwrites an operand before it is read corrupts data
silently. So the result of an operator may share memory with its data operand only where the order
of reads and writes of the *target's* kernels permits it; the reference kernels and CMSIS-NN differ,
and so do the builds of CMSIS-NN. What holds in every library (exact aliases) is in `ops`; this
package has the rest:

    exact in place         `ops.sharings`: element-wise operators, views
    overlap from D on      convolutions, pools, FULLY_CONNECTED over rows, resized images, PAD,
                           GATHER, CONCATENATION, element-wise operators, QUANTIZE, DEQUANTIZE and
                           CAST from one type to another: the result starts at least D bytes below
                           an operand (D may be 0)
    disjoint only          everything that is not yielded

The contracts hold for kernels that are built as their projects build them. They are void for a
build that promises the compiler disjoint memory (CMSIS-NN's OPTIONAL_RESTRICT_KEYWORD set to
__restrict).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tflm_planner.memory.problem import UNBOUNDED
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.window import WINDOWS, window_of
from tflm_planner.support.units import ALIGNMENT, align_up
from tflm_planner.tflm.kernels.base import KernelBuild
from tflm_planner.tflm.kernels.contracts.bounds import Bound, bound
from tflm_planner.tflm.kernels.contracts.replay import AccessReplay, replay_of, replay_safe, replays
from tflm_planner.tflm.kernels.data_movement import READ_ONCE
from tflm_planner.tflm.kernels.row_movements import READ_AGAIN

__all__ = [
    "OVERLAPPING",
    "AccessReplay",
    "Bound",
    "InputOverlap",
    "bound",
    "exact_bound",
    "input_overlap_contract",
    "replay_of",
    "replay_safe",
    "replays",
]  # fmt: skip

OVERLAPPING = WINDOWS | READ_ONCE | READ_AGAIN
"""Kinds of operators for which a target's contracts are computed."""


_MOST_PIXELS = 1 << 22
"""Results with more pixels share no memory with an operand: replaying them takes gigabytes and
minutes, and no microcontroller could hold them."""
_MOST_BYTES = 1 << 24
"""The same limit for the bytes of operands and result together: a replay stores a time for each
byte."""


@dataclass(frozen=True, slots=True)
class InputOverlap:
    """A permission: while both live, `result` may share memory with its dying `operand` if
    `low <= below <= high`, where `below = offset(operand) - offset(result)` is the number of bytes
    by which the result starts below the operand. `low` is a multiple of 16.

    `high` is UNBOUNDED if every `below` from `low` on is safe. `low == high` if only one is given:
    some kernels are safe only at multiples of some size, and `low` is the smallest one that is also
    a multiple of 16. At distances larger than the tensors nothing is shared.
    """

    operand: Tensor
    result: Tensor
    low: int
    high: int


def input_overlap_contract(op: Op, *builds: KernelBuild) -> Iterator[InputOverlap]:
    """What all of `builds` permit for `op`; pass all of `kernels.known_builds` for a plan that must
    run on any of them.

    Yields nothing for a build whose kernels nobody has read, for operators whose kernels are not
    known, and if the two tensors do not overlap even at the smallest safe distance.
    """
    permitted = [_permitted_by(build, op) for build in builds]
    for operand in permitted[0] if permitted else ():
        by_build = [p[operand] for p in permitted if operand in p]
        if len(by_build) == len(permitted):
            yield from _common(operand, op.outputs[0], by_build)


class _Permission(NamedTuple):
    """What one build permits for one operand: the result may start at least `low` and at most
    `high` bytes below it, or at least `above` bytes above it (None: nowhere above)."""

    low: int
    high: int
    above: int | None = None


def _permitted_by(build: KernelBuild, op: Op) -> dict[Tensor, _Permission]:
    """What one build permits, for each operand of which its order is known."""
    if sum(t.nbytes for t in (*op.operands(), *op.outputs)) > _MOST_BYTES:
        return {}
    movements = build.movements_of(op)
    if movements:
        return {
            m.operand: _Permission(
                -(-m.least // ALIGNMENT) * ALIGNMENT,  # rounded up, also if it is negative
                UNBOUNDED,
                None if m.beyond is None else align_up(m.beyond),
            )
            for m in movements
        }
    window_bound, data = exact_bound(op, build), op.inputs[0] if op.inputs else None
    if window_bound is None or data is None:
        return {}
    low = window_bound.first_aligned()
    return {data: _Permission(low, UNBOUNDED if window_bound.step == 1 else low)}


def _common(
    operand: Tensor, result: Tensor, by_build: Sequence[_Permission]
) -> Iterator[InputOverlap]:
    """What all builds permit for one operand."""
    low, high = max(p.low for p in by_build), min(p.high for p in by_build)
    if low > high:  # also for two different exact distances
        return
    if low < align_up(result.nbytes):
        yield InputOverlap(operand, result, low, high)
    above = [p.above for p in by_build if p.above is not None]
    if len(above) == len(by_build) and max(above) < operand.nbytes:
        yield InputOverlap(operand, result, -align_up(operand.nbytes), -max(above))


def exact_bound(op: Op, build: KernelBuild) -> Bound | None:
    """The contract of a sliding window before alignment, in bytes; None if only disjoint memory is
    safe."""
    window = window_of(op)
    if window is None or window.batch * window.output[0] * window.output[1] > _MOST_PIXELS:
        return None
    kernels = build.access_orders(op, window)
    if not kernels:
        return None
    common = Bound(0, 1)
    for order in kernels:
        order_bound = bound(window, order)
        if order_bound is None:
            return None
        common = common.intersect(order_bound)
    return common
