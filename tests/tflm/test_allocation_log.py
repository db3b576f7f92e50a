"""What size of arena a log of allocations needs, against arenas tried one by one."""

from __future__ import annotations

import random

import pytest

from tflm_planner.tflm.arena.allocation_log import AllocationLog, smallest_arena


def random_log(seed: int) -> AllocationLog:
    """Some pieces aligned to 1 to 16 bytes, and floors before and between them; behind them there
    is always one, as the head is of every model."""
    draw = random.Random(seed)
    alignments = draw.choice([(4, 8), (1, 4), (4, 8, 16), (16,)])
    log = AllocationLog()
    pieces = [
        (draw.randrange(3), draw.randint(0, 40), draw.choice(alignments))
        for _ in range(draw.randint(0, 6))
    ]
    floors = [
        (draw.randint(0, len(pieces)), draw.randint(0, 60), draw.random() < 0.3)
        for _ in range(draw.randint(0, 5))
    ]
    for made in range(len(pieces) + 1):
        for before, above, is_aligned in floors:
            if before == made:
                log.add_floor(above, is_aligned=is_aligned)
        if made < len(pieces):
            log.add(*pieces[made])
    log.add_floor(draw.randint(0, 60))
    return log


def works(log: AllocationLog, size: int, start: int = 0) -> bool:
    """Whether every floor is free in an arena of `size` bytes that begins `start` bytes behind a
    multiple of 16, and so loses what comes before the next one."""
    end = size - -start % 16
    ends = [end]  # of free memory, above the first aligned byte, after each piece
    for _, size_of, alignment in log.pieces:
        ends.append((ends[-1] - size_of) // alignment * alignment)
    return all(
        above <= (ends[made] // 16 * 16 if aligned else ends[made])
        for made, above, aligned in log.floors
    )


@pytest.mark.parametrize("seed", range(150))
def test_the_smallest_arena_is_the_first_that_works(seed: int) -> None:
    log = random_log(seed)
    needs = log.needs()
    for residue in range(16):
        first = next(s for s in range(2000) if works(log, residue + 16 * s))
        least = max(needs[residue], 0)
        assert residue + 16 * first == least + (residue - least) % 16
    low, slack = smallest_arena(needs)
    sizes = range(low + slack + 64)
    assert low == next(size for size in sizes if works(log, size))
    anywhere = [all(works(log, size, start) for start in range(16)) for size in sizes]
    assert low + slack == anywhere.index(True, low) and all(anywhere[low + slack :])


@pytest.mark.parametrize("seed", range(20))
def test_classes_add_up_to_the_tail(seed: int) -> None:
    log = random_log(seed)
    parts, tail = log.tail_parts(3)
    assert sum(parts) == tail == [0, *log.extents()][-1]
    alone = [sum(piece.size for piece in log.pieces if piece.kind == p) for p in range(3)]
    assert all(found >= bytes_of for found, bytes_of in zip(parts, alone, strict=True))
