"""What a search tried with each operator: the smallest model in which it lies in a region.

    operators   0   1   2   3   4
    tried           |--- tiles -|      84,112 B, +7.3 %
                |---loop|              90,020 B, +1.0 %     -> of operator 1: 84,112 B, +7.3 %

It says nothing of models that were not evaluated. It must not know how they are made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from tflm_planner.model.ir import Op
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.axes import axis_map
from tflm_planner.tiling.tilings import Tiling, Trial

_HAS_SIDE_EFFECTS = "it has side effects or unknown meaning, so that it stays whole"
_HAS_NO_AXIS = "no axis is known along which parts of its result can be computed"

_Figures = tuple[bool, int, float]
"""(whether it is too slow, bytes, slowdown) of a model: the smaller is the better."""


def trials_of(
    ops: Sequence[Op],
    fast_enough: Iterable[Tiling],
    slower: Iterable[Tiling],
    promising: Collection[int] | None = None,
    *,
    all_estimated: bool = False,
) -> tuple[Trial, ...]:
    """The trials of the operators, in their order. ops: those to which the tilings refer.
    fast_enough, slower: all tilings that were evaluated. promising: positions of the operators in
    regions that may help by an estimate. all_estimated: whether no such region is left out."""
    least: dict[int, _Figures] = {}
    for is_slow, tilings in ((False, fast_enough), (True, slower)):
        for tiling in tilings:
            figures = is_slow, tiling.bytes, tiling.slowdown
            for position in {p for region in tiling.regions for p in region.ops}:
                least[position] = min(least.get(position, figures), figures)
    otherwise = False if all_estimated else None
    return tuple(
        _trial(op, least.get(p), True if p in (promising or ()) else otherwise)
        for p, op in enumerate(ops)
    )


def better_trials(first: Sequence[Trial], second: Sequence[Trial]) -> tuple[Trial, ...]:
    """The better trial of each operator, of two searches of the same model."""
    return tuple(_better(*pair) for pair in zip(first, second, strict=True))


def why_whole(op: Op) -> str:
    """Why an operator can only run as a whole; "" if it need not."""
    if has_side_effects(op):
        return _HAS_SIDE_EFFECTS
    return "" if axis_map(op).links else _HAS_NO_AXIS


def _trial(op: Op, least: _Figures | None, promising: bool | None) -> Trial:
    named = Trial(op.outputs[0].name if op.outputs else "", why_whole(op), promising=promising)
    if least is None:
        return named
    is_slow, size, slowdown = least
    return replace(named, bytes=size, slowdown=slowdown, fast_enough=not is_slow)


def _better(first: Trial, second: Trial) -> Trial:
    either = {first.promising, second.promising}
    promising = True if True in either else None if None in either else False
    return replace(min(first, second, key=_rank), promising=promising)


def _rank(trial: Trial) -> tuple[bool, _Figures]:
    return trial.bytes is None, (not trial.fast_enough, trial.bytes or 0, trial.slowdown or 0.0)
