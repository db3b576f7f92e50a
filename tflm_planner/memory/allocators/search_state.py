"""The data of the exact allocator's tree search: records of integer arrays.

SearchShape    what never changes: items, sections, distances
SearchState    what the search changes in place: offsets, floors, stacks of a suspended search
"""

from __future__ import annotations

from typing import NamedTuple

from tflm_planner.memory.allocators.machine_code import Ints


class SearchShape(NamedTuple):
    """The problem: what never changes during a search. Sections and items are numbered from 0."""

    height: Ints  # item -> bytes from its offset to its top
    first: Ints  # item -> its first section
    last: Ints  # item -> one past its last section
    slot: Ints  # item -> index of its first section's entry in low and weight
    low: Ints  # (item, section) -> bytes from the item's offset to its bottom there
    weight: Ints  # (item, section) -> bytes that nothing above it can share there
    near: Ints  # item -> start of its entries in near_item, near_gap, near_under; n + 1 values
    near_item: Ints  # an item that lives together with it
    near_gap: Ints  # the least distance at which that item may lie above this one
    near_under: Ints  # the least distance at which this item may lie above that one
    member: Ints  # section -> start of its entries in member_item; sections + 1 values
    member_item: Ints  # an item of the section
    member_low: Ints  # that item's `low` in the section
    twin: Ints  # item -> class of interchangeable items
    ranks: Ints  # (3, items): life span, area, noise, as ranks; larger goes first
    loads: Ints  # section -> sum of weights
    crossing: Ints  # boundary between section s and s + 1 -> items that cross it


class SearchState(NamedTuple):
    """The search: arrays that the kernel changes in place, so that it can be suspended."""

    offset: Ints  # item -> offset, or -1
    minimum: Ints  # item -> lowest offset that the placed items permit
    floor: Ints  # section -> top of its placed items
    load: Ints  # section -> sum of weights of its unplaced items
    cuts: Ints  # boundary -> number of unplaced items that cross it
    level: Ints  # unplaced item -> lowest offset, given that the next one lies no lower
    witness: Ints  # section -> an unplaced item that starts low enough (a hint)
    seen: Ints  # class of twins -> stamp
    trail: Ints  # (2, size): (index, old value) to restore when a placement is undone
    lists: Ints  # stack of the item lists of partitions, in the partition's preorder
    choices: Ints  # stack of the choices of frames: positions in the partition's list
    frames: Ints  # (rows of `exact_kernel`, depth)
    key: Ints  # item's place in the list being sorted -> what it is sorted by
    scalars: Ints
