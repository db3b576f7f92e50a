"""Orders of the operators of tiles in which little waits.

    lazily    a - A1    b           c - B1 A2    A2 is asked for two tiles before B1: b waits
    eagerly   a - A1    b - B1 A2   c ...

It knows operators and the bytes of tensors; it must not know boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.support.units import align_up


def eager_order(ops: Sequence[Op]) -> list[Op]:
    """Operators as they are asked for, but each put forward to where all that it reads is there:
    rows that branches of different depth read are then done with at once, and what is made of
    them, mostly less, waits instead. What reads nothing but what enters stays where it is. The
    readers of a tensor that is more than all their results come one after another."""
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
    """What has run so far, and what may."""

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
        # Of each tensor: readers that have not run, how many of them may, and what all will make.
        self._unread = {t: len(readers) for t, readers in self._readers.items()}
        self._ready = dict.fromkeys(self._readers, 0)
        self._result_bytes = {
            t: sum(map(_result_bytes, readers)) for t, readers in self._readers.items()
        }

    def is_done(self, op: Op) -> bool:
        """Whether it has run."""
        return op in self._done

    def put(self, op: Op) -> list[Op]:
        """Run it; those that it makes ready."""
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
        """The other readers of an operand, where all are ready and together make less than it."""
        for t in self._reads[op]:
            if 0 < self._unread[t] == self._ready[t] and self._result_bytes[t] < _bytes(t):
                return [r for r in self._readers[t] if not self.is_done(r)]
        return []


def put_off(ops: Sequence[Op]) -> list[Op]:
    """The same, but what makes more bytes than it ends waits for its first reader: copies and
    padding, mostly. It stops before operators with which it would end as much."""
    place = {op: k for k, op in enumerate(ops)}
    results = {t for op in ops for t in op.outputs}
    readers: dict[Tensor, list[Op]] = {}
    for op in ops:
        for t in dict.fromkeys(op.operands()):
            readers.setdefault(t, []).append(op)
    at = dict(place)  # of each operator, or of the one that it is put in front of
    ends: dict[Tensor, int] = {}  # where what reads a tensor last is, of those that were looked at
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
    """Where an operator goes that makes `made` bytes, from `here` to its first reader at most.
    ends: where each operand is read last by another, if behind `here`, and its bytes."""
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
