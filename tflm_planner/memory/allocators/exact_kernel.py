"""The compiled tree search of the exact allocator: do all items fit within a capacity?

It knows arrays of integers only. It must not know buffers, aliases or time limits; it is imported
lazily, because numba costs 0.3 s to import (and seconds to compile, once).

Items are placed bottom-up, in nondecreasing offset, each at the lowest offset that the items
placed before it permit: every solution can be pushed down into that form. A *section* is a
maximal set of items that live together. Its items that are still to be placed must fit above its
floor:

    capacity  - - - - - - - - - - -
                |   load still    |
                |    to place     |      a section is lost when floor + load > capacity, or when
                +-----------------+ <- floor          every unplaced item starts so high that the
                |   placed items  |                   load does not fit between it and the capacity
                +-----------------+
    0         --+-----------------+--> time

Sources: canonical placements, section inference, dominance, monotonic floor and dynamic
decomposition are from MiniMalloc (Moffitt, ASPLOS 2023); the witness of a section, the lift of
skipped items and the twins rule are ours.
"""

from __future__ import annotations

import numpy as np

from tflm_planner.memory.allocators.machine_code import Ints, compiled, int64
from tflm_planner.memory.allocators.search_state import SearchShape, SearchState

SUSPENDED, FOUND, IMPOSSIBLE = 0, 1, 2

DEPTH, NODES, WORK, TRAIL_TOP, LIST_TOP, CHOICE_TOP, STATUS, STAMP = range(8)
"""Indices into `SearchState.scalars`. `WORK` counts the items, neighbours and sections looked at
(from some twenty to thousands for a node), plus `NODE_WORK` for each node."""

FAR = 1 << 60
"""Larger than every offset."""
NODE_WORK = 180
"""Fixed cost of a node, in units of the time that one item looked at takes: 1.67 us against 8.8 ns
on one core. With it, `WORK` predicts the time of 17 problems of 12 to 409 items within a tenth."""


(
    LOW, HIGH, LIST_START, LIST_END, CHOICE_START, CHOICE_END, CURSOR, BACK, OWNER,
    ITEM, TRAIL_MARK, LIST_MARK, LAST_OFFSET, LAST_POSITION, DONE, NOTHING_ABOVE, COLUMNS,
) = range(17)  # fmt: skip
"""Rows of `SearchState.frames`. `BACK` is the frame to return to when this one is exhausted,
`OWNER` the frame whose placement split off this frame's partition, `DONE` the end of the sections
for which this frame has opened partitions so far."""


@compiled
def place(shape: SearchShape, state: SearchState, capacity: int, x: int) -> tuple[bool, bool]:
    """Place item x at its minimum. Returns (a plan is still possible, an unplaced item is a
    neighbour of x)."""
    offset, minimum, floor, load = state.offset, state.minimum, state.floor, state.load
    top, possible, has_above = state.scalars[TRAIL_TOP], True, False
    o = minimum[x]
    offset[x] = o
    for s in range(shape.first[x], shape.last[x]):
        k = shape.slot[x] + s - shape.first[x]
        load[s] -= shape.weight[k]
        t = o + shape.low[k] + shape.weight[k]
        if t > floor[s]:
            state.trail[0, top] = -1 - s
            state.trail[1, top] = floor[s]
            top += 1
            floor[s] = t
            if t + load[s] > capacity:
                possible = False
        if s + 1 < shape.last[x]:
            state.cuts[s] -= 1
    for e in range(shape.near[x], shape.near[x + 1]):
        y = shape.near_item[e]
        if offset[y] < 0:
            has_above = True
            m = o + shape.near_gap[e]
            if m > minimum[y]:
                state.trail[0, top] = y
                state.trail[1, top] = minimum[y]
                top += 1
                minimum[y] = m
                if m + shape.height[y] > capacity:
                    possible = False
    state.scalars[TRAIL_TOP] = top
    state.scalars[WORK] += shape.last[x] - shape.first[x] + shape.near[x + 1] - shape.near[x]
    return possible, has_above


