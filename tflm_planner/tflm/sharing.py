"""The memory that a placed model really shares, and the replay of overlaps that only its target
permits.

`validate` checks a plan against the contracts, which are closed forms; the replay goes through the
reads and writes of the target's kernels and checks that no byte is lost. The two use the same table
of which kernel runs, but no common arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.options import BODY, CONDITION
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.tflm.aliases import copies
from tflm_planner.tflm.kernels.contracts import replay_safe
from tflm_planner.tflm.liveness import (
    Timeline,
    equal_pairs,
    legal_in_place,
    legal_input_overlaps,
    loop_pairs,
    planned_bytes,
)
from tflm_planner.tflm.target_kernels import TargetKernels


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """`result` and `operand` of `op` overlap. below: bytes by which the result starts below the
    operand; negative: above."""

    op: Op
    operand: Tensor
    result: Tensor
    below: int

    def __str__(self) -> str:
        if self.below == 0:
            return f"{self.result.name} in {self.operand.name}"
        where = "below" if self.below > 0 else "into"
        return f"{self.result.name} {abs(self.below)} bytes {where} {self.operand.name}"


def taken_aliases(timeline: Timeline, offsets: dict[Tensor, int]) -> Iterator[SharedMemory]:
    """The aliases that these offsets (tensor -> bytes) use."""
    views = (s for op in timeline.ops if op in timeline.scopes for s in copies(op))
    planned = (s for s in views if s.operand in timeline.spans and s.result in timeline.spans)
    candidates = {
        (s.operand, s.result, s.distance): s for s in (*legal_in_place(timeline), *planned)
    }
    for s in candidates.values():
        shared = _overlap_of(s.operand, s.result, offsets)
        if shared is not None and shared.below == -s.distance:  # distance counts upwards
            yield shared


def sharing_texts(timeline: Timeline, offsets: dict[Tensor, int]) -> tuple[str, ...]:
    """All memory, in words for reports, that is shared because bytes are equal or no longer needed,
    whatever the kernels do."""
    return (*map(str, taken_aliases(timeline, offsets)), *taken_variables(timeline, offsets))


def taken_variables(timeline: Timeline, offsets: Mapping[Tensor, int]) -> list[str]:
    """In words: the variables of loops and branches of which several tensors (operand, result,
    inputs and outputs of the graphs that run; see `tflm.control_flow`) lie in the same place."""
    places: dict[Tensor, tuple[Tensor, ...]] = {}
    for pair in loop_pairs(timeline):
        if offsets[pair[0]] == offsets[pair[1]]:
            together = tuple(
                dict.fromkeys(t for tensor in pair for t in places.get(tensor, (tensor,)))
            )
            places |= dict.fromkeys(together, together)
    variables = (", ".join(t.name for t in tensors) for tensors in dict.fromkeys(places.values()))
    return [f"a loop's variable in one place: {tensors}" for tensors in variables]


def taken_input_overlaps(
    timeline: Timeline, offsets: dict[Tensor, int], kernels: TargetKernels
) -> Iterator[SharedMemory]:
    """The results that overlap an operand in a way that only the target's contracts permit: neither
    where every library allows it, nor where both hold the same bytes."""
    aliases = {(s.operand, s.result) for s in taken_aliases(timeline, offsets)}
    for pair in equal_pairs(timeline):
        if offsets[pair.second] - offsets[pair.first] == pair.distance:
            aliases |= {(pair.first, pair.second), (pair.second, pair.first)}
    for t in legal_input_overlaps(timeline, kernels.input_overlaps_of):
        shared = _overlap_of(t.operand, t.result, offsets)
        if shared is not None and (t.operand, t.result) not in aliases:
            yield shared


def replay_all(input_overlaps: list[SharedMemory], kernels: TargetKernels) -> int:
    """Replay every overlap on every kernel build that the target may have; returns the number of
    overlaps.

    Raises UnsoundPlanError for an overlap that loses a byte: the contract that permitted it is
    wrong.
    """
    for shared in input_overlaps:
        for build in kernels.builds:
            if not replay_safe(shared.op, shared.operand, build, shared.below):
                raise UnsoundPlanError(
                    f"{shared.op.label}: {shared} loses bytes with {build.name} kernels; "
                    "please report it, and plan with --no-overlap until it is mended"
                )
    return len(input_overlaps)


def _overlap_of(operand: Tensor, result: Tensor, offsets: dict[Tensor, int]) -> SharedMemory | None:
    """The pair as `SharedMemory` if their actual bytes overlap, else None."""
    below = offsets[operand] - offsets[result]
    overlap = -planned_bytes(operand) < below < planned_bytes(result)
    assert result.producer is not None
    return SharedMemory(result.producer, operand, result, below) if overlap else None


@dataclass(frozen=True, slots=True)
class RemainingCopies:
    """The copies that still have to be made with a plan. offsets: tensor -> bytes. skips: whether a
    WHILE of the target's TFLM skips copies of a tensor onto itself (`versions`: "skips_copies")."""

    offsets: Mapping[Tensor, int]
    skips: bool

    def in_place(self, op: Op) -> bool:
        """Whether the first result lies on the first operand, so that a kernel that only copies
        one to the other does nothing."""
        return bool(op.inputs and op.outputs) and self._is_in_place(op.inputs[0], op.outputs[0])

    def turn_bytes(self, op: Op) -> float:
        """Bytes of the variables that one turn of a WHILE copies: from body to caller, from caller
        to condition and from caller to body, each of which counts one third."""
        condition, body = (op.graphs.get(name, []) for name in (CONDITION, BODY))
        moved = 0.0
        if len(condition) == 1 and len(body) == 1:
            variables = zip(
                op.outputs, condition[0].inputs, body[0].inputs, body[0].outputs, strict=False
            )
            for result, *others in variables:
                copied = (not self.skips or not self._is_in_place(t, result) for t in others)
                moved += result.nbytes * sum(copied) / 3
        return moved

    def _is_in_place(self, a: Tensor | None, b: Tensor) -> bool:
        place = None if a is None else self.offsets.get(a)
        return place is not None and place == self.offsets.get(b)
