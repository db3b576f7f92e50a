"""How much the search may do: `SearchBudget` has its tuning constants.

Work is counted in operators that evaluations plan. Searches end by counts, not by seconds, so that
the same model gives the same tiling on every machine. This module must not know what is planned,
nor what an evaluation finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class SearchBudget:
    """Every tuning constant of the search, with the reason for its value.

    Work and sizes of models are counted in operators. `benchmarks/ablation.py` measured what other
    values change (docs/ablations.md). "Halved: vww own +0.7 %" means: with half of the value, the
    smallest arena found for vww is 0.7 % larger. "own" is a search without new operators, "all" one
    with all operators. "Front" is the number of bytes within a slowdown, as an average over the
    permitted slowdowns. The seconds are those of a search. "Not measured" means that no network
    shows what another value would change, or that nobody measured it. "No change
    (main)" names the tables of docs/ablations.md that list the networks: "main" is the first one,
    "hotspots" the one on nasnet_mobile, "no effect" and "arena alone" those under these words.

    kws is kws_ref_model, mnv2 mobilenet_v2_035_96, resnet_q pretrainedResnet_quant, vww
    vww_96_int8, "cells" are those of `benchmarks/cells.py`; other networks have their full names.
    """

    # --- work of a whole search ---

    search_work: int = 24_000
    """Work of one search of segments, in all its modes. Halved: mcunet_in3_176 all +0.3 %; doubled:
    its front -2.4 % in 1.15 times the work (main). Smaller networks leave much of it unspent."""
    same_firmware_work: int = 10_000
    """Work of the search without new operators: the search with all operators finds most of the
    same tilings. Halved: mcunet_in3_176 own +1.0 %, front of kws +5.3 %; doubled: mcunet_in3_176
    own -0.3 %, no other change (main)."""
    same_firmware_work_scratch: int = 16_000
    """The same for a small model with an operator whose scratch is larger than its tensors, as on
    an ESP32-S3: there are more tilings to try. 10,000: vww own +21 % there, no change on resnet_q;
    24,000: no change on either."""
    same_firmware_work_large: int = 5_000
    """The same for a large model, where every evaluation takes long. Halved: no change on cells;
    not measured on larger networks."""
    same_firmware_time_share: float = 0.4
    """Share of a time limit for the search without new operators; not used without a limit. What is
    found within a limit depends on the machine, so no figure of ours depends on this value."""
    large_model: int = 120
    """A model with more operators is large: only some of its intervals are estimated, hotspots are
    searched, and child processes start at once. 0: issue_2513 own +70 %, resnet_q own +18 %,
    squeezenet_11 own +10 %, front of kws +13 %. Halved: mcunet_in3_176 own -0.3 %, all +0.2 %, its
    front +2.2 %; doubled: no change (main, arena alone)."""

    # --- shares of the work that is left, one for each mode ---

    mode_shares: tuple[tuple[float, ...], ...] = (
        (), (1.0,), (0.5, 1.0), (0.1, 0.6, 1.0), (0.1, 0.6, 0.5, 1.0),
    )  # fmt: skip
    """Entry n is for a search of n modes: the share of the remaining work that each mode may spend,
    in running order. The first mode mainly gives the other modes a result to improve on. All the
    work for the mode that comes first: fronts of nasnet_mobile and densenet121 all +0.5 and +0.6 %.
    Halved: mcunet_in3_176 own +0.7 %, all -0.1 %; doubled: own -0.3 %, all -0.1 %; no other change
    (main, arena alone)."""
    segmentation_share: float = 0.75
    """Share of a mode's work for evaluating segments; the rest is for whole models. It limits what
    a step may spend on parts of a model. 0: issue_2513 own +560 %, squeezenet_11 own +223 %, mnv2
    own +56 %, mcunet_in3_176 all +54 %; halved, or 1: mcunet_in3_176 all -0.1 %, front of
    densenet121 all -0.2 %, no other arena (main, no effect, arena alone)."""
    patch_share: float = 0.1
    """Share of the remaining work for patch stages, which are seldom the best. Halved or doubled:
    no change (main, arena alone)."""

    # --- which intervals are estimated, and in how many parts ---

    part_counts: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96)
    """Part counts to estimate. All divisors of the axis' length between the first and the last of
    them are estimated too: only with equal parts can the step be a multiple of 16 bytes, which
    views need. Without those above 10: issue_2513 own +70 %, squeezenet_11 own +8.6 %; without
    those below 12: mcunet_in3_176 own +35 %, resnet_q own +18 %, squeezenet_11 own +11 %, front of
    kws +13 %. Every second: vww own +0.7 %, front of ds_cnn all +4.4 %."""
    coarse_part_counts: tuple[int, ...] = (2, 4, 6, 8, 12, 16, 24, 32, 48)
    """The same for large models; `neighbours` of a candidate try the counts in between. Every
    second, or only those up to 8: no change on cells."""
    coarse_part_counts_kept_halo: tuple[int, ...] = (2, 4, 8, 16, 32)
    """The same where halos are kept, because these estimates take longer. Every second, or either
    half: no change (hotspots), nor on randwire. The same counts as without halos: densenet121 all
    -0.6 %, its front +0.6 %, in 1.2 times the seconds (no effect)."""
    parts_without_gain_large: int = 2
    """In a large model, once this many part counts in a row lower no head, larger ones are skipped:
    intervals in more parts would displace those that are worth an evaluation. Without this limit
    densenet121 all +7 %. Smaller models are estimated in all part counts."""
    interval_operators: int = 14
    """The longest interval that may begin anywhere: longer ones recompute more than they save.
    Halved: front of squeezenet_11 own +1.4 %, mcunet_in3_176 own -0.3 %; doubled: front of
    squeezenet_11 all +0.4 %, no arena (main)."""
    far_interval_operators: int = 90
    """The longest interval between two narrow positions: cells with several branches. Halved or
    doubled: no change (main, arena alone)."""
    narrow_starts: int = 14
    """For an interval that ends at a narrow position: how many of the narrow positions before it
    may be its start. Halved: front of mcunet_in3_176 all -2.6 %, no arena; doubled: no change
    (main, arena alone)."""
    loop_rows: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16)
    """Numbers of rows per turn of a loop to estimate, in this order; the first one without gain
    ends them. Without 1 to 4: issue_2513 all +51 %, squeezenet_11 all +18 %, resnet_q all +9 %,
    mnv2 all +7 %; every second: mcunet_in3_176 all -0.1 %, no other arena (main, arena alone)."""

    # --- segmentations ---

    slowdown_slack: float = 0.005
    """Where fewer instructions are allowed, parts of a model are looked at that by an estimate cost
    this share of them. With 0 and no instruction more allowed issue_2513 keeps 349,048 B, where
    52,768 (own) and 36,592 B are faster; 0.02 and 0.1: as with 0.005 on six networks."""
    free_parts_work: int = 8_000
    """The same: work of models with one part tiled and spelled otherwise at once. 0 or 3,000:
    cnn_int8 own keeps 91,180 B, where 80,632 are faster; 6,000 or 24,000: as with 8,000."""
    free_gap_work: int = 24_000
    """The same: work of closing gaps of the front. With the three constants that other searches
    have, squeezenet_11 own keeps 828,020 B, where 472,332 are as fast."""
    free_gap_batches_without_gain: int = 3
    """The same: batches of changes without gain that end it. Not measured alone."""
    free_gap_least_gain: int = 1_000
    """The same: a gain of the front is at least 1/1,000 of its bytes. Not measured alone."""
    channel_parts_work: int = 8_000
    """Work of models with one part tiled along its channels, which may save instructions, in each
    mode. squeezenet_11 has 4 and 8 such models (174 and 348), most networks none; unrolled
    GRUs have hundreds: of 16 steps 105,000 and 134,000, of 32 steps four times as much, whose plans
    take 22 and 37 s in place of 50 and 177 so, for the same arenas (busy cores)."""
    lower_limits: tuple[float, ...] = (0.2, 0.05)
    """Segmentations are looked for once more within these shares of the instructions that may be
    added, after what is smallest was refined. Hypervolumes of the front with own operators without
    it, and with it: mobilenet_v2_100_224 0.603, 0.653; squeezenet_11 0.650, 0.663;
    mobilenet_v2_035_144 0.530, 0.531; kws the same. (0.2, 0.05, 0.02): squeezenet_11 as with two.
    Before spellings are tried: mobilenet_v2_100_224 0.658, squeezenet_11 0.661, but mcunet_in3_176
    own +0.8 %."""
    lower_limit_work: int = 1_000
    """Work of each of them, for each mode, whatever was spent before. 2,000: squeezenet_11
    0.6635 in place of 0.6630."""
    instruction_steps: int = 200
    """Number of steps in which the dynamic program counts the permitted instructions: half a per
    cent each. Halved: mcunet_in3_176 all +0.2 %, front of squeezenet_11 own +1.2 %; doubled: front
    of squeezenet_11 all +1.5 % (main)."""
    head_caps: int = 48
    """Approximate number of caps on the head that are tried in one round. Halved: mcunet_in3_176
    own +0.8 %; doubled: squeezenet_11 own +2.3 %, mcunet_in3_176 own +0.5 % (main)."""
    segmentations_at_once: int = 2
    """Segmentations that are evaluated together, so that two processes have work. 1: mcunet_in3_176
    own +0.7 %, its front +1.4 %; 4: mcunet_in3_176 own +0.7 %, fronts of squeezenet_11 +2.5 and
    +2.7 % (main)."""
    promise_tolerance: int = 100
    """A promise counts as broken if a model needs more than it by 1/100. Halved: squeezenet_11 own
    +1.9 %, mnv2 own +0.3 %; doubled: no arena (main)."""
    promise_slack: int = 200
    """Where more operators are permitted, a segmentation whose promise exceeds the best model's
    bytes by up to 1/200 is still evaluated, because promises are not exact. Without it, or with
    1,000, resnet50 all +2 %; 60 and 120 give there the same as 200. Without new operators nothing
    is added to a promise: mobilenet_v2_035_144 own would be +0.5 %."""
    branches: int = 24
    """Number of searches for a segmentation that avoids one segment of another whose promise was
    broken. 0: darts all +0.9 %, mcunet_in3_176 own +0.7 %, mnv2 own and vww all +0.3 %, front of
    ds_cnn all +4.4 %; halved or doubled: no change (main)."""
    batch: int = 36
    """Largest number of segments or neighbours that are evaluated in one round. 18: squeezenet_11
    own +1.0 %, vww own +0.7 %, fronts up to +4.4 %; 72: squeezenet_11 own +0.3 %, front of kws +2.6
    % (main). 24: squeezenet_11 own +1.8 % (x86-64); 48: mnasnet_a1 all +0.5 %, darts_imagenet all
    -0.9 % (both Cortex-M4). All others within 0.5 % on the networks and targets of
    docs/tiers.md."""
    variants_segment: int = 300
    """A segment that has more operators once it is tiled is evaluated in one variant only. 0: darts
    all +2 %, resnet_q all +4.8 %, squeezenet_11 own +3.1 %, fronts up to +6.4 %. Halved or doubled:
    no change (main, arena alone)."""

    # --- whole models ---

    several_orders_model: int = 800
    """A larger tiled model is evaluated in one order only, and its neighbours are not. 0:
    inception_v1 own +5.2 %, resnet_q all +4.8 %, squeezenet_11 own +3.3 %, mcunet_in3_176 own +1.8
    %, mnv2 own +1.1 %, fronts up to +10 % (main). Neighbours only for models of up to 120
    operators: yolov5n all +1.8 %."""
    unbound_retries: int = 4
    """How many of the best models with bound views are evaluated with unbound views too. 0:
    darts_imagenet all +1.1 % (x86-64), randwire_224 all +0.2 %, front of densenet121 all +0.2 %; no
    change on smaller networks (main, no effect). 8: front of ds_cnn all +4.4 %."""
    neighboured_models: int = 4
    """After operators were spelled otherwise: how many of the best models have one region changed
    at a time. 2: front of kws +5.3 %, no arena, in 0.96 times the seconds; 8: no change but 0.1 %
    of a front, in 1.04 to 1.07 times; 0: mcunet_in3_176 own +0.9 %, vww own +0.7 %, fronts of kws
    +5.3 % and ds_cnn all +4.4 % (main). If this step comes before the spellings, similar models
    displace others: mobilenet_v2_030_80 own +1.9 %. It is done in large models too: without it,
    randwire_224 own +0.9 %. Doing it for every better model in each mode: no further gain on 13
    networks."""
    climbs_among_loops: int = 2
    """Where so many of the best models have no loop: how often the best model with one is changed.
    4: pretrainedResnet_quant all on a Cortex-M55 +1.8 %, because one of four has a loop there.
    Without doing so once more after `lower_limits`: pretrainedResnet_quant all +3.1 %."""
    neighbour_steps: tuple[int, ...] = (-2, -1, 1, 2)
    """Differences of a neighbour's ends, part counts and rows. Only -2 and -1, or only 1 and 2:
    mcunet_in3_176 own +0.8 and +0.9 %; only -2 and 1: squeezenet_11 and mcunet_in3_176 own -0.8 and
    -0.3 %; each: front of kws +2.6 %, others up to +4.4 %, in 0.9 times the seconds (main)."""
    growth_steps: tuple[int, ...] = (-20, 20, -30, 30)
    """Differences of the growth of a region's parts, in per cent. Only -20 and -30:
    mobilenet_v2_100_224 and squeezenet_11 own +2.2 and +2.0 %; only -20 and 20: squeezenet_11 own
    +0.4 %, mobilenet_v2_100_224 own +0.2 %; only -30 and 30: mobilenet_v2_035_144 own +0.2 %,
    squeezenet_11 own -0.8 %, in 0.97 times the seconds (main). -25 and 25: mnv2 and
    mobilenet_v2_035_144 own +0.9 and +1.0 %, mobilenet_v2_030_80 with -20 and 20 +0.7 %."""
    resized_batch: int = 12
    """How many models with resized parts are evaluated before the smallest is changed further. 6:
    squeezenet_11 own +0.9 %; 24: mobilenet_v2_100_224 own +0.7 %, mcunet_in3_176 own +0.5 %,
    squeezenet_11 own -0.4 % (main)."""
    resizing_work: int = 8_000
    """Work of resizing parts of the smallest model; what comes near the front is evaluated in more
    tile orders, which are not counted. 0: squeezenet_11 own +2.6 %, mobilenet_v2_100_224 own +2.2
    %, 0.35@144 own +1.4 %, mnv2 own +1.1 %, mcunet_in3_176 own +0.8 %; doubled:
    mobilenet_v2_100_224 own -0.6 %; the others do not spend it all (main)."""
    promising_change: int = 64
    """A changed model is evaluated in one tile order only where it needs more bytes than the
    smallest tiling that is as fast, by more than 1/64. All models in both orders, with own
    operators: the same arenas and fronts on kws, resnet_q, vww, mobilenet_v2_030_80 and
    squeezenet_11, and the same to 0.2 % on mnv2, in up to 1.46 times the evaluations. 16: 1.05 to
    1.16 times."""
    backward_part_counts: tuple[int, ...] = (4, 8, 16)
    """Part counts of a single operator that is tiled backward. None are tried on issue_2513, kws
    and vww; tests/tiling/test_backward_tiles.py has a chain of six windows that needs them."""
    backward_operators: int = 12
    """Number of operators of a chain that are tiled backward, one at a time. 3, 6 or 24: the same
    bytes on chains of 6 and 14 windows, in 0.7 to 1.3 times the seconds."""
    patch_sides: tuple[tuple[int, int], ...] = ((2, 2), (4, 4), (1, 4))
    """(parts along rows, parts along columns) of a patch stage. Images with few rows
    (tests/tiling/test_patches.py) need these; seven more, up to (5, 5) and (2, 16): no change (no
    effect)."""
    patch_stages: int = 8
    """Number of patch stages that are evaluated. Without any, an image with few rows and wide
    windows needs 1.6 times the bytes (tests/tiling/test_patches.py); no other change (main, no
    effect, arena alone)."""
    spelled_models: int = 40
    """Number of smallest models for which other spellings are tried: the best model of vww was made
    from about the 30th smallest. None: vww own +0.7 %, fronts of kws +7.8 % and ds_cnn all +4.4 %;
    halved: front of ds_cnn all +4.4 %, no other change (main), none on cells."""
    spelled_fully: int = 12
    """Number of smallest models for which other spellings are tried with full plans, whatever first
    fits predict: first fits mislead for the best model of mobilenet_v2_030_80 (4: own +0.9 %). 6 or
    24: no change (main)."""
    front_work: int = 16_000
    """Work of changing regions of all models of the Pareto front. Hypervolume of the front without
    it, and with it: kws 0.071, 0.114; resnet_q 0.130, 0.191; ds_cnn 0.095, 0.127; mcunet_in3_176
    0.252, 0.265; vww, mnv2 and issue_2513 within 1 %. 12,000: resnet_q 0.172; 24,000: no change."""
    front_least_gain: int = 50
    """A gain of the front is at least 1/50 of its bytes. 25 and 100: no change (main). 200:
    hypervolumes of vww and mnv2 1 % larger, in 1.1 to 1.3 times the seconds."""
    front_batches_without_gain: int = 3
    """Number of batches of changed models without such a gain that end the step. Hypervolumes with
    1: kws 0.086, resnet_q 0.130; with 2: kws 0.079 in place of 0.117, cnn_int8 0.144 in place of
    0.153, both with own operators; with 4: as with 3 (kws with regions changed one after the
    other; in turn, 5 and 8: as with 3)."""
    settling_gain: int = 1_000
    """In a large model parts are resized and gaps closed only if changing the regions of the front
    gained at least 1/1000 of its bytes. Always: nasnet_mobile own -0.1 %, in 1.4 times the seconds
    of a processor. 200: darts_cifar own +1.4 %, all +0.5 %; no change on densenet121, fpnas_like,
    darts, darts_imagenet, mcunet_like_se_224, nasnet_cifar, randwire, randwire_224 and yolov5n."""
    finalists: int = 8
    """Number of whole models that are planned with more effort at the end. 0: squeezenet_11 own
    +0.2 %, front of ds_cnn all +4.4 %, in 0.95 times the seconds; 4 or 16: no change (main), but 4
    with less work as below darts all +2.4 %."""
    careful_work: int = 12_000
    """Work of planning with more effort, after the first model. 1,200 with 4 finalists, and only
    models of up to 600 operators: darts all +2.4 %, densenet121 all +0.9 %, the same bytes on vww,
    resnet_q, mnv2, FBNet-A, ResNet50 and cnn_int8; 70 s instead of 71 on vww, resnet_q, mnv2 and
    FBNet-A together."""
    gap_work: int = 6_000
    """Work of closing gaps of the front, at the end. Hypervolumes of the front with own operators
    without it, and with it: kws 0.128, 0.153; squeezenet_11 0.558, 0.648; mobilenet_v2_100_224
    0.482, 0.603; mnv2, vww, ds_cnn, resnet_q and cnn_int8 within 0.3 %; in 1.02 to 1.45 times the
    evaluations. 12,000 and 24,000: 1.0@224 0.644 and 0.646, in 1.86 and 2.07 times; squeezenet_11
    does not spend it all."""
    gap_batch: int = 18
    """How many models with one region changed are evaluated before several regions are changed at
    once. 9: fronts of ds_cnn all +1.9 % and squeezenet_11 own +1.7 %; 36: fronts up to -0.4 %, in
    1.05 times the seconds (main)."""
    gap_batches_without_gain: int = 1
    """Number of such batches without gain that end the step. 0: fronts of kws +3.0 % and
    squeezenet_11 own +2.6 %; 2: fronts up to -0.3 %, in 1.05 times the seconds (main)."""
    gap_least_gain: int = 100
    """A gain of the front is at least 1/100 of its bytes. 50: fronts of kws and squeezenet_11 own
    +1.5 and +1.2 %; 200: front of mnv2 all -0.2 % (main)."""

    # --- models searched again, as if operators were spelled in their freest way ---

    anticipating_operators: int = 40
    """Only a model with more operators is searched so, without new operators. densenet121 own -8.6
    % in 2.6 times the seconds of that search, darts own -1.1 % in 1.6 times, fpnas_like the same.
    mobilenet_v2_035_144 own -1.5 % and its hypervolume 0.494 in place of 0.448, mobilenet_v2_035_96
    own -0.5 %, 1.0@224 and mcunet_in3_176 the same bytes and hypervolumes of 0.482 and 0.264 in
    place of 0.420 and 0.240, in 1.3 to 2.5 times the seconds. In smaller models it would bring vww
    0.3 %, kws and resnet_q nothing."""
    anticipating_least_gain: int = 10
    """And only where tiles of the search before gained 1/10 of the arena of the best order: beside
    tiles that bring little (nasnet_cifar, 4 %) other spellings do not bring more. nasnet_mobile, 8
    %: -1.3 % in four times the seconds; darts_imagenet, 5 %: -2.3 % in twice the seconds."""

    # --- when a step that gains nothing ends ---

    segmentations_without_gain: int = 8
    """Number of segmentations in a row without gain that end a mode. Halved: vww all +0.3 %;
    doubled, or never: the work is spent before the front is refined, front of ds_cnn all +4.4 %
    (main)."""
    segmentations_without_gain_scratch: int = 24
    """The same for a small model with an operator whose scratch is larger than its tensors: the
    segmentations with the lowest promises are those whose scratch is not at the peak, and they are
    similar. With 8, resnet_q own on an ESP32-S3 (1.2.3) +3 %, and with 15 % more instructions
    nothing was found at all; vww and kws have the same bytes there in the same seconds."""
    attempts_without_gain: int = 2
    """Number of orders around hotspots without gain that end the step. Halved: no change on
    cells."""

    # --- hotspots of irregular graphs: without any, cells, darts and randwire lose nothing, so
    # nasnet_mobile, the kind of network that they were made for, was measured instead ---

    hotspot_caps: tuple[Fraction, ...] = tuple(Fraction(n, 16) for n in (12, 8, 6, 5, 4, 3, 2))
    """Heads to aim at, relative to the present one. Only the first three: nasnet_mobile all +3.7 %;
    every second, or only the last four: no change (hotspots)."""
    hotspot_prices: tuple[int, ...] = (32, 64, 256, 1024)
    """Each operator added to a hotspot costs 1/32 (1/64, ...) of the cap. Only the last two:
    nasnet_mobile all +13 %; every second, or only the first two: no change (hotspots)."""
    hotspots_of_cap: int = 64
    """A cap with more hotspots than this is skipped. Halved or doubled: no change on randwire."""
    hotspot_tile_share: int = 16
    """Tiles are assumed to need 1/16 of the bytes of their largest operator. Halved: nasnet_mobile
    all +0.8 %; doubled: no change on it."""
    hotspot_halo_share: int = 4
    """The optimistic estimate assumes 1/4 of the bytes of the halos. Halved or doubled: no change
    on cells and nasnet_mobile."""
    hotspot_orders: int = 12
    """Number of most promising orders whose hotspots are evaluated in tiles. 0: nasnet_mobile all
    +13 % (x86-64 +12 %), nasnet_cifar all +9 % (x86-64 +8 %), darts_imagenet all +2 %, darts_cifar
    all +2 %, no change on darts, randwire, yolov5n and densenet121, in 0.9 times the seconds. 6:
    nasnet_cifar all +9 %, darts_imagenet and darts_cifar all +2 %, nasnet_mobile all +1 %."""
    hotspot_work: int = 12_000
    """Limit of work for one hotspot in all its part counts; and for all hotspots: once it is spent,
    no further order is tried. Halved: no change on cells."""
    hotspot_tile_rows: tuple[int, ...] = (12, 6, 4, 2, 1)
    """Rows of a tile, counted in the result with the fewest rows; the largest first. Only the first
    two: nasnet_mobile all +1.2 %; only the last three: +3.1 %; every second: no change on it."""
    hotspot_finer_tiles: int = 2
    """Tiles for each row of that result, where tensors inside have at least twice as many rows as
    there are such tiles. 1, 4, or no finer ones: no change on randwire and nasnet_mobile; with the
    objective "head", nasnet_mobile's smallest tiles have half a row (docs/tiers.md)."""
    hotspot_excess: float = 1.25
    """With the objective "head": larger tiles are skipped once they need this many times the bytes
    of the smallest ones. 1.0 or 2.0: no change of the head of nasnet_mobile (x86-64), in 0.96 and
    1.04 times the seconds."""

    # --- orders, and the beam search of MOTES ---

    contracted_order_states: int = 5_000
    """States of the search for an order of contracted regions; it usually ends long before that."""
    beam_steps: int = 12
    """Steps of the beam search; the paper needs "generally less than 5"."""

    # --- child processes: these change the time, never the result ---

    jobs_before_processes: int = 8
    """Number of jobs before the first child starts. A child takes 1.0 s of processor time to start,
    as long as some 20 evaluations of a model of 36 operators (cnn_int8); a search that has made a
    few evaluations usually goes on to make hundreds."""
    child_poll_seconds: float = 0.02
    """Seconds between two polls of a child that is still starting: less than one evaluation takes,
    0.03 to 0.1 s on cnn_int8 and vww."""


DEFAULT_BUDGET = SearchBudget()
