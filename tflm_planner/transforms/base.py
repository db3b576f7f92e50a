"""Transforms: a transform is a frozen dataclass whose fields are its options.

A transform decides what is legal; the search chooses which transforms run and where. A transform
changes the model through `model.edit` and `model.draft` alone, and returns notes: what it did, or
why it did not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from tflm_planner.model.check import check
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.ops import has_side_effects


class Transform(Protocol):
    """One rewrite of a model."""

    def apply(self, model: Model) -> list[str]:
        """Change `model` in place. Returns notes for the report, or an empty list."""
        ...


def run(model: Model, *transforms: Transform) -> list[str]:
    """Apply transforms in order, with the model checked before the first and after each."""
    check(model)
    notes: list[str] = []
    for one in transforms:
        notes += one.apply(model)
        check(model)
    return notes


class TransformRefusedError(Exception):
    """The reason why a transform leaves a region unchanged. `prefix` begins the note."""

    prefix: ClassVar[str] = "not changed"


class RegionRewrite(Protocol):
    """Operators, given by their positions in the main graph, and how to rewrite them."""

    @property
    def ops(self) -> tuple[int, ...]:
        """Positions before anything was changed."""
        ...


R = TypeVar("R", bound=RegionRewrite)


@dataclass(frozen=True)
class RegionResult(Generic[R]):
    """The outcome for one region. note: for the report. refusal: why it was left unchanged; None if
    it was rewritten."""

    region: R
    note: str
    refusal: TransformRefusedError | None = None


def apply_regions(
    model: Model,
    regions: Sequence[R],
    rewrite: Callable[[R, list[Op]], str],
) -> list[RegionResult[R]]:
    """Rewrite regions one by one. All positions refer to the model before the first rewrite.
    Returns one result for each region, in their order. rewrite: rewrites a region and returns a
    note. A region is refused if it shares an operator with an earlier one, or would change the
    order of side effects."""
    ops_before = list(model.main.ops)
    results: list[RegionResult[R]] = []
    rewritten: set[Op] = set()
    for region, ops in [(r, [ops_before[i] for i in sorted(set(r.ops))]) for r in regions]:
        try:
            if any(op in rewritten for op in ops):
                raise TransformRefusedError("regions share an operator")
            if _reorders_effects(model.main.ops, ops):
                raise TransformRefusedError(
                    "operators with side effects among it would change their order"
                )
            results.append(RegionResult(region, rewrite(region, ops)))
            rewritten |= set(ops)
        except TransformRefusedError as error:
            results.append(RegionResult(region, f"{error.prefix}: {error}", error))
    return results


def _reorders_effects(ops: Sequence[Op], region: Sequence[Op]) -> bool:
    """Whether running the region as one would swap two operators with side effects: the first one
    must wait for the region because it reads its results, and the second one need not."""
    left = set(region)
    late: set[Tensor] = set()
    waits = False
    for op in ops:
        if not left:
            return False
        if op in left:
            left.remove(op)
            late |= set(op.outputs)
            continue
        is_late = any(t in late for t in op.operands())
        late |= set(op.outputs) if is_late else set()
        if has_side_effects(op):
            if waits and not is_late:
                return True
            waits = waits or is_late
    return False
