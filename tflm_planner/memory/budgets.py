"""When the searches end: counts of work, never seconds, so that the same problem gives the same
plan on any machine.

What half or twice of a constant changes is measured by `benchmarks/memory_budgets.py`; "not
measured" marks those that nobody ran it for.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AllocatorBudget:
    """What the allocators of `best_of` may spend on one problem.

    Half and twice of the limits of `slide`, of `climbed_choices`, `exact_choices` and
    `small_gain_climb_divisor` changed no height of ten random problems and two networks, most of
    which reach their bound at once: harder ones may tell.
    """

    # --- first fits in domains (`slide`) ---------------------------------------------------

    slide_live_pairs: int = 40_000
    """Problems with more pairs of buffers live together are no chains, and are left alone."""
    slide_work: int = 120_000
    """Pairs looked at in all: about 0.2 s."""
    slide_prune_work: int = 30_000
    """Pairs looked at before the first buffer is placed."""
    slide_place_work: int = 100
    """Pairs looked at after each placement."""
    slide_perturbed_orders: int = 80
    """Orders with some randomness in them, tried at the bound only."""

    # --- local search ------------------------------------------------------------------------

    climb_rounds: int = 16_000
    climb_work: int = 60_000_000
    """Rounds times (items + conflicts). A tenth: darts all +0.4 %, darts_cifar all +0.2 %; more
    than three times as much, nothing on darts."""
    climbed_choices: int = 4
    """Choices of aliases that are climbed, those with the lowest plans."""

    # --- exact search ------------------------------------------------------------------------

    exact_items: int = 3000
    """Larger problems are not searched: the stacks would grow with the square."""
    resumable_items: int = 600
    """Up to so many items, suspended attempts at all capacities are kept: their stacks take
    megabytes each where there are more."""
    slice_work: int = 3_000_000
    """Items, neighbours and sections that one slice looks at, and what nodes take beside them
    (`exact_kernel.NODE_WORK`): some 20 ms, on a slow core some 70 ms."""
    slices: float = 40
    """About a second. What this search found in 38 random problems of 20 to 300 items and in the
    plans of nine networks it found within 2.1 slices; 140 lowered none of them further."""
    slices_for_small_gain: float = 10
    """Slices for a search that can gain little. Not measured."""
    slices_by_name: float = 420
    """Where the user asked for the exact search by its name: half a minute. The one of eight random
    problems that 40 left open, by 16 of 6,464 bytes, was lowered by neither 105 nor 840."""
    alias_choices: int = 64
    """Choices of aliases that are listed."""
    exact_choices: int = 12
    """Choices of aliases that are searched where not all can be."""

    # --- where there is little to gain -------------------------------------------------------

    small_gain_divisor: int = 200
    """The gain is small where the plan is within this part of its height (0.5 %) of the bound."""
    small_gain_climb_divisor: int = 4
    """Local search then does one round in so many."""

    # --- OR-Tools ----------------------------------------------------------------------------

    cpsat_work: float = 30.0
    """In CP-SAT's own measure, of which one is about a second."""


@dataclass(frozen=True)
class PackBudget:
    """What `pack`, which plans candidates of a search in milliseconds, may spend on one problem.

    Half and twice of each were measured on 24 random problems of 20 to 300 buffers and four
    networks, of which nasnet_mobile alone is placed stage by stage. Where nothing else is said,
    neither changed the height of any.
    """

    rounds: int = 2_000
    work: int = 4_000_000
    """Rounds times (items + conflicts), for so many rounds."""
    near_bound_divisor: int = 100
    """A plan within this part (1 %) of the bound is near enough to try no other aliases."""
    buffers_at_once: int = 400
    """Problems with no more buffers are placed as a whole. Halved, with stages alone for others:
    four are higher, by 0.12 % of all heights together, and it takes twice as long."""
    buffers_both_ways: int = 1_000
    """Problems with more buffers are placed stage by stage only; between the two, as a whole too,
    which takes longer. Stages alone: nasnet_mobile all +9 %, densenet121 own +14 % (x86-64). The
    whole alone: darts_cifar own +2.1 % (x86-64), all +3.3 % (Cortex-M4)."""
    border_items: int = 8
    """Items that live at the border of two stages at most."""
    stage_work: int = 40_000_000
    """Rounds times conflicts of one stage."""
    stage_reorders: int = 16
    """Times that another stage is placed first."""


@dataclass(frozen=True)
class OrderBudget:
    """What the search for an order of operators may spend on one graph; states of the search.

    Half and twice of each were measured on the ten networks of `benchmarks/order.py`, at 20,000
    states for a segment. Where nothing else is said, neither changed a peak.
    """

    segment_states: int = 1_000_000
    """States of the exact search of one segment; about 10 s and 400 MB. A caller who asks often may
    take 20,000 (some 0.2 s for a hard segment)."""
    exact_segment_states: int = 4_000_000
    """The same for the method "exact": some 40 s and 1.6 GB."""
    full_budget_segments: int = 3
    """The total budget of one graph, as a multiple of `segment_states`."""
    first_dive_states: int = 20_000
    """States of the first exact dive, before any heuristic runs."""
    beam_widths: tuple[int, ...] = (16, 256)
    states_per_beam_width: int = 1_000
    """A beam is run where a segment has this many times its width in states. Doubled: two networks
    are higher, by 4.1 % of all peaks together, in a third of the seconds."""
    window_lengths: tuple[int, ...] = (40, 80, 160, 320)
    """Operators of the windows that are solved again exactly."""
    window_states: int = 4_000
    """States of the search of one window."""


DEFAULT_ALLOCATOR_BUDGET = AllocatorBudget()
DEFAULT_PACK_BUDGET = PackBudget()
DEFAULT_ORDER_BUDGET = OrderBudget()
