"""What the exact allocator's tree search works on: records of integer arrays.

SearchShape    what never changes: items, sections, distances
SearchState    what it changes in place: offsets, floors, and the stacks of a suspended search
"""

from __future__ import annotations

from typing import NamedTuple

from tflm_planner.memory.allocators.machine_code import Ints


class SearchShape(NamedTuple):
    """The problem: what never changes during a search. Sections and items are numbered from 0."""

    height: Ints  # item -> bytes from its offset to its top
    first: Ints  # item -> its first section
    last: Ints  # item -> one past its last section
    slot: Ints  # item -> index into low and weight of its first section
    low: Ints  # (item, section) -> bytes from the item's offset to its bottom there
    weight: Ints  # (item, section) -> bytes that nothing above it can share there
    near: Ints  # item -> start of its stretch of near_item, near_gap, near_under; n + 1 entries
    near_item: Ints  # an item that is live together with it
    near_gap: Ints  # the least distance of that item above this one
    near_under: Ints  # the least distance of this item above that one
    member: Ints  # section -> start of its stretch of member_item; one entry more than sections
    member_item: Ints  # an item of the section
    member_low: Ints  # and that item's `low` there
    twin: Ints  # item -> class of interchangeable items
    ranks: Ints  # (3, items): life span, area, noise, as ranks; larger goes first
    loads: Ints  # section -> sum of weights
    crossing: Ints  # boundary between section s and s + 1 -> items that cross it


class SearchState(NamedTuple):
    """The search: arrays that the kernel changes in place, so that it can be suspended."""

    offset: Ints  # item -> offset, or -1
    minimum: Ints  # item -> lowest offset that placed items leave
    floor: Ints  # section -> top of its placed items
    load: Ints  # section -> weight of its items still to come
    cuts: Ints  # boundary -> items still to come that cross it
    level: Ints  # item still to come -> lowest offset, given that the next one lies no lower
    witness: Ints  # section -> an item still to come that starts low enough (a hint)
    seen: Ints  # class of twins -> stamp
    trail: Ints  # (2, size): what to restore on the way back
    lists: Ints  # stack of the item lists of partitions, in the partition's preorder
    choices: Ints  # stack of the choices of frames: positions in the partition's list
    frames: Ints  # (columns below, depth)
    key: Ints  # item's place in the list being sorted -> what it is sorted by
    scalars: Ints
