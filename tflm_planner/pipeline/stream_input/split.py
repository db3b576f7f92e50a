"""Finds where to split a model so that front and back together need the least SRAM.

    split_points  --(the lowest bound first)-->  pairs  --(the best, until one is proved)-->  result

With every further operator the front grows (by halos, and by rows times the product of strides) and
the back shrinks; the boundary between them counts, too. Split points are tried in the order of a
lower bound, first planned without tiles, then with tiles as long as that could still be better. It
must not know runtimes: `prove` is a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tflm_planner.model.edit import number_origins
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.options import StreamOptions
from tflm_planner.pipeline.planning.planning_result import leave_unproved
from tflm_planner.pipeline.planning.refusals import MOST_REFUSED, Proof
from tflm_planner.pipeline.planning.tiling_attempts import REFUSED
from tflm_planner.pipeline.stream_input.pairs import StreamedPair, plan_split
from tflm_planner.pipeline.stream_input.shortlist import SplitPoint, most_tiled
from tflm_planner.pipeline.stream_input.split_points import (
    end_when_clean,
    numbers_in_file,
    points_by_geometry,
    split_points,
)
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop
from tflm_planner.support.units import align_up
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize

_QUICK_EFFORT = 0.1
"""Effort of packing for a plan that only helps to choose where to split. With all rounds of local
search `stream-input cnn_int8.tflite --search none` takes 31.5 s of a processor in place of 9.2;
its pair, and those of vww, ResNet8 and mobilenet_v2_030_80, are the same."""

_FULL_EFFORT_GAIN = 0.01
"""By which part of its bytes all effort is expected to lower the best pair without tiles: others
that need more than that are not planned again. Without this limit mcunet_in3_176 takes 17.7 s of a
processor in place of 12.0; the pairs of eleven networks on a Nano 33 BLE are the same."""


def split_for_rows(
    data: bytes,
    options: StreamOptions,
    *,
    prove: Callable[[StreamedPair], Proof] = leave_unproved,
    on_progress: Progress = silent,
    stop: Stop | None = None,
) -> tuple[StreamedPair, Proof]:
    """The front and back of the model in `data` that together need the least SRAM and that `prove`
    does not refuse. After a refused pair, the next best one is tried, which is split elsewhere, or
    at the same place without tiles in the back. If all are refused, the last one is returned.
    `stop`: can end all searches; one split is made in any case.

    Raises ModelError if the input cannot be streamed at all, UsageError if it cannot be streamed
    with these options, and UnsoundPlanError if a guard refuses every split."""
    model, options = _cleaned_up(data, options)
    stop = stop or Stop(options.memory.time_limit)
    on_progress(f"looking where a model of {len(model.main.ops)} operators can be split")
    search = _SplitSearch(model, options, on_progress, split_points(model, options), stop)
    best, proof = _first_proved(search, prove)
    return replace(best, ops=numbers_in_file(model, best.ops)), proof


def least_sram(data: bytes, options: StreamOptions) -> int:
    """A lower bound of the bytes of SRAM of every pair that `split_for_rows` can make of the model
    in `data`. Raises ModelError or UsageError as it does."""
    model, options = _cleaned_up(data, options)
    points, _ = points_by_geometry(model, options)
    points = points or split_points(model, options)  # which says why there is none
    return min(points).least_sram


def _cleaned_up(data: bytes, options: StreamOptions) -> tuple[Model, StreamOptions]:
    """The model in `data`, cleaned up, and the options with the front's end in that model."""
    model = read_model(data)
    number_origins(model)
    last = len(model.main.ops) - 1
    run(model, Normalize())
    return model, replace(options, end=end_when_clean(model, options.end, last))


def _first_proved(
    search: _SplitSearch, prove: Callable[[StreamedPair], Proof]
) -> tuple[StreamedPair, Proof]:
    """The best pair that `prove` does not refuse; the last one if all are refused."""
    best = search.first()
    for _ in range(MOST_REFUSED):
        proof = prove(best)
        if proof.refusal is None:
            return best, proof
        search.drop(best, f"{REFUSED}: {search.describe(best)}: {proof.refusal}")
        following = search.best()
        if following is None:
            return best, proof
        best = following
    return best, prove(best)


