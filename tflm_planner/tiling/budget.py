"""How much the search may do: `SearchBudget` holds its tuning constants, `WorkBudget` counts.

    |<---------- work left --------->|
    |  step 1  |  step 2  |  step 3  |     each step may spend its share of the work that is left;
    |++++      |          |          |     work that a step does not spend is left for later steps
         |   step 2  |    step 3     |

Work is counted in operators that evaluations plan. Counts, not seconds, end the search, so that the
same model gives the same tiling on every machine. This module must not know what is planned, nor
what an evaluation finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class SearchBudget:
    """Every tuning constant of the search, with the reason for it.

    Work and sizes of models are counted in operators. What other values cost was measured on up to
    nine networks by `benchmarks/ablation.py` (docs/ablations.md): I is issue_2513, K kws_ref_model,
    M mobilenet_v2_035_96, P pretrainedResnet_quant, S ds_cnn, V vww_96_int8, D darts, R randwire, C
    the cells of `benchmarks/cells.py`; "own" without new operators, "all" with them. A figure is
    of the smallest arena; one of the "front" is of the bytes within a slowdown, on average over
    those that are allowed. "Not measured" means that no network shows what another value would
    cost, or that nobody looked.
    """

    # --- work of a whole search ---

    search_work: int = 24_000
    """Work of one search of segments, in all its modes. Halved or doubled: nothing on I and K,
    which leave 19,844 and 20,241; halved: nothing on M, P, S and V, mcunet_in3_176 all +0.5 %, the
    front of squeezenet_11 all +14 %; doubled: the front of mcunet_in3_176 all -3 %, for 1.4 of the
    seconds, nothing on squeezenet_11."""
    same_firmware_work: int = 10_000
    """Work of the search without new operators: the search with all operators comes across most of
    the same tilings. Halved: V own +0.7 %, M own +0.5 %; doubled: nothing on I and K."""
    same_firmware_work_scratch: int = 16_000
    """The same for a small model with an operator whose scratch is larger than its tensors, as on
    an ESP32-S3, where there is more to try. 10,000: V own +21 % there, nothing on P; 24,000: the
    same bytes on both."""
    same_firmware_work_large: int = 5_000
    """The same for a large model, where every evaluation takes long. Halved: nothing on C; larger
    networks not measured."""
    same_firmware_time_share: float = 0.4
    """Share of a time limit for the search without new operators; without a limit it is not read.
    What a limit leaves depends on the machine, so no figure of ours rests on it."""
    large_model: int = 120
    """A model with more operators is large: only some of its intervals are estimated, irregular
    parts are looked for, and child processes start at once. 0: I own +70 %, K all +6 %, V own +0.8
    %. Halved, doubled: nothing on I and K, which are small either way."""

    # --- shares of the work that is left, one for each mode ---

    mode_shares: tuple[tuple[float, ...], ...] = (
        (), (1.0,), (0.5, 1.0), (0.1, 0.6, 1.0), (0.1, 0.6, 0.5, 1.0),
    )  # fmt: skip
    """Entry n, for a search of n modes: the share of the remaining work that each mode may spend,
    in running order. The first mode mostly gives the others something to beat.
    Halved or doubled: nothing on I and K, halved: nothing on M, P, S and V, which do not spend
    them. All the work for whichever mode comes first: fronts of nasnet_mobile and densenet121 all
    +0.5 and +0.6 %."""
    segmentation_share: float = 0.75
    """Share of a mode's work for evaluating segments; the rest is for whole models. 0: I own +560
    %, squeezenet_11 +274 %, M own +54 %, mcunet_in3_176 all +55 %; halved, or 1: nothing on K, M,
    P, S, V and squeezenet_11, mcunet_in3_176 within 0.3 %; 1: nothing on nasnet_mobile, the front
    of densenet121 all -0.2 %. It bounds what a step may spend on parts of a model."""
    patch_share: float = 0.1
    """Share of the work that is left for patch stages: they seldom win. Halved: nothing on I, K,
    M, P, S and V."""

    # --- which intervals are estimated, and in how many parts ---

    part_counts: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96)
    """Part counts to estimate. Between the first and the last of them, those that divide the axis
    are estimated too: equal steps are a multiple of 16 bytes for some, and only then views. Without
    those above 10: I own +70 %; without those below 12: P own +18 %, V own +7 %, M own +4 %, fronts
    +9 %. Every second: V own +0.7 %, P all +0.9 %, its front +3.4 %."""
    coarse_part_counts: tuple[int, ...] = (2, 4, 6, 8, 12, 16, 24, 32, 48)
    """The same for large models; neighbours of a candidate try the counts between. Every second, or
    those up to 8 alone: nothing on C."""
    coarse_part_counts_kept_halo: tuple[int, ...] = (2, 4, 8, 16, 32)
    """The same where halos are kept: these estimates take longer. Every second, or either half:
    nothing on R and nasnet_mobile. The same counts as elsewhere: nothing on nasnet_mobile,
    densenet121 all -0.6 %, its front +0.6 %, for 1.2 of the seconds."""
    parts_without_gain_large: int = 2
    """Part counts in a row that lower no head, after which larger ones are skipped in a large
    model: intervals in more parts crowd out those that are worth an evaluation. Without the bound
    densenet121 all +7 %. Smaller models are estimated in all part counts."""
    interval_operators: int = 14
    """The longest interval from anywhere: longer ones recompute more than they save. Halved:
    P all +0.9 %, fronts of P and M +3.4 and +3.6 %, M own -0.3 %; doubled: nothing on I."""
    far_interval_operators: int = 90
    """The longest interval between two narrow positions: cells with several branches. Halved:
    nothing on I, K, P, S and V, the front of M -0.3 %."""
    narrow_starts: int = 14
    """Narrow positions before a narrow end at which intervals start. Halved: nothing on I, K, P,
    S and V, the front of M +0.1 %."""
    loop_rows: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16)
    """Rows a turn of a loop that are estimated; the first vain one is the last. Without 1 to 4: I
    all +51 %, P and M all +8 %; every second: P all +0.9 %, its front +3.4 %."""

    # --- segmentations ---

    instruction_steps: int = 200
    """Steps in which the dynamic program counts instructions: half a per cent of those allowed.
    Halved: nothing on K, M, P, S and V."""
    head_caps: int = 48
    """Caps on the head that are looked at in one round, about. Halved: M own +0.5 %, all +0.7
    %."""
    segmentations_at_once: int = 2
    """Segmentations that are offered together, so that two processes have work. 1: M own +0.5 %, P
    all +0.9 %, fronts +4.4 and +3.4 %; 4: nothing on I."""
    promise_tolerance: int = 100
    """A promise counts as broken when a model needs more by one part in so many. Halved or doubled:
    nothing on I; halved: the front of V +0.1 %, nothing on K, M, P and S."""
    promise_slack: int = 200
    """Where more operators are allowed, a segmentation that promises up to one part in so many more
    than the best model is still evaluated: promises are not exact. Without it, or with 1,000,
    resnet50 all +2 %; 60 and 120 are like 200 there. With the firmware's own operators there is no
    slack: mobilenet_v2_035_144 own would be +0.5 %."""
    branches: int = 24
    """Searches for a segmentation that avoids one segment of another that broke its promise. 0: D
    all +0.9 %, V all +0.4 %, the front of S +1.4 %, nothing on K and P."""
    batch: int = 36
    """Segments or neighbours that are evaluated in one round at most. 18: M own +1.2 %, V own
    +0.7 %, P all +0.9 %, fronts up to +8 %. 24: nothing on I, but
    squeezenet_11 own +1.8 % (x86-64); 48: mnasnet_a1 all +0.5 %, darts_imagenet all -0.9 % (both
    Cortex-M4). Else within 0.5 % on the networks and targets of docs/tiers.md."""
    variants_segment: int = 300
    """A segment with more operators, once tiled, is evaluated in one way only. 0: D all +2 %,
    P all +0.9 %, M own +0.5 %, fronts of M and P +3 to +6 %. Halved: nothing on K, M, P, S and
    V."""

    # --- whole models ---

    several_orders_model: int = 800
    """A larger tiled model is evaluated in one order, and its neighbours are not. 0: inception_v1
    own +5.2 %, P own +1.6 %, M own +1.3 %, squeezenet_11 all +0.9 %, fronts up to +40 %. Neighbours
    of models of up to 120 operators alone: yolov5n all +1.8 %."""
    unbound_retries: int = 4
    """Best models with bound views that are evaluated with unbound ones too. 0: darts_imagenet all
    +1.1 % (x86-64), randwire_224 all +0.2 %, fronts of squeezenet_11 own +2.6 % and densenet121 all
    +0.2 %, nothing on the arenas of the 15 other networks of docs/ablations.md."""
    neighboured_models: int = 2
    """Best models of which one region is changed at a time, once operators are spelled otherwise. 0
    or 1: V own +0.7 %, M own +0.5 %, the front of K +3.2 %. Before spellings, where
    near models take the places of others: mobilenet_v2_030_80 own +1.9 %; not in a large model:
    without them there randwire_224 own +0.9 %. Around every better model
    in turn, in each mode: nothing more on 13 networks."""
    neighbour_steps: tuple[int, ...] = (-2, -1, 1, 2)
    """By how much a neighbour's ends, part counts and rows differ. Only -2 and -1, only 1 and 2,
    only -2 and 1: P all +0.9 %, fronts of P and M up to +3.7 %, for 0.8 of the seconds."""
    backward_part_counts: tuple[int, ...] = (4, 8, 16)
    """Part counts of a single operator that is tiled backward. None are looked at on I, K and V;
    they keep a chain of six windows in its place (tests/tiling/test_backward_tiles.py)."""
    backward_operators: int = 12
    """Operators of a chain that are tiled backward, one at a time. 3, 6 or 24: the same bytes on
    chains of 6 and 14 windows, for 0.7 to 1.3 of the seconds."""
    patch_sides: tuple[tuple[int, int], ...] = ((2, 2), (4, 4), (1, 4))
    """Parts of rows and of columns of a patch stage. Seven more, up to (5, 5) and (2, 16): nothing
    on M, squeezenet_11, nasnet_mobile and densenet121, nor on the low images of
    tests/tiling/test_patches.py, which need these."""
    patch_stages: int = 8
    """Patch stages that are evaluated. 0: nothing on I, K, M, P, S, V and D; without patches of any
    kind a low image with wide windows needs 1.6 times the bytes (tests/tiling/test_patches.py)."""
    spelled_models: int = 40
    """Smallest models of which operators are spelled otherwise: the best one of vww_96_int8 was
    about the 30th before. None: M own +1.3 %, V own +0.7 %, the front of K +3.3 %; halved: the
    front of S +1.4 %, nothing on C, K, M, P and V."""
    spelled_fully: int = 12
    """Smallest models of which operators are spelled otherwise with full plans, whatever first fits
    would say: those mislead for the best model of mobilenet_v2_030_80 (4: own +0.9 %). 6: the
    front of K +3.3 %."""
    front_work: int = 16_000
    """Work of changing regions of all that the search offers. Hypervolume of the front without it,
    and with it: K 0.071, 0.114; P 0.130, 0.191; ds_cnn 0.095, 0.127; mcunet_in3_176 0.252, 0.265;
    V, mobilenet_v2_035_96 and issue_2513 within 1 %. 12,000: P 0.172; 24,000: the same."""
    front_least_gain: int = 50
    """A gain of the front is at least one part in so many of its bytes. 25: P all +0.9 %, fronts of
    K and P +2.6 and +5.1 %. 200: hypervolumes of V and
    mobilenet_v2_035_96 1 % larger, for 1.1 to 1.3 of the seconds."""
    front_batches_without_gain: int = 2
    """Batches of changed models without such a gain that end the step. 1: K 0.086, P 0.130; 3: like
    2."""
    finalists: int = 8
    """Whole models that are planned with care at the end. 0: P all +0.9 %, the front of S +1.4 %,
    nothing on I, K, M, V and D, for 0.64 to 0.99 of the seconds. 4: the same fronts on K, M, P, S
    and V. 4, with less work as below: darts all +2.4 %."""
    careful_work: int = 12_000
    """Work of planning with care, after the first model. 1,200 with 4 finalists, and no model of
    more than 600: darts all +2.4 %, densenet121 all +0.9 %, the same bytes on V, P,
    MobileNetV2 0.35@96, FBNet-A, ResNet50 and cnn_int8; 70 s in place of 71 on V, P, MobileNetV2
    and FBNet-A together."""

    # --- when a step that gains nothing ends ---

    segmentations_without_gain: int = 8
    """Segmentations in a row without gain that end a mode. Halved: V all +0.4 %; never: the work
    is spent before the front is refined, fronts of K and S +3.3 and +1.4 %."""
    segmentations_without_gain_scratch: int = 24
    """The same for a small model with an operator whose scratch is larger than its tensors: the
    most promising segmentations are those whose scratch is not at the peak, and look alike. With 8,
    P own on an ESP32-S3 (1.2.3) +3 %, and nothing at all was found with 15 % more instructions; V
    and K come to the same bytes there, in the same seconds."""
    attempts_without_gain: int = 2
    """Orders around hotspots without gain that end the step. Halved: nothing on C."""

    # --- hotspots of irregular graphs: C, D and R lose nothing without any, so nasnet_mobile, a
    # network of the kind that they were made for, says more ---

    hotspot_caps: tuple[Fraction, ...] = tuple(Fraction(n, 16) for n in (12, 8, 6, 5, 4, 3, 2))
    """Heads to aim at, relative to the present one. The first three alone: nasnet_mobile all +3.7
    %; every second, or the last four: nothing on it."""
    hotspot_prices: tuple[int, ...] = (32, 64, 256, 1024)
    """An operator more in a hotspot costs one part in so many of the cap. The last two
    alone: nasnet_mobile all +13 %; every second, or the first two: nothing on it."""
    hotspots_of_cap: int = 64
    """With more operators than this above a cap, the cap is given up. Halved or doubled: nothing
    on R."""
    hotspot_tile_share: int = 16
    """Tiles are assumed to need one part in so many of their largest operator. Halved:
    nasnet_mobile all +0.8 %; doubled: nothing on it."""
    hotspot_halo_share: int = 4
    """Halos may come to one part in so many of the assumed bytes at best. Halved or doubled:
    nothing on C and nasnet_mobile."""
    hotspot_orders: int = 12
    """Most promising orders whose hotspots are evaluated in tiles. 0: nasnet_mobile all +13 %
    (x86-64 +12 %), nasnet_cifar all +9 % (x86-64 +8 %), darts_imagenet all +2 %, darts_cifar all +2
    %, nothing on D, R, yolov5n and densenet121, for 0.9 of the seconds. 6: nasnet_cifar all +9 %,
    darts_imagenet all +2 %, darts_cifar all +2 %, nasnet_mobile all +1 %."""
    hotspot_work: int = 12_000
    """Work of one hotspot in all its part counts; and of all hotspots, after which no further
    order is looked at. Halved: nothing on C."""
    hotspot_tile_rows: tuple[int, ...] = (12, 6, 4, 2, 1)
    """Rows of a tile, of the result with the fewest rows, the largest first. The first two
    alone: nasnet_mobile all +1.2 %; the last three: +3.1 %; every second: nothing on it."""
    hotspot_finer_tiles: int = 2
    """Tiles for each row of that result, where tensors inside have twice as many rows as such
    tiles. 1, 4, or no finer ones: nothing on R and nasnet_mobile; where the head is to be small,
    nasnet_mobile's smallest tiles are half a row (docs/tiers.md)."""
    hotspot_excess: float = 1.25
    """Larger tiles are skipped once they need this many times the bytes of the smallest, where the
    head is to be small. 1.0 or 2.0: nothing on the head of nasnet_mobile (x86-64), 0.96 and 1.04 of
    the seconds."""

    # --- orders, and the beam search of MOTES ---

    contracted_order_states: int = 5_000
    """States of the search for an order of contracted regions: it mostly ends long before."""
    beam_steps: int = 12
    """Steps of the beam search; the paper needs "generally less than 5"."""

    # --- child processes: these change the time, never the result ---

    jobs_before_processes: int = 8
    """Jobs before the first child starts. A child takes 1.0 s of processor time until it can work,
    as long as some 20 evaluations of a model of 36 operators (cnn_int8); a search mostly goes on
    for hundreds once it has made a few."""
    child_poll_seconds: float = 0.02
    """Seconds between two looks at a child that is still starting: less than one evaluation takes,
    0.03 to 0.1 s on cnn_int8 and V."""


