"""Minimum cuts, hotspots and orders around them, against brute force on small random graphs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.models.small import Chain
from tests.short_searches import short_search
from tflm_planner.memory.allocators import Solution
from tflm_planner.memory.order import Dag, Node, is_valid
from tflm_planner.memory.problem import Plan, Problem
from tflm_planner.model import schema
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.model.serde import read_model
from tflm_planner.ops.axis_rules import Slide
from tflm_planner.ops.window import ROWS
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions, TilePermission
from tflm_planner.pipeline.planning.tiled_file import plan_tiling
from tflm_planner.support.errors import ForbiddenOperatorsError
from tflm_planner.support.progress import silent
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.estimate.interval import Interval
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.hotspots.contraction import (
    ContractedOrder,
    ContractedRegion,
    best_contracted_order,
    close_groups,
)
from tflm_planner.tiling.hotspots.min_cut import MinimumCuts
from tflm_planner.tiling.hotspots.orders import (
    estimate_order,
    find_hotspots,
    hotspot_sets,
    own_bytes,
)
from tflm_planner.tiling.hotspots.tiles import HotspotOption, HotspotTiles, pads_are_dear
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.search import search_tiles
from tflm_planner.tiling.tilings import Tiling
from tflm_planner.tiling.work import WorkBudget
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.transforms.tile.windows import Sliding, window_forms


def random_dag(seed: int, count: int) -> Dag:
    """Nodes that write a tensor each and read one to three earlier ones."""
    rng = random.Random(seed)
    sizes = [16 * rng.randint(1, 40) for _ in range(count + 1)]
    nodes: list[Node] = []
    for n in range(count):
        known = range(n + 1)
        reads = tuple(sorted(set(rng.choices(known, k=rng.randint(1, 3)))))
        nodes.append(Node(reads, (n + 1,), workspace=16 * rng.randint(0, 3)))
    read = {t for node in nodes for t in node.reads}
    outputs = tuple(t for t in range(1, count + 1) if t not in read)
    return Dag.of(tuple(sizes), tuple(nodes), (0,), outputs)


def ideals(dag: Dag) -> Iterator[frozenset[int]]:
    """All sets of nodes that hold what they wait for."""
    count = len(dag.nodes)
    for bits in range(1 << count):
        chosen = frozenset(n for n in range(count) if bits >> n & 1)
        if all(p in chosen for n in chosen for p in dag.links.preds[n]):
            yield chosen


def alive(dag: Dag, done: frozenset[int]) -> int:
    """Bytes that live when just these have run."""
    links = dag.links
    return sum(
        size
        for t, size in enumerate(dag.sizes)
        if (links.writer[t] < 0 or links.writer[t] in done)
        and (t in links.outputs or any(r not in done for r in links.readers[t]))
    )


@pytest.mark.parametrize("seed", range(25))
def test_cuts_are_the_cheapest(seed: int) -> None:
    dag = random_dag(seed, 9)
    rng = random.Random(seed)
    node, price = rng.randrange(9), rng.choice([0, 16, 64, 200])
    cuts = MinimumCuts(dag)
    must, never = cuts.ancestors([node]), cuts.descendants([node])
    behind = [i for i in ideals(dag) if must <= i]
    before = [i for i in ideals(dag) if not never & i]
    least = min(alive(dag, i) + price * len(i) for i in behind)
    most = min(alive(dag, i) - price * len(i) for i in before)
    found, other = cuts.after([node], price), cuts.before([node], price)
    assert found in behind and other in before
    assert alive(dag, found) + price * len(found) == least
    assert alive(dag, other) - price * len(other) == most
    same = [i for i in behind if alive(dag, i) + price * len(i) == least]
    assert len(found) == min(map(len, same))


@pytest.mark.parametrize("seed", range(40))
def test_regions_run_in_one_piece(seed: int) -> None:
    dag, rng = random_dag(seed, 24), random.Random(seed)
    wanted = [frozenset(rng.sample(range(24), rng.randint(1, 4))) for _ in range(3)]
    groups = close_groups(dag, wanted)
    assert all(any(w <= g for g in groups) for w in wanted)
    assert len(frozenset[int]().union(*groups)) == sum(map(len, groups))
    found = best_contracted_order(dag, [ContractedRegion(g, 16) for g in groups])
    assert is_valid(dag, found.order)
    for group, (first, end) in zip(groups, found.intervals, strict=True):
        assert frozenset(found.order[first:end]) == group


def diamond(width: int) -> Dag:
    """in -> width small tensors -> one large -> two small -> out."""
    nodes = [Node((0,), (1 + k,)) for k in range(width)]
    large = 1 + width
    nodes.append(Node(tuple(range(1, large)), (large,)))
    nodes += [
        Node((large,), (large + 1,)),
        Node((large + 1,), (large + 2,)),
        Node((large,), (large + 3,)),
    ]
    nodes.append(Node((large + 2, large + 3), (large + 4,)))
    sizes = (64, *[160] * width, 160 * width, *[160] * 4)
    return Dag.of(sizes, tuple(nodes), (0,), (large + 4,))


def test_a_hotspot_holds_the_operators_that_make_its_ends_small() -> None:
    """The large tensor's readers belong to it, near or not; operators behind them do not."""
    dag = diamond(6)
    (hotspot,) = find_hotspots(MinimumCuts(dag), 1500, 200)
    assert own_bytes(dag, 6) == 1920
    assert {6, 7, 9} <= hotspot and 8 not in hotspot and 10 not in hotspot
    orders = [estimate_order(dag, spots, [0] * 11, 2200) for spots in hotspot_sets(dag, 2200)]
    best = min((o for o in orders if o), key=lambda o: o.rank).optimistic
    (first, end), *_ = best.intervals
    assert {6, 7, 9} <= {*best.order[first:end]}
    assert best.peak < 2080


