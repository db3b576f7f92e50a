"""Tensors that contain the same bytes (views), and which pairs of them may share memory while both
are needed.

    X      |aaaabbbbccccdddd|      A = X[0:8], B = X[4:12]: each lies in X. Where two of them
    A      |aaaabbbb|              overlap in X they contain the same bytes, so at exactly these
    B          |bbbbcccc|          distances writing one of them changes nothing in the other.

It is enough to check pairs. Any other operator that would write these bytes (for example, a result
that is placed over a view that dies) needs a permission against *every* tensor that is live there,
and X, A and B are tensors of the problem like all others. Two tensors count as equal only inside a
tensor that contains both; a tensor that contains a part of each proves nothing about the rest. It
knows tensors and operators; it must not know offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops import Sharing, sharings
from tflm_planner.support.units import ALIGNMENT, align_up


@dataclass(frozen=True, slots=True)
class EqualPair:
    """Where `first` and `second` overlap, they contain the same bytes if `second` starts `distance`
    bytes above `first`."""

    first: Tensor
    second: Tensor
    distance: int


def copies(op: Op) -> Iterator[Sharing]:
    """The sharings of an operator that are views at multiples of 16 bytes."""
    return filter(is_view, sharings(op))


_Piece = tuple[Tensor, int]
"""A tensor, and the offset in it at which a piece starts."""


def is_view(sharing: Sharing) -> bool:
    """Whether a sharing contains the same bytes, at a multiple of 16 bytes."""
    return sharing.same_bytes and sharing.distance % ALIGNMENT == 0


def equal_tensors(ops: Iterable[Op]) -> Iterator[EqualPair]:
    """All pairs that, through views made by `ops`, overlap inside a tensor that contains both."""
    wholes: dict[Tensor, list[tuple[Tensor, int]]] = {}
    tensors: dict[Tensor, None] = {}
    for op in ops:
        for s in copies(op):
            tensors |= {s.operand: None, s.result: None}
            if 0 <= s.distance <= s.operand.nbytes - s.result.nbytes:
                wholes.setdefault(s.result, []).append((s.operand, s.distance))
            if 0 <= -s.distance <= s.result.nbytes - s.operand.nbytes:
                wholes.setdefault(s.operand, []).append((s.result, -s.distance))
    members: dict[Tensor, list[tuple[Tensor, int]]] = {}
    for tensor in tensors:
        for container, offset in _containers(tensor, wholes):
            members.setdefault(container, []).append((tensor, offset))
    yielded: set[tuple[Tensor, Tensor, int]] = set()
    for inside in members.values():
        inside.sort(key=lambda m: m[1])
        for k, (a, low) in enumerate(inside):
            for b, high in inside[k + 1 :]:
                if high >= low + a.nbytes:
                    break
                key = (a, b, high - low)
                if a is not b and key not in yielded:
                    yielded |= {key, (b, a, low - high)}
                    yield EqualPair(a, b, high - low)


def _containers(
    tensor: Tensor, wholes: dict[Tensor, list[tuple[Tensor, int]]]
) -> list[tuple[Tensor, int]]:
    """Tensors that contain `tensor`, itself first, each with the offset of `tensor` in it."""
    containers = [(tensor, 0)]
    reached = {(tensor, 0)}
    for inner, offset in containers:
        for container, inner_offset in wholes.get(inner, ()):
            if (container, offset + inner_offset) not in reached:
                reached.add((container, offset + inner_offset))
                containers.append((container, offset + inner_offset))
    return containers


@dataclass(frozen=True, slots=True)
class ByteClasses:
    """Classes of bytes: bytes that are equal in several tensors belong to one class, counted once.

    sizes: bytes of each class, multiples of 16. of: tensor -> its classes, without duplicates.
    """

    sizes: tuple[int, ...]
    of: dict[Tensor, tuple[int, ...]]


def classes_of(tensors: Sequence[tuple[Tensor, int]], views: Iterable[Sharing]) -> ByteClasses:
    """The classes of `tensors`, each given with its planned bytes (> 0), that result from these
    views.

    Every tensor is cut wherever a view of it starts or ends; equal pieces form one class.
    """
    size = {t: align_up(n) for t, n in tensors}
    links = [
        (s.operand, s.result, s.distance) for s in views if s.operand in size and s.result in size
    ]
    if not links:
        return ByteClasses(tuple(size.values()), {key: (i,) for i, key in enumerate(size)})
    cuts = _cuts(size, links)
    joint: dict[_Piece, _Piece] = {}

    def root(piece: _Piece) -> _Piece:
        while (above := joint.get(piece, piece)) != piece:
            joint[piece] = joint.get(above, above)
            piece = above
        return piece

    for a, b, distance in links:
        for start in cuts[b]:
            if start + distance in cuts[a] and start < size[b] and start + distance < size[a]:
                joint[root((b, start))] = root((a, start + distance))
    number: dict[_Piece, int] = {}
    sizes: list[int] = []
    classes_by_tensor: dict[Tensor, tuple[int, ...]] = {}
    for t, _ in tensors:
        edges = sorted(cuts[t])
        classes: list[int] = []
        for low, high in pairwise(edges):
            key = root((t, low))
            if key not in number:
                number[key] = len(sizes)
                sizes.append(high - low)
            sizes[number[key]] = min(sizes[number[key]], high - low)
            classes.append(number[key])
        classes_by_tensor[t] = tuple(dict.fromkeys(classes))
    return ByteClasses(tuple(sizes), classes_by_tensor)


def _cuts(
    size: dict[Tensor, int], links: list[tuple[Tensor, Tensor, int]]
) -> dict[Tensor, set[int]]:
    """Where each tensor is cut: at its own ends, at the ends of its views, and wherever a view of
    it is cut."""
    cuts = {key: {0, n} for key, n in size.items()}
    near: dict[Tensor, list[tuple[Tensor, int]]] = {}
    for a, b, distance in links:
        near.setdefault(a, []).append((b, -distance))
        near.setdefault(b, []).append((a, distance))
    work = [(key, place) for key in near for place in (0, size[key])]
    while work:
        key, place = work.pop()
        for other, shift in near.get(key, ()):
            other_place = place + shift
            if 0 <= other_place <= size[other] and other_place not in cuts[other]:
                cuts[other].add(other_place)
                work.append((other, other_place))
    return cuts
