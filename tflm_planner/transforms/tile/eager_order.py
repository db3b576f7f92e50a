"""Orders the operators of tiles so that few bytes are live between their making and their use.

    lazily    a - A1    b           c - B1 A2    A2 is requested two tiles before B1: b stays live
    eagerly   a - A1    b - B1 A2   c ...

It knows operators and the bytes of tensors; it must not know boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.support.units import align_up


def eager_order(ops: Sequence[Op]) -> list[Op]:
    """The operators in the order in which they were requested, but each moved forward to where all
    its operands exist. Rows that branches of different depth read then die at once, and the results
    of these branches, which are usually smaller, stay live instead. Operators that read only inputs
    of the region are not moved. If a tensor is larger than all results of its readers together, its
    readers follow one another."""
    run = _Run(ops)
    for first in ops:
        todo = [first]
        while todo:
            op = todo.pop()
            if not run.is_done(op):
                ready = run.put(op)
                while more := run.ending(op):
                    for other in more:
                        ready += run.put(other)
                todo += reversed(ready)
    return run.order


class _Run:
    """Which operators have run so far, and which can run."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.order: list[Op] = []
        self._done: set[Op] = set()
        results = {t for op in ops for t in op.outputs}
        self._reads = {op: dict.fromkeys(t for t in op.operands() if t in results) for op in ops}
        self._left = {key: len(tensors) for key, tensors in self._reads.items()}
        self._readers: dict[Tensor, list[Op]] = {}
        for op in ops:
            for t in self._reads[op]:
                self._readers.setdefault(t, []).append(op)
        # For each tensor: readers not yet run, how many of them can run, bytes of their results.
        self._unread = {t: len(readers) for t, readers in self._readers.items()}
        self._ready = dict.fromkeys(self._readers, 0)
        self._result_bytes = {
            t: sum(map(_result_bytes, readers)) for t, readers in self._readers.items()
        }

    def is_done(self, op: Op) -> bool:
        """Whether an operator has run."""
        return op in self._done

    def put(self, op: Op) -> list[Op]:
        """Run an operator. Returns the operators that this makes ready."""
        self._done.add(op)
        self.order.append(op)
        for t in self._reads[op]:
            self._unread[t] -= 1
            self._ready[t] -= 1
            self._result_bytes[t] -= _result_bytes(op)
        ready: list[Op] = []
        for reader in (r for t in op.outputs for r in self._readers.get(t, ())):
            self._left[reader] -= 1
            if not self._left[reader]:
                ready.append(reader)
                for t in self._reads[reader]:
                    self._ready[t] += 1
        return ready

    def ending(self, op: Op) -> list[Op]:
        """The other readers of an operand, if all of them are ready and their results together are
        smaller than the operand."""
        for t in self._reads[op]:
            if 0 < self._unread[t] == self._ready[t] and self._result_bytes[t] < _bytes(t):
                return [r for r in self._readers[t] if not self.is_done(r)]
        return []


def put_off(ops: Sequence[Op]) -> list[Op]:
    """The same order, but an operator whose result has more bytes than the operands that die at it
    (usually a copy or padding) is moved back towards its first reader. It stops before an operator
    at which as many bytes of its operands would die as it makes."""
    place = {op: k for k, op in enumerate(ops)}
    results = {t for op in ops for t in op.outputs}
    readers: dict[Tensor, list[Op]] = {}
    for op in ops:
        for t in dict.fromkeys(op.operands()):
            readers.setdefault(t, []).append(op)
    at = dict(place)  # position of each operator, or of the operator that it is put in front of
    ends: dict[Tensor, int] = {}  # position of the last reader of each tensor seen so far
    for op in reversed(ops):
        first = min((at[r] for t in op.outputs for r in readers.get(t, ())), default=0)
        operands = dict.fromkeys(t for t in op.operands() if not t.is_constant)
        if first > place[op] and any(t in results for t in operands):
            others = [(ends.get(t, -1), _bytes(t)) for t in operands]
            at[op] = _latest_place(place[op], first, others, _result_bytes(op))
        for t in operands:
            ends[t] = max(ends.get(t, -1), at[op])
    return sorted(ops, key=lambda op: (at[op], at[op] == place[op], place[op]))


def _latest_place(here: int, first: int, ends: list[tuple[int, int]], bytes_made: int) -> int:
    """The latest position, between `here` and its first reader `first`, to which an operator can
    move that makes `bytes_made` bytes. ends: (position of the last other reader or -1, bytes) of
    each operand."""
    ended = 0
    for end, size in sorted(ends):
        if end >= first:
            break
        ended += size
        if ended >= bytes_made:
            return max(end, here)
    return first


def _result_bytes(op: Op) -> int:
    return sum(map(_bytes, op.outputs))


def _bytes(tensor: Tensor) -> int:
    return align_up(tensor.nbytes)


__all__ = ["eager_order", "put_off"]