@compiled
def undo(shape: SearchShape, state: SearchState, f: int) -> None:
    """Undo the placement of frame f, and pop everything above it from the stacks."""
    frames, scalars = state.frames, state.scalars
    x = frames[ITEM, f]
    if x >= 0:
        state.offset[x] = -1
        for s in range(shape.first[x], shape.last[x]):
            state.load[s] += shape.weight[shape.slot[x] + s - shape.first[x]]
            if s + 1 < shape.last[x]:
                state.cuts[s] += 1
        top = scalars[TRAIL_TOP]
        while top > frames[TRAIL_MARK, f]:
            top -= 1
            where = state.trail[0, top]
            if where >= 0:
                state.minimum[where] = state.trail[1, top]
            else:
                state.floor[-1 - where] = state.trail[1, top]
        scalars[TRAIL_TOP] = top
        frames[ITEM, f] = -1
    scalars[LIST_TOP] = frames[LIST_MARK, f]
    scalars[CHOICE_TOP] = frames[CHOICE_END, f]


@compiled
def highest_offset(
    shape: SearchShape, state: SearchState, capacity: int, low: int, high: int, last: int
) -> int:
    """The highest offset at which the next item may lie; -1 when some section is lost.

    Later items lie no lower, so the whole load of every section must fit above that offset. Some
    unplaced item of a section must start low enough that the section's load fits: one such item
    (the witness) is enough until it is placed or lifted.
    """
    heaviest = int64(0)
    for s in range(low, high):
        if state.load[s] > heaviest:
            heaviest = state.load[s]
    state.scalars[WORK] += high - low
    if last + heaviest > capacity:
        return -1
    for s in range(low, high):
        if state.load[s] == 0:
            continue
        limit = capacity - state.load[s]
        w = state.witness[s]
        k = shape.member[s] + w
        y = shape.member_item[k]
        if state.offset[y] < 0 and state.level[y] + shape.member_low[k] <= limit:
            continue
        fits = False
        for k in range(shape.member[s], shape.member[s + 1]):
            y = shape.member_item[k]
            if state.offset[y] < 0 and state.level[y] + shape.member_low[k] <= limit:
                state.witness[s] = k - shape.member[s]
                fits = True
                break
        state.scalars[WORK] += k - shape.member[s]
        if not fits:
            return -1
    return int(capacity - heaviest)


@compiled
def lift(shape: SearchShape, state: SearchState, capacity: int, f: int) -> bool:
    """Raise the level of each item that frame f has skipped. False when one gets too high.

    A skipped item may no longer lie at its minimum: an unplaced neighbour, which lies at the last
    offset or higher, has to be placed below it and so lift it.
    """
    frames = state.frames
    last, position = frames[LAST_OFFSET, f], frames[LAST_POSITION, f]
    for p in range(frames[LIST_START, f], frames[LIST_END, f]):
        y = state.lists[p]
        m = state.minimum[y]
        if state.offset[y] >= 0 or m > last or (m == last and p > position):
            continue
        level = int64(FAR)
        state.scalars[WORK] += shape.near[y + 1] - shape.near[y]
        for e in range(shape.near[y], shape.near[y + 1]):
            z = shape.near_item[e]
            if state.offset[z] < 0:
                under = shape.near_under[e] + (last if last > state.level[z] else state.level[z])
                if under < level:
                    level = under
        if level + shape.height[y] > capacity:
            return False
        state.level[y] = level
    return True


@compiled
def write_choices(
    shape: SearchShape, state: SearchState, capacity: int, ordered: bool, f: int
) -> bool:
    """Write the choices of frame f, best first. False when no item is left to place."""
    frames, scalars, minimum = state.frames, state.scalars, state.minimum
    start = scalars[CHOICE_TOP]
    frames[CHOICE_START, f] = frames[CURSOR, f] = frames[CHOICE_END, f] = start
    frames[LIST_MARK, f], frames[TRAIL_MARK, f] = scalars[LIST_TOP], scalars[TRAIL_TOP]
    frames[ITEM, f] = -1
    ceiling, left = int64(FAR), False
    for p in range(frames[LIST_START, f], frames[LIST_END, f]):
        y = state.lists[p]
        if state.offset[y] < 0:
            left = True
            if minimum[y] + shape.height[y] < ceiling:
                ceiling = minimum[y] + shape.height[y]
            state.level[y] = minimum[y]
    scalars[WORK] += frames[LIST_END, f] - frames[LIST_START, f]
    if not left:
        return False
    if ordered and not lift(shape, state, capacity, f):
        return True
    before = frames[LAST_OFFSET, f] if ordered else int64(0)
    limit = highest_offset(shape, state, capacity, frames[LOW, f], frames[HIGH, f], before)
    if limit < 0:
        return True
    scalars[STAMP] += 1
    stamp, end = scalars[STAMP], start
    for p in range(frames[LIST_START, f], frames[LIST_END, f]):
        y = state.lists[p]
        if state.offset[y] >= 0:
            continue
        m = minimum[y]
        older = state.seen[shape.twin[y]] == stamp
        state.seen[shape.twin[y]] = stamp
        if state.level[y] > m:
            continue
        if older or m >= ceiling or (ordered and m > limit):
            continue
        k = end
        while k > start and minimum[state.lists[state.choices[k - 1]]] > m:
            state.choices[k] = state.choices[k - 1]
            k -= 1
        state.choices[k] = p
        end += 1
    frames[CHOICE_END, f] = scalars[CHOICE_TOP] = end
    return True


