"""What short searches for tiles may take, where many networks are asked.

    TO_JUDGE            joint.memory      its answer counts: what it makes not fit is rejected
    TO_CHOOSE, _LOOPS   fitting.outcomes  its answer chooses what gets the search of its command

Both are about a second of processor time for a small network. On 40 networks of the recorded search
within 32 KB (docs/joint-search.md), half of which fit in tiles by TO_JUDGE and half by nothing,
TO_CHOOSE took 0.87 s a network in place of 1.05 and missed one of the 20 that fit; all arenas
together were 0.13 % larger. So the cheaper one chooses, and the other judges. The steps that only
add to the front of (arena, instructions) are left out of both.
"""

from __future__ import annotations

from dataclasses import replace

from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget

TO_JUDGE = replace(
    DEFAULT_BUDGET,
    search_work=200,
    same_firmware_work=200,
    front_work=0,
    gap_work=0,
    lower_limits=(),
)
"""Tiles of the firmware's own operators: a fiftieth of the usual work. A longer search may make
more networks fit."""
TO_CHOOSE = SearchBudget(
    search_work=300,
    front_work=0,
    gap_work=0,
    lower_limits=(),
    careful_work=0,
    finalists=0,
    neighboured_models=0,
)
"""Tiles of the firmware's own operators. On nine networks and rungs the whole search found 0 to 8 %
less than this one and the next, half of them at most 1.3 %."""
TO_CHOOSE_LOOPS = replace(
    TO_CHOOSE,
    search_work=1500,
    same_firmware_work=1,
    mode_shares=((), (1.0,), (0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.9, 0.0, 1.0)),
)
"""With more operators: nearly all of it is for loops, which reach furthest, and first for those
whose views lie inside their parents."""