DEFAULT_BUDGET = SearchBudget()


@dataclass
class WorkBudget:
    """Counts the work of one search, and of the step that it is in.

    remaining: operators that the search may still plan. total: those that it might at first.
    """

    remaining: int
    total: int = 0
    _first_part_end: int = 0
    """`remaining` at which the step has spent its first part."""
    _step_end: int = 0
    """`remaining` at which the step has spent its whole share."""

    def __post_init__(self) -> None:
        self.total = self.remaining

    @property
    def share_spent(self) -> float:
        """Of the whole search, 0 to 1."""
        return min(1 - self.remaining / max(self.total, 1), 1.0)

    def begin_step(self, share: float, first_part: float = 1.0) -> None:
        """Begin a step that may spend `share` of the remaining work. `is_first_part_spent` says
        when `first_part` of that is spent, `is_step_spent` when all of it is."""
        step_work = int(self.remaining * share)
        self._step_end = self.remaining - step_work
        self._first_part_end = self.remaining - int(step_work * first_part)

    def spend(self, work: int) -> None:
        """Count operators that were planned."""
        self.remaining -= work

    @property
    def first_part_remaining(self) -> int:
        """Operators that the step's first part may still plan."""
        return max(self.remaining - self._first_part_end, 0)

    @property
    def is_first_part_spent(self) -> bool:
        """Whether the step has spent its first part."""
        return self.remaining <= self._first_part_end

    @property
    def is_step_spent(self) -> bool:
        """Whether the step has spent its whole share: the rest belongs to later steps."""
        return self.remaining <= self._step_end


@dataclass
class EarlyStop:
    """Ends a step that gains nothing any more."""

    max_attempts: int
    """Attempts in a row without gain that end the step."""
    best: int
    """The best bytes so far."""
    least_gain: int | None = None
    """A gain is more than one part in so many of the best bytes. None: any is one."""
    attempts_left: int = 0

    def __post_init__(self) -> None:
        self.attempts_left = self.max_attempts

    def record(self, best_bytes: int, attempts: int = 1) -> None:
        """Record the best bytes known after some attempts."""
        least = 0 if self.least_gain is None else self.best // self.least_gain
        gained = best_bytes < self.best - least
        self.best = best_bytes if gained else self.best
        self.attempts_left = self.max_attempts if gained else self.attempts_left - attempts

    @property
    def is_due(self) -> bool:
        """Whether enough attempts gained nothing."""
        return self.attempts_left <= 0