class _SplitSearch:
    """The splits of a model. Each is planned only as long as it may be the best: first without
    tiles, then with tiles if that could be better."""

    def __init__(
        self,
        model: Model,
        options: StreamOptions,
        on_progress: Progress,
        points: Sequence[SplitPoint],
        stop: Stop,
    ) -> None:
        self._model, self._options, self._stop = model, options, stop
        self._on_progress = on_progress
        self._points = list(points)
        self._without_tiles: dict[tuple[int, ...], StreamedPair] = {}
        self._with_tiles: dict[tuple[int, ...], StreamedPair | None] = {}
        self._refused: list[str] = []
        self._first_fault: UnsoundPlanError | None = None

    def first(self) -> StreamedPair:
        """The best split. Raises UnsoundPlanError if a guard refuses every split."""
        best = self.best()
        if best is None:
            assert self._first_fault is not None
            raise self._first_fault
        return best

    def best(self) -> StreamedPair | None:
        """The best split that was not dropped. Its `refused` lists those that were."""
        best = self._best()
        return None if best is None else replace(best, refused=tuple(self._refused))

    def _best(self) -> StreamedPair | None:
        best: StreamedPair | None = None
        for pair in (*self._without_tiles.values(), *self._with_tiles.values()):
            best = best if pair is None else self._better(best, pair)
        while self._points and not self._is_beaten(self._points[0], best):
            point = self._points.pop(0)
            self._on_progress(f"splitting behind {self._model.main.ops[point.ops[-1]].label}")
            plain = self._plan(point.ops, point.rows, _quick_options(self._options))
            if plain is not None:
                self._without_tiles[point.ops] = plain
                best = self._better(best, plain)
        if best is None:
            return None
        fast_enough = best.slowdown <= self._options.max_slowdown
        for plain in sorted(self._without_tiles.values(), key=self._promised_sram):
            if self._stop.is_over:
                return best
            too_slow = fast_enough and plain.slowdown > self._options.max_slowdown
            hopeless = too_slow or self._promised_sram(plain) >= best.sram
            if plain is best or not (hopeless or self._has_tried_enough(plain)):
                full = self._plan_in_full(plain)
                best = best if full is None else self._better(best, full)
        return best

    def drop(self, split: StreamedPair, why: str) -> None:
        """Drop a split. If its back is in tiles, the split without tiles is kept."""
        self._refused.append(why)
        self._on_progress(why)
        if not split.back.tiled:
            del self._without_tiles[split.ops]
        self._with_tiles[split.ops] = None

    def _is_beaten(self, point: SplitPoint, best: StreamedPair | None) -> bool:
        if best is not None and self._stop.is_over:
            return True
        if best is None or best.slowdown > self._options.max_slowdown:
            return False
        return point.least_sram >= best.sram

    def _better(self, best: StreamedPair | None, pair: StreamedPair) -> StreamedPair:
        """The better of two pairs: the one within the permitted slowdown; if both are, the smaller
        one; if neither is, the faster one."""
        if best is None:
            return pair

        def rank(one: StreamedPair) -> tuple[bool, float, float]:
            too_slow = one.slowdown > self._options.max_slowdown
            return too_slow, one.slowdown if too_slow else one.sram, one.slowdown

        return min(best, pair, key=rank)

    def _promised_sram(self, plain: StreamedPair) -> float:
        """Bytes that a pair may need once it is planned in full."""
        if self._options.tiles is None:
            return plain.sram * (1 - _FULL_EFFORT_GAIN)
        return _optimistic_sram(plain)

    def _plan_in_full(self, plain: StreamedPair) -> StreamedPair | None:
        if plain.ops not in self._with_tiles:
            self._on_progress(f"planning {len(plain.ops)} operators row by row, and the rest")
            rows = plain.schedule.made
            self._with_tiles[plain.ops] = self._plan(plain.ops, rows, self._options)
        return self._with_tiles[plain.ops]

    def _has_tried_enough(self, plain: StreamedPair) -> bool:
        """Whether as many splits were planned in full as the model's length permits, without this
        one."""
        tried = sum(pair is not None for pair in self._with_tiles.values())
        return plain.ops not in self._with_tiles and tried >= most_tiled(self._model)

    def _plan(self, ops: tuple[int, ...], rows: int, options: StreamOptions) -> StreamedPair | None:
        """Plan a split; None if a guard refuses it."""
        try:
            return plan_split(self._model, ops, rows, options, self._on_progress, self._stop)
        except UnsoundPlanError as fault:
            self._first_fault = self._first_fault or fault
            number = numbers_in_file(self._model, ops)[-1]
            self._refused.append(f"passed over: the split behind operator {number}: {fault}")
            self._on_progress(self._refused[-1])
            return None

    def describe(self, split: StreamedPair) -> str:
        """A split in words, for a report."""
        tiles = ", the back in tiles" if split.back.tiled else ""
        number = numbers_in_file(self._model, split.ops)[-1]
        return f"{split.sram:,} B, the front to operator {number}{tiles}"


def _quick_options(options: StreamOptions) -> StreamOptions:
    """Options for a plan that only helps to choose where to split."""
    quick = replace(options.memory, exact_effort=_QUICK_EFFORT, climb_effort=_QUICK_EFFORT)
    return replace(options, memory=quick, tiles=None)


def _optimistic_sram(pair: StreamedPair) -> int:
    """Bytes that the pair would need if tiles lowered the back's head to the boundary and the
    memory of the front. What the back needs while TFLM plans it, tiles do not lower."""
    boundary, _ = pair.back.inspection.model.main.inputs
    arena = pair.back.inspection.arena
    head = align_up(boundary.nbytes) + pair.front_arena.shared
    return pair.front_arena.persistent + max(arena.tail + head, arena.need_plan)
