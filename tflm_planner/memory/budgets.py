"""When the searches end: counts of work, never seconds, so that the same problem gives the same
plan on any machine.

`benchmarks/memory_budgets.py` measures what half and twice of a constant change; "not measured"
marks those for which nobody ran it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AllocatorBudget:
    """What the allocators of `best_of` may spend on one problem.

    Half and twice of the limits of `slide`, of `climbed_choices`, `exact_choices` and
    `small_gain_climb_divisor` changed no height of ten random problems and two networks. Most of
    these reach their bound at once; harder problems might show a difference.
    """

    # --- first fits in domains (`slide`) ---------------------------------------------------

    slide_live_pairs: int = 40_000
    """Problems in which more pairs of buffers live together are no chains; `slide` skips them."""
    slide_work: int = 120_000
    """Largest number of pairs looked at in total: about 0.2 s."""
    slide_prune_work: int = 30_000
    """Largest number of pairs looked at before the first buffer is placed."""
    slide_place_work: int = 100
    """Largest number of pairs looked at after each placement."""
    slide_perturbed_orders: int = 80
    """Number of randomly perturbed orders, which are tried at the bound only."""

    # --- local search ------------------------------------------------------------------------

    climb_rounds: int = 16_000
    climb_work: int = 60_000_000
    """Limit of rounds times (items + conflicts). With a tenth of it, the plans of darts are 0.4 %
    higher (darts_cifar: 0.2 %); three times as much does not lower those of darts."""
    climbed_choices: int = 4
    """Number of choices of aliases that are climbed: those with the lowest plans."""

    # --- exact search ------------------------------------------------------------------------

    exact_items: int = 3000
    """Larger problems are not searched: the size of the stacks is quadratic in the items."""
    resumable_items: int = 600
    """For problems with at most this many items, suspended attempts at all capacities are kept; in
    larger problems the stacks of each attempt take megabytes."""
    slice_work: int = 3_000_000
    """Work of one slice: items, neighbours and sections looked at, plus `exact_kernel.NODE_WORK`
    for each node. Some 20 ms, on a slow core some 70 ms."""
    slices: float = 40
    """About a second. All that this search found in 38 random problems of 20 to 300 items and in
    the plans of nine networks, it found within 2.1 slices; 140 slices lowered none of them
    further."""
    slices_for_small_gain: float = 10
    """Slices for a search that can gain little. Not measured."""
    slices_by_name: float = 420
    """Slices where the user named the exact search: half a minute. One of eight random problems was
    left open by 40 slices, 16 of 6,464 bytes above its bound; neither 105 nor 840 lowered it."""
    alias_choices: int = 64
    """Largest number of choices of aliases that are listed."""
    exact_choices: int = 12
    """Number of choices of aliases that are searched if not all were listed."""

    # --- where there is little to gain -------------------------------------------------------

    small_gain_divisor: int = 200
    """The gain is small where the plan is within this part of its height (0.5 %) of the bound."""
    small_gain_climb_divisor: int = 4
    """Divides the rounds of local search where the gain is small."""

    # --- OR-Tools ----------------------------------------------------------------------------

    cpsat_work: float = 30.0
    """In CP-SAT's deterministic time, one unit of which is about a second."""


@dataclass(frozen=True)
class PackBudget:
    """What `pack`, which plans candidates of a search in milliseconds, may spend on one problem.

    Half and twice of each were measured on 24 random problems of 20 to 300 buffers and four
    networks, of which only nasnet_mobile is placed stage by stage. Unless a field says otherwise,
    neither changed any height.
    """

    rounds: int = 2_000
    work: int = 4_000_000
    """Limit of rounds times (items + conflicts), when `rounds` is as above; it scales with
    `rounds`."""
    near_bound_divisor: int = 100
    """A plan within this part (1 %) of the bound is good enough: no other aliases are tried."""
    buffers_at_once: int = 400
    """Problems with at most this many buffers are placed as a whole. With half of it (and stages
    only for larger ones) four plans are higher, 0.12 % over the sum of all heights, and it takes
    twice as long."""
    buffers_both_ways: int = 1_000
    """Problems with more buffers are placed stage by stage only; those between the two limits are
    also placed as a whole, which takes longer. Stages only: nasnet_mobile all +9 %, densenet121 own
    +14 % (x86-64). Whole only: darts_cifar own +2.1 % (x86-64), all +3.3 % (Cortex-M4)."""
    border_items: int = 8
    """Largest number of items that live at the border of two stages."""
    stage_work: int = 40_000_000
    """Limit of rounds times conflicts in one stage."""
    stage_reorders: int = 8
    """How many times another stage is moved to the front and all stages are placed again. 16: the
    same bytes on nasnet_mobile own and densenet121 own (+48 B), in 1.3 and 1.37 times the seconds;
    0 to 4: densenet121 own +0.5 %."""


@dataclass(frozen=True)
class OrderBudget:
    """What the search for an order of operators may spend on one graph, in states of the search.

    Half and twice of each were measured on the ten networks of `benchmarks/order.py`, at 20,000
    states for a segment. Unless a field says otherwise, neither changed a peak.
    """

    segment_states: int = 1_000_000
    """Limit of states of the exact search of one segment; about 10 s and 400 MB. Callers that
    search often may use 20,000 (some 0.2 s for a hard segment)."""
    segment_work: int = 40_000_000
    """The same limit as a product of states and operators: a state of 320 operators takes 20 us,
    one of 640 takes 65. Unrolled recurrent networks (GRU of 16 to 32 steps, with 316 to 638
    operators) spent 20 to 68 s on a million states, and found no lower peak in any; the search of
    no other network at hand is as long. The method "exact" is not limited so."""
    exact_segment_states: int = 4_000_000
    """The same limit for the method "exact": some 40 s and 1.6 GB."""
    full_budget_segments: int = 3
    """The limit for all segments of one graph, as a multiple of the limit for one segment."""
    first_dive_states: int = 20_000
    """Limit of states of the first exact search, before any heuristic runs."""
    beam_widths: tuple[int, ...] = (16, 256)
    states_per_beam_width: int = 1_000
    """A beam of width w is run if the limit of a segment is at least this many times w. Doubled:
    two networks are higher, by 4.1 % of the sum of all peaks, in a third of the time."""
    window_lengths: tuple[int, ...] = (40, 80, 160, 320)
    """Lengths, in operators, of the windows that are solved again exactly."""
    window_states: int = 4_000
    """Limit of states of the search of one window."""


DEFAULT_ALLOCATOR_BUDGET = AllocatorBudget()
DEFAULT_PACK_BUDGET = PackBudget()
DEFAULT_ORDER_BUDGET = OrderBudget()
