"""Tensors that hold the same bytes: views, and the pairs of them that may share memory while both
are needed.

    X      |aaaabbbbccccdddd|      A = X[0:8], B = X[4:12]: each lies in X, so where two of
    A      |aaaabbbb|              them overlap in X they hold the same bytes, and at these very
    B          |bbbbcccc|          distances writing one of them changes nothing in the other.

It is enough to look at pairs: whatever else would write these bytes (a result over a view that
dies, for example) needs a permission of its own against *every* tensor that is live and lies
there, and X, A and B are tensors of the problem like all others. Two tensors are compared through
a tensor that contains both; through one that contains only part of each they would not be equal.
It knows tensors and operators; it must not know offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tflm_planner.ir import Op, Tensor
from tflm_planner.ops import Sharing, sharings
from tflm_planner.units import ALIGNMENT


@dataclass(frozen=True, slots=True)
class EqualPair:
    """`first` and `second` hold the same bytes where they overlap when `second` starts
    `distance` bytes above `first`."""

    first: Tensor
    second: Tensor
    distance: int


def copies(op: Op) -> Iterator[Sharing]:
    """The sharings of an operator that are views at multiples of 16 bytes."""
    return (s for s in sharings(op) if s.same_bytes and s.distance % ALIGNMENT == 0)


def equal_tensors(ops: Iterable[Op]) -> Iterator[EqualPair]:
    """All pairs that overlap inside a tensor that contains both, through views of `ops`."""
    wholes: dict[int, list[tuple[Tensor, int]]] = {}
    tensors: dict[int, Tensor] = {}
    for op in ops:
        for s in copies(op):
            tensors |= {id(s.operand): s.operand, id(s.result): s.result}
            if 0 <= s.distance <= s.operand.nbytes - s.result.nbytes:
                wholes.setdefault(id(s.result), []).append((s.operand, s.distance))
            if 0 <= -s.distance <= s.result.nbytes - s.operand.nbytes:
                wholes.setdefault(id(s.operand), []).append((s.result, -s.distance))
    members: dict[int, list[tuple[Tensor, int]]] = {}
    for tensor in tensors.values():
        for whole, offset in _containers(tensor, wholes):
            members.setdefault(id(whole), []).append((tensor, offset))
    seen: set[tuple[int, int, int]] = set()
    for inside in members.values():
        inside.sort(key=lambda m: m[1])
        for k, (a, low) in enumerate(inside):
            for b, high in inside[k + 1 :]:
                if high >= low + a.nbytes:
                    break
                key = (id(a), id(b), high - low)
                if a is not b and key not in seen:
                    seen |= {key, (id(b), id(a), low - high)}
                    yield EqualPair(a, b, high - low)


def _containers(
    tensor: Tensor, wholes: dict[int, list[tuple[Tensor, int]]]
) -> list[tuple[Tensor, int]]:
    """Tensors that contain `tensor`, itself first, each with the offset of `tensor` in it."""
    found = [(tensor, 0)]
    seen = {(id(tensor), 0)}
    for inner, offset in found:
        for whole, more in wholes.get(id(inner), ()):
            if (id(whole), offset + more) not in seen:
                seen.add((id(whole), offset + more))
                found.append((whole, offset + more))
    return found