@compiled
def sort_list(
    shape: SearchShape, state: SearchState, keys: Ints, capacity: int, start: int, end: int
) -> None:
    """Sort a partition's list by the keys; 0: life span, 1: area, 2: noise, 3: load."""
    key, lists, most = state.key, state.lists, (1 << 21) - 1
    work = int64(0)
    for p in range(start, end):
        x, sort_key = lists[p], int64(0)
        for k in range(keys.size):
            value = int64(0)
            if keys[k] < 3:
                value = shape.ranks[keys[k], x]
            else:
                for s in range(shape.first[x], shape.last[x]):
                    if state.load[s] > value:
                        value = state.load[s]
                work += shape.last[x] - shape.first[x]
                value = (value << 20) // capacity if capacity > 0 else value << 20
            sort_key = (sort_key << 21) + (value if value < most else most)
        at = p  # those before are sorted; lists mostly arrive sorted, as parts of a sorted list
        while at > start and key[at - 1 - start] < sort_key:
            key[at - start], lists[at] = key[at - 1 - start], lists[at - 1]
            at -= 1
        key[at - start], lists[at] = sort_key, x
        work += 1 + p - at
    state.scalars[WORK] += work


@compiled
def open_partition(
    shape: SearchShape, state: SearchState, capacity: int, keys: Ints, ordered: bool, owner: int
) -> bool:  # fmt: skip
    """Open the next frame for the owner's first unfinished partition of sections that has items to
    place; those come from the owner's list. False if there is no such partition."""
    frames, scalars = state.frames, state.scalars
    f, low, high = scalars[DEPTH], frames[DONE, owner], frames[HIGH, owner]
    while low < high:
        cut = low
        while cut + 1 < high and state.cuts[cut] > 0:
            cut += 1
        cut += 1
        start = end = scalars[LIST_TOP]
        for p in range(frames[LIST_START, owner], frames[LIST_END, owner]):
            y = state.lists[p]
            if state.offset[y] < 0 and shape.first[y] >= low and shape.last[y] <= cut:
                state.lists[end] = y
                end += 1
        scalars[WORK] += frames[LIST_END, owner] - frames[LIST_START, owner]
        if end > start:
            sort_list(shape, state, keys, capacity, start, end)
            scalars[LIST_TOP] = end
            frames[LOW, f], frames[HIGH, f] = low, cut
            frames[LIST_START, f], frames[LIST_END, f] = start, end
            frames[BACK, f] = frames[OWNER, f] = owner
            frames[LAST_OFFSET, f], frames[LAST_POSITION, f] = 0, -1
            frames[DONE, owner] = cut
            write_choices(shape, state, capacity, ordered, f)
            scalars[DEPTH] = f + 1
            return True
        low = cut
    return False


