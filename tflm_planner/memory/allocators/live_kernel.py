"""The compiled `bounds.live_bound`, for searches that plan hundreds of candidates.

links     a - b - c      each link says how many bytes its two buffers can share at most; the
          |              sizes of a set, without what its pairs can share, are needed by all
          d              plans (Bonferroni), and the set that needs the most is looked for
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tflm_planner.memory.allocators.machine_code import Ints, compiled, compiled_in_place, int64
from tflm_planner.memory.allocators.problem_table import ProblemTable
from tflm_planner.memory.problem import Buffer, Problem

_MOST_ENUMERATED = 10
"""Linked buffers that are not decided, of which all sets are looked at; of more, the one that adds
most is taken first."""
_ANY = 1 << 62
"""More bytes than any buffers need."""


class _Links(NamedTuple):
    """Pairs of buffers with permits: the partners of buffer i are other[starts[i] : starts[i + 1]],
    and it can share at most `shared` bytes with each."""

    starts: Ints
    other: Ints
    shared: Ints


class _Marks(NamedTuple):
    """Work space: for each buffer whether it is undecided, and what it then adds beside those that
    are taken; a stack of buffers to look at; and what each set of undecided ones adds."""

    undecided: Ints
    gain: Ints
    stack: Ints
    sets: Ints


@compiled
def _link(size: Ints, permits: Ints) -> _Links:
    """The links of a problem whose buffers have these sizes. permits: rows of `ProblemTable`."""
    starts, count = np.zeros(size.size + 1, np.int64), int64(0)
    other, shared = np.empty(permits.shape[0], np.int64), np.empty(permits.shape[0], np.int64)
    for p in range(permits.shape[0]):
        i, j = permits[p, 0], permits[p, 1]
        both = _shared_bytes(int(size[i]), int(size[j]), permits[p, 2], permits[p, 3])
        if starts[i + 1] and other[count - 1] == j:  # the same pair at other distances
            if both > shared[count - 1]:
                shared[count - 1] = both
            continue
        other[count], shared[count] = j, both
        starts[i + 1] += 1
        count += 1
    for i in range(size.size):
        starts[i + 1] += starts[i]
    return _Links(starts, other, shared)


@compiled_in_place
def _shared_bytes(a: int, b: int, low: int, high: int) -> int:
    """The most bytes that buffers of a and b bytes share where the second lies `low` to `high`
    bytes above the first: they then span max(a, d + b) - min(0, d), least where d is nearest
    to 0."""
    distance = low if low > 0 else high if high < 0 else 0
    top = distance + b if distance + b > a else a
    span = top - distance if distance < 0 else top
    return a + b - span if a + b > span else 0


@compiled_in_place
def _take(links: _Links, marks: _Marks, i: int) -> int:
    """Take an undecided buffer; returns the bytes that it adds."""
    for e in range(links.starts[i], links.starts[i + 1]):
        marks.gain[links.other[e]] -= links.shared[e]
    marks.undecided[i] = 0
    return marks.gain[i]


@compiled_in_place
def _decide(links: _Links, marks: _Marks, count: int) -> int:
    """Take the buffers that add something whichever others are taken, and drop those that add
    nothing, until none is left of either kind. `count` buffers are on the stack. Returns the bytes
    of those that are taken."""
    undecided, gain, stack = marks.undecided, marks.gain, marks.stack
    total = int64(0)
    while count > 0:
        count -= 1
        i = stack[count]
        if not undecided[i]:
            continue
        losses = int64(0)
        for e in range(links.starts[i], links.starts[i + 1]):
            losses += links.shared[e] if undecided[links.other[e]] else 0
        if 0 < gain[i] < losses:
            continue
        if gain[i] > 0:
            total += _take(links, marks, i)
        undecided[i] = 0
        for e in range(links.starts[i], links.starts[i + 1]):
            if undecided[links.other[e]]:
                stack[count] = links.other[e]
                count += 1
    return total


@compiled_in_place
def _list_component(links: _Links, marks: _Marks, first: int) -> int:
    """Put the undecided buffers that are linked to one of them, directly or by others, on the
    stack; returns their number."""
    stack, undecided = marks.stack, marks.undecided
    stack[0], count, seen = first, int64(1), int64(0)
    undecided[first] = 2
    while seen < count:
        i = stack[seen]
        seen += 1
        for e in range(links.starts[i], links.starts[i + 1]):
            if undecided[links.other[e]] == 1:
                undecided[links.other[e]] = 2
                stack[count] = links.other[e]
                count += 1
    for k in range(count):
        undecided[stack[k]] = 1
    return count


@compiled_in_place
def _most_of_sets(links: _Links, marks: _Marks, count: int) -> int:
    """The most that a set of the `count` buffers on the stack adds."""
    stack, sets = marks.stack, marks.sets
    most = sets[0] = int64(0)
    for k in range(count):
        i, size = stack[k], 1 << k
        for s in range(size):  # the sets in which k is the last
            sets[size + s] = sets[s] + marks.gain[i]
        for e in range(links.starts[i], links.starts[i + 1]):
            for n in range(k):
                if stack[n] == links.other[e]:
                    for s in range(size):
                        sets[size + s] -= links.shared[e] * (s >> n & 1)
        for s in range(size):
            most = sets[size + s] if sets[size + s] > most else most
    return most


@compiled_in_place
def _need(links: _Links, size: Ints, marks: _Marks, members: Ints, count: int) -> int:
    """The bytes that the first `count` members, which live together, need: the most that is found
    of any set of them, whose sizes count without what each pair of the set can share."""
    for m in range(count):
        marks.undecided[members[m]], marks.gain[members[m]] = 1, size[members[m]]
        marks.stack[m] = members[m]
    total, m, waiting = int64(0), int64(0), count
    while True:
        total += _decide(links, marks, waiting)
        while m < count and not marks.undecided[members[m]]:
            m += 1
        if m == count:
            return total
        waiting = _list_component(links, marks, int(members[m]))
        if waiting > _MOST_ENUMERATED:
            total += _take(links, marks, _best_of(marks, waiting))
            continue
        total += _most_of_sets(links, marks, waiting)
        for k in range(waiting):
            marks.undecided[marks.stack[k]] = 0


@compiled_in_place
def _best_of(marks: _Marks, count: int) -> int:
    """The one of the `count` buffers on the stack that adds most; the first among equals."""
    best, gain = marks.stack[0], marks.gain
    for k in range(count):
        i = marks.stack[k]
        if gain[i] > gain[best] or (gain[i] == gain[best] and i < best):
            best = i
    return best


@compiled
def _marks_of(links: _Links) -> _Marks:
    count = links.starts.size - 1
    return _Marks(
        np.zeros(count, np.int64), np.empty(count, np.int64),
        np.empty(count + links.other.size, np.int64), np.empty(1 << _MOST_ENUMERATED, np.int64),
    )  # fmt: skip


@compiled
def _needs(table: ProblemTable, by_start: Ints, times: Ints, most: Ints, best: int) -> Ints:
    """The bytes that the buffers need that live at each of these times, which are sorted. most: for
    each time, a number of bytes that is surely enough; where that is not above `best`, nor above
    what an earlier time needs, nothing is computed, and 0 returned. by_start: the buffers, sorted
    by their starts."""
    start, end, links = table.start, table.end, _link(table.size, table.permits)
    marks, live = _marks_of(links), np.empty(by_start.size, np.int64)
    needs, count, begun = np.zeros(times.size, np.int64), int64(0), int64(0)
    for k in range(times.size):
        left = int64(0)
        for m in range(count):
            if end[live[m]] > times[k]:
                live[left] = live[m]
                left += 1
        count = left
        while begun < by_start.size and start[by_start[begun]] <= times[k]:
            if end[by_start[begun]] > times[k]:
                live[count] = by_start[begun]
                count += 1
            begun += 1
        if most[k] > best:
            needs[k] = _need(links, table.size, marks, live, count)
            best = needs[k] if needs[k] > best else best
    return needs


def needs_at(table: ProblemTable, times: Sequence[int]) -> list[int]:
    """The bytes that the buffers live at each of these times need; see `bounds.Needs.at`."""
    in_order, places = np.unique(np.array(times, np.int64), return_inverse=True)
    by_start, most = np.argsort(table.start), np.full(len(in_order), _ANY, np.int64)
    return _needs(table, by_start, in_order, most, 0)[places].tolist()


def live_bound(table: ProblemTable) -> int:
    """The bytes that the buffers live at one time need, at the worst time. What
    `bounds.live_bound` says, unless more buffers are linked than all sets are looked at of: either
    may then find a set that needs more."""
    by_start, times = np.argsort(table.start), np.unique(table.start)
    if not len(times):
        return 0
    begun = _total_until(times, table.start, table.size)
    live_bytes = begun - _total_until(times, table.end, table.size)
    peak = slice(worst := int(live_bytes.argmax()), worst + 1)  # rules out most other times
    best = int(_needs(table, by_start, times[peak], live_bytes[peak], 0)[0])
    return max(best, int(_needs(table, by_start, times, live_bytes, best).max()))


def _total_until(times: Ints, events: Ints, sizes: Ints) -> Ints:
    """For each time, the sizes of all events until then, itself included."""
    order = np.argsort(events)
    totals = np.append(0, np.cumsum(sizes[order]))
    return totals[np.searchsorted(events[order], times, side="right")]


def warm_up() -> None:
    """Load the compiled functions of this module; compile them if that was never done on this
    machine."""
    needs_at(ProblemTable.of(Problem.of((Buffer("a", 1, 0, 1),))), [0])