def test_a_graph_without_hotspots() -> None:
    dag = diamond(2)
    assert find_hotspots(MinimumCuts(dag), 10_000, 10) == []
    assert hotspot_sets(dag, 1 << 20) == []
    assert estimate_order(dag, (frozenset({0}),), [0] * 7, 0) is None


def test_valid_windows_read_whole_rows() -> None:
    """A last column that no window reaches is read with the others: rows are runs of bytes then."""
    rows = Sliding(Slide(3, 2, 1, 0), (4, 8), 224)
    columns = Sliding(Slide(3, 2, 1, 0), (0, 111), 224, whole=True)
    found = window_forms([rows, columns], "pad", is_pool=False)
    assert found is not None
    forms, padding = found
    assert padding == VALID_PADDING and [f.read for f in forms] == [(8, 17), (0, 224)]
    assert all(f.pads == (0, 0) for f in forms)


@pytest.mark.parametrize("allowed", ["dialect", "copies"])
@pytest.mark.slow
def test_a_file_is_no_worse_than_its_evaluation(
    allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The final planner finds nothing by itself; the evaluation's plan is there nevertheless."""
    chain = Chain((1, 24, 24, 4))
    chain.conv(64, 3)
    chain.conv(4, 1)
    # With a RESHAPE the dialect drops what puts outputs together, as evaluations assume.
    flat = chain.tensor((1, 24 * 24 * 4))
    chain.graph.op("RESHAPE", [chain.x], [flat], "ReshapeOptions", newShape=[1, 24 * 24 * 4])
    data = chain.finish(flat)
    on = api.kernels_of()
    operators = AllowedOperators.NONE if allowed == "dialect" else AllowedOperators.ALL
    tiles = TilingOptions(
        on, on.input_overlaps_of, max_slowdown=2.0, objective="head", operators=operators,
        search_budget=short_search(2_500),
    )  # fmt: skip
    best = search_tiles(data, tiles).best
    assert best.regions and best.head < api.arena(data).head

    def stacked(problem: Problem, *_: object, **__: object) -> Solution:
        offsets, top = [], 0
        for b in problem.buffers:
            offsets.append(top)
            top += b.size
        return Solution(Plan(tuple(offsets)), top, 0, False, "stack")

    monkeypatch.setattr("tflm_planner.pipeline.planning.memory_plan.best_of", stacked)
    options = MemoryOptions(kernels=on)
    permission = TilePermission(max_slowdown=2.0, operators=operators, objective="head")

    def head(tiling: Tiling) -> int:
        return plan_tiling(data, tiling, permission, options, silent).inspection.arena.head

    assert head(best) <= best.head
    otherwise = replace(best, recipe=None)
    if operators.every:
        assert best.head < head(otherwise)
    else:  # the stacked plan has no view inside its parent
        with pytest.raises(ForbiddenOperatorsError, match="SLICE, which may not be added"):
            head(otherwise)


def image_to_thumbnail() -> bytes:
    """Rows 32, 16, 8: what is inside has four times the rows of the result."""
    chain = Chain((1, 32, 32, 2))
    chain.conv(8, 3)
    chain.pool()
    chain.conv(8, 3)
    chain.pool()
    return chain.finish()


@pytest.mark.parametrize(
    ("target", "type_", "dear"),
    [("x86-64/reference", "int8", True), ("cortex-m4/cmsis-nn", "int8", False),
     ("cortex-m4/cmsis-nn", "float32", True)],
)  # fmt: skip
def test_padding_is_dear_where_kernels_weigh_every_element(target, type_, dear) -> None:
    tensor = read_model(image_to_thumbnail()).main.ops[0].outputs[0]
    tensor.type = {name: key for key, name in schema.type_names().items()}[type_]
    assert pads_are_dear(tensor, api.load_target(target)) == dear


class GivenTiles(HotspotTiles):
    """The search around hotspots of a model that was only planned so far. The figures of tiles are
    given: more of them need less memory and cost more instructions."""

    def __init__(self, data: bytes, *, allowed: int) -> None:
        on = api.kernels_of(api.load_target("x86-64/reference"))
        options = TilingOptions(
            on, on.input_overlaps_of, objective="head", operators=api.AllowedOperators.ALL
        )
        workers, count = Workers(data, options), len(read_model(data).main.ops)
        models = ModelEvaluations(workers, options, count, WorkBudget(0))
        super().__init__(workers, options, models, allowed)
        self.tried: list[int] = []

    def evaluate_parts(
        self, schedule: LinearSchedule, parts: int, interval: Interval
    ) -> list[HotspotOption]:
        self.tried.append(parts)
        region = TiledRegion(tuple(interval.positions), (Split(ROWS, parts),), "merge")
        return [HotspotOption(region, 100 + 400 // parts, 0, 30 * parts)]


def test_the_smallest_tiles_first_and_larger_ones_where_they_must_be() -> None:
    """Half a row of the result is a tile too. Tiles that need much more are tried only where the
    small ones cost too much."""
    tiles = GivenTiles(image_to_thumbnail(), allowed=100)
    found = ContractedOrder((0, 1, 2, 3), (Interval(0, 4),), 0)
    candidate = tiles.candidate_of(found)
    assert candidate is not None
    assert tiles.tried == [16, 8, 4, 2, 4, 8, 16][: len(tiles.tried)]
    assert tiles.tried[:3] == [16, 8, 4]
    assert [s.splits for s in candidate.regions if isinstance(s, TiledRegion)] == [
        (Split(ROWS, 2),)
    ]
    tiles.allowed_instructions, tiles.tried = 10_000, []
    candidate = tiles.candidate_of(found)
    assert candidate is not None
    assert tiles.tried == [16, 8, 4]
    assert [s.splits for s in candidate.regions if isinstance(s, TiledRegion)] == [
        (Split(ROWS, 16),)
    ]