@compiled
def descend(
    shape: SearchShape, state: SearchState, capacity: int, keys: Ints, ordered: bool, f: int
) -> bool:  # fmt: skip
    """Open the next frame after frame f has placed its item. False when everything is placed."""
    frames, scalars = state.frames, state.scalars
    x, depth = frames[ITEM, f], scalars[DEPTH]
    decomposes = False
    for s in range(shape.first[x], shape.last[x] - 1):
        decomposes = decomposes or state.cuts[s] == 0
    owner = f
    if decomposes:
        frames[DONE, f] = frames[LOW, f]
    else:
        for row in (LOW, HIGH, LIST_START, LIST_END, OWNER):
            frames[row, depth] = frames[row, f]
        frames[BACK, depth] = f
        frames[LAST_OFFSET, depth] = state.offset[x]
        frames[LAST_POSITION, depth] = state.choices[frames[CURSOR, f] - 1]
        if write_choices(shape, state, capacity, ordered, depth):
            scalars[DEPTH] = depth + 1
            return True
        owner = frames[OWNER, f]
    while owner >= 0:
        if open_partition(shape, state, capacity, keys, ordered, owner):
            return True
        owner = frames[OWNER, owner]
    return False


@compiled
def search(
    shape: SearchShape, state: SearchState, capacity: int, keys: Ints, ordered: bool, budget: int
) -> int:  # fmt: skip
    """Continue a search for about `budget` work; returns FOUND, IMPOSSIBLE or SUSPENDED.

    FOUND: `state.offset` holds the offsets. IMPOSSIBLE: with `ordered`, no plan of this capacity
    exists. ordered: items are placed by ascending offsets. Without it, an item may also go below
    earlier ones, as items that may overlap can need; IMPOSSIBLE then proves nothing.
    """
    frames, scalars = state.frames, state.scalars
    if scalars[STATUS] != SUSPENDED:
        return scalars[STATUS]
    is_new = scalars[DEPTH] == 1
    if is_new and not open_partition(shape, state, capacity, keys, ordered, int64(0)):
        scalars[STATUS] = FOUND
        return FOUND
    stop = scalars[WORK] + budget
    while scalars[WORK] < stop:
        f = scalars[DEPTH] - 1
        nothing_above = frames[ITEM, f] >= 0 and frames[NOTHING_ABOVE, f] == 1
        undo(shape, state, f)
        if nothing_above:
            # No unplaced item conflicts with this one: no other choice can do better.
            frames[CURSOR, f] = frames[CHOICE_END, f]
        if frames[CURSOR, f] >= frames[CHOICE_END, f]:
            back = frames[BACK, f]
            for k in range(f - 1, back, -1):
                undo(shape, state, k)
            scalars[DEPTH] = back + 1
            if back < 0:
                scalars[STATUS] = IMPOSSIBLE
                return IMPOSSIBLE
            continue
        x = int(state.lists[state.choices[frames[CURSOR, f]]])
        frames[CURSOR, f] += 1
        frames[ITEM, f] = x
        scalars[NODES] += 1
        scalars[WORK] += NODE_WORK
        possible, has_above = place(shape, state, capacity, x)
        frames[NOTHING_ABOVE, f] = 0 if has_above else 1
        if possible and not descend(shape, state, capacity, keys, ordered, f):
            scalars[STATUS] = FOUND
            return FOUND
    return SUSPENDED


def start_state(shape: SearchShape, keys: tuple[int, ...]) -> tuple[SearchState, Ints]:
    """The state at the start of a search, and the preorder's keys as an array. Frame 0 places
    nothing: it owns the partitions of the whole problem."""
    items, sections = shape.height.size, shape.loads.size

    def zeros(*size: int) -> Ints:
        return np.zeros(size, np.int64)

    stack = items * (items + 1) // 2 + 2 * items + 2
    state = SearchState(
        offset=zeros(items) - 1, minimum=zeros(items), floor=zeros(sections),
        load=shape.loads.copy(), cuts=shape.crossing.copy(), witness=zeros(sections),
        level=zeros(items), seen=zeros(items),
        trail=zeros(2, shape.near_item.size + shape.weight.size + 1),
        lists=zeros(stack), choices=zeros(stack), frames=zeros(COLUMNS, items + 2),
        key=zeros(items), scalars=zeros(8),
    )  # fmt: skip
    state.lists[:items] = np.arange(items)
    frames = state.frames
    frames[HIGH, 0] = sections
    frames[LIST_END, 0] = frames[LIST_MARK, 0] = state.scalars[LIST_TOP] = items
    frames[BACK, 0] = frames[OWNER, 0] = frames[ITEM, 0] = -1
    state.scalars[DEPTH] = 1
    return state, np.array(keys, np.int64)
