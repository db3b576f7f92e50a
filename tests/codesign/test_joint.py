"""Joint search: genes mean networks, verdicts are those of the exact arena, a search is the same
whoever runs it and wherever it was ended, and a member is a part of the largest network."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.frameworks import needs_framework
from tests.jobs.dask_workers import two_dask_workers
from tflm_planner.codesign.chains.chain import steps
from tflm_planner.codesign.joint.evolution import (
    DrawnNetwork,
    EvolutionOptions,
    Judge,
    SearchHistory,
    search,
)
from tflm_planner.codesign.joint.memory import (
    QUICK_TILES,
    BoardLimits,
    FitQuestion,
    MemoryVerdict,
    counted_activations,
    judge,
)
from tflm_planner.codesign.joint.search_svg import pareto_points, points_of_count, search_svg
from tflm_planner.codesign.joint.space import Genes, SearchSpace, StageShape
from tflm_planner.codesign.networks.build import build
from tflm_planner.cost import latency_of
from tflm_planner.jobs.cluster import ClusterEngine
from tflm_planner.jobs.processes import LocalEngine
from tflm_planner.jobs.store import ResultStore
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.targets import load_target

TARGET = load_target("nano33ble")
SPACE = SearchSpace(
    1, 10, 4, (StageShape(8, 2), StageShape(12, 2)), (8, 12), (0.5, 1.0), (1, 2), (3, 5)
)
LARGER = replace(SPACE, resolutions=(12, 40))
"""Of which some fit only in tiles."""
TILED = BoardLimits(TARGET, 30_000, tiles=QUICK_TILES)


def silent(_: str) -> None:
    """Nobody listens."""


def members(number: int) -> list[Genes]:
    random = np.random.default_rng(0)
    return [SPACE.random(random) for _ in range(number)]


# --- genes ----------------------------------------------------------------------------------------


def test_genes_mean_networks() -> None:
    assert SPACE.choices == (2, *(2, 2, 2, 3, 2, 3) * 2)
    largest, smallest = SPACE.decode(SPACE.largest), SPACE.decode(SPACE.smallest)
    assert largest.chain().image == (12, 12, 1) and smallest.chain().image == (8, 8, 1)
    assert [s.blocks for s in largest.stages] == [((5, 4), (5, 4))] * 2
    assert [(s.channels, s.blocks) for s in smallest.stages] == [(4, ((3, 2),)), (8, ((3, 2),))]
    assert largest.places() == tuple(range(len(largest.chain().layers)))
    for genes in members(20):
        assert steps(SPACE.decode(genes).chain())[-1].shape_out == (1, 1, 10)


def test_equal_networks_have_equal_genes() -> None:
    shallow = (0, 0, 0, 1, 1, 1, 2, *(0,) * 6)
    assert SPACE.canonical(shallow) == (0, 0, 0, 1, 1, 0, 0, *(0,) * 6)
    assert SPACE.decode(shallow).chain() == SPACE.decode(SPACE.canonical(shallow)).chain()
    chains = {genes: SPACE.decode(genes).chain() for genes in members(200)}
    assert len(set(chains.values())) == len(chains)


def test_children_are_of_their_parents() -> None:
    random = np.random.default_rng(0)
    one, other = SPACE.largest, SPACE.smallest
    assert SPACE.mutate(one, 0.0, random) == one
    pairs = zip(SPACE.cross(one, other, random), one, other, strict=True)
    assert all(gene in (a, b) for gene, a, b in pairs)
    assert len({SPACE.mutate(one, 0.3, random) for _ in range(20)}) > 5


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [4000, 6500, 9000])
def test_a_network_fits_if_its_plan_does(limit: int) -> None:
    deciders = set()
    for genes in members(5):
        chain = SPACE.decode(genes).chain()
        verdict = judge(FitQuestion(chain, BoardLimits(TARGET, limit)))
        options = api.PlanOptions(api.MemoryOptions(kernels=api.kernels_of(TARGET)), verify=None)
        planned = api.plan(build(chain), None, options).report.after.arena.arena
        assert verdict.fits == (planned <= limit)
        exact = judge(FitQuestion(chain, BoardLimits(TARGET, limit, exact=True)))
        assert (exact.fits, exact.arena) == (verdict.fits, planned)
        deciders.add(verdict.by)
    assert deciders <= {"floor", "stock", "plan"}


def test_each_limit_rejects() -> None:
    chain = SPACE.decode(SPACE.largest).chain()
    limits = BoardLimits(TARGET, 100_000)
    assert judge(FitQuestion(chain, limits)).by == "stock"
    for by, limit in (("flash", replace(limits, flash=1000)), ("floor", replace(limits, arena=900)),
                      ("time", replace(limits, instructions=1000)),
                      ("plan", replace(limits, arena=6000))):  # fmt: skip
        verdict = judge(FitQuestion(chain, limit))
        assert (verdict.fits, verdict.by) == (False, by)
    size = len(build(chain))
    assert judge(FitQuestion(chain, replace(limits, flash=size - 1))).by == "flash"
    assert judge(FitQuestion(chain, replace(limits, flash=size))).fits


@pytest.mark.slow
def test_a_network_that_does_not_fit_whole_is_tiled() -> None:
    chain = LARGER.decode(LARGER.largest).chain()
    whole = judge(FitQuestion(chain, BoardLimits(TARGET, 30_000)))
    assert (whole.fits, whole.by) == (False, "plan") and whole.arena is not None
    tiled = judge(FitQuestion(chain, TILED))
    assert (tiled.fits, tiled.by) == (True, "tiles")
    assert tiled.arena is not None and tiled.arena <= 30_000 < whole.arena
    kernels = api.MemoryOptions(kernels=api.kernels_of(TARGET))
    options = api.PlanOptions(kernels, QUICK_TILES, given_arena_limit=30_000, verify=None)
    result = api.plan(build(chain), None, options)
    assert (result.report.after.arena.arena, len(result.data)) == (tiled.arena, tiled.file_bytes)
    assert judge(FitQuestion(chain, replace(TILED, arena=whole.arena))).by == "plan"
    small = judge(FitQuestion(chain, replace(TILED, arena=20_000)))
    assert (small.fits, small.by) == (False, "tiles")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stem", "stages", "expansions", "words"),
    [
        (8, (StageShape(8, 1), StageShape(16, 2)), (2, 3), "stage 1 has stride 1 and as many"),
        (8, (StageShape(16, 2), StageShape(16, 1)), (2, 3), "stage 2 has stride 1 and as many"),
        (8, (StageShape(16, 2),), (1, 2), "expansions must be above 1"),
    ],
)
def test_spaces_whose_weights_no_super_network_can_share_are_refused(
    stem: int, stages: tuple[StageShape, ...], expansions: tuple[int, ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        SearchSpace(1, 10, stem, stages, (16,), expansions=expansions)
    SearchSpace(1, 10, 4, (StageShape(8, 1), StageShape(8, 2)), (16,))


@pytest.mark.long
def test_tiles_keep_to_the_other_limits() -> None:
    chain = LARGER.decode(LARGER.largest).chain()
    instructions = latency_of(read_model(build(chain)), TARGET).instructions
    limits = replace(TILED, instructions=instructions)
    slow = judge(FitQuestion(chain, limits))
    assert (slow.fits, slow.by) == (False, "time"), "tiles take longer than the whole network"
    allowed = replace(limits, instructions=round(instructions * QUICK_TILES.max_slowdown))
    tiled = judge(FitQuestion(chain, allowed))
    assert (tiled.fits, tiled.by) == (True, "tiles") and tiled.file_bytes is not None
    heavy = judge(FitQuestion(chain, replace(allowed, flash=tiled.file_bytes - 1)))
    assert (heavy.fits, heavy.by) == (False, "flash")
    image = judge(FitQuestion(chain, replace(allowed, arena=40 * 40 - 1)))
    assert (image.fits, image.by) == (False, "floor"), "the image alone is larger"


def test_activations_are_counted_as_published() -> None:
    chain = SPACE.decode(SPACE.smallest).chain()
    fattest = max(np.prod(s.shape_in) + np.prod(s.made) for s in steps(chain))
    assert counted_activations(chain) == fattest  # no skip in it
    deep = replace(SPACE, depths=(2,), expansions=(4,), widths=(1.0,), kernels=(3,))
    chain = deep.decode(deep.smallest).chain()
    skipping = next(s for s in steps(chain) if s.source is not None)
    wide = 4 * int(np.prod(skipping.shape_out))
    assert counted_activations(chain) >= 2 * wide + wide // 4  # depthwise, and the skip's source


# --- the search -----------------------------------------------------------------------------------


def value(genes: Genes) -> float:
    """More of everything is better."""
    return sum(genes) / sum(SPACE.largest)


OPTIONS = EvolutionOptions(drawn=72, batch=12, parents=4)
LIMITS = BoardLimits(TARGET, 6500)


def judging(store: ResultStore | None = None, workers: int = 1) -> Judge:
    engine = LocalEngine(workers, ("tflm_planner.codesign.joint.memory",))
    return Judge(SPACE, LIMITS, engine, store)


@pytest.mark.long
def test_evolution_finds_more_than_chance() -> None:
    lines: list[str] = []
    evolved = search(judging(), value, OPTIONS, lines.append)
    assert len(evolved.candidates) == 72 and sum(evolved.tests().values()) == 72
    scored = evolved.scored
    fit = len(scored)
    assert len(lines) == 6 and lines[-1] == (
        f"72 of 72 networks drawn, {fit} fit; best {scored[0].accuracy:.3f}; "
        f"rejected {72 - fit} by plan"
    )
    assert all(c.verdict.fits and c.verdict.arena <= 6500 for c in scored)
    assert [c.accuracy for c in scored] == sorted((c.accuracy for c in scored), reverse=True)
    different = len({c.genes for c in scored})
    chance = search(
        judging(), value, replace(OPTIONS, drawn=150, scored=different, evolves=False), silent
    )
    assert len({c.genes for c in chance.scored}) <= different
    assert (scored[0].accuracy or 0) > (chance.scored[0].accuracy or 0)
    picture = ElementTree.fromstring(search_svg({"one": evolved, "other": chance}, 6500))
    circles = picture.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) > 5
    front = pareto_points(evolved)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(front))


def test_what_a_count_of_activations_would_choose_is_drawn_at_its_arena() -> None:
    def drawn(counted: int, arena: int, accuracy: float) -> DrawnNetwork:
        verdict = MemoryVerdict(True, "stock", 1000, counted, arena)
        return DrawnNetwork((counted,), verdict, accuracy)

    networks = [drawn(100, 900, 0.5), drawn(200, 300, 0.4), drawn(300, 1200, 0.7)]
    history = SearchHistory(networks)
    assert pareto_points(history) == [(300, 0.4), (900, 0.5), (1200, 0.7)]
    assert points_of_count({"one": history}) == [(900, 0.5), (1200, 0.7)]
    assert "900 B, 50.0 %" in search_svg({"one": history}, 1500)


@pytest.mark.long  # the one with a killed worker asks for more
def test_a_search_is_the_same_whoever_runs_it(tmp_path: Path) -> None:
    short = replace(OPTIONS, drawn=20, batch=10)
    alone = search(judging(), value, short, silent)
    assert search(judging(workers=2), value, short, silent) == alone

    class Ended(Exception):  # noqa: N818 (somebody pulls the plug)
        pass

    asked: list[Genes] = []

    def failing(genes: Genes) -> float:
        asked.append(genes)
        if len(asked) == 2:
            raise Ended
        return value(genes)

    with ResultStore(tmp_path / "results.sqlite") as store:
        with pytest.raises(Ended):
            search(judging(store), failing, short, silent)
        before = len(store)
        assert search(judging(store), value, short, silent) == alone
        after = len(store)
        assert 0 < before < after
        assert search(judging(store), value, short, silent) == alone
        assert len(store) == after, "all was kept"


class Killing(ClusterEngine):
    """Kills a worker once, when the first verdict has come and others are under way."""

    def __init__(self, address: str, victim: int) -> None:
        super().__init__(address)
        self.victim: int | None = victim

    def results(self, work, jobs):
        for result in super().results(work, jobs):
            if self.victim is not None:
                os.kill(self.victim, signal.SIGKILL)
                self.victim = None
            yield result


@pytest.mark.slow
def test_a_search_is_the_same_on_a_cluster_whose_worker_is_killed() -> None:
    pytest.importorskip("distributed")
    short = replace(OPTIONS, drawn=6, batch=3)
    with two_dask_workers() as dask:
        dask.wait_until_both_work()
        victim = dask.workers[0]
        with Killing(dask.address, victim.pid) as engine:
            found = search(Judge(LARGER, TILED, engine), value, short, silent)
        assert engine.victim is None and victim.wait(60) == -signal.SIGKILL
    tests = found.tests()
    assert tests[True, "tiles"] and tests[True, "stock"], "both a plan and a search were sent"
    alone = replace(judging(), space=LARGER, limits=TILED)
    assert found == search(alone, value, short, silent)


# --- the super-network ----------------------------------------------------------------------------


@needs_framework
@pytest.mark.slow
def test_members_are_parts_of_the_largest() -> None:
    from tflm_planner.codesign.training.super_network import SuperNetwork
    from tflm_planner.codesign.training.trainable import untrained

    random = np.random.default_rng(0)
    images = random.normal(size=(40, 12, 12, 1)).astype(np.float32)
    network = SuperNetwork(SPACE, images)
    state = network.whole.state()
    for name in state:
        if name.endswith(("gamma", "variance")):
            state[name] = random.uniform(0.5, 1.5, state[name].shape)
        if name.endswith(("beta", "mean")):
            state[name] = random.normal(size=state[name].shape) * 0.2
    network.whole.load(state)
    before = network.whole.predict(images)
    network.sort_channels()
    assert np.abs(network.whole.predict(images) - before).max() < 1e-5 * np.abs(before).max()
    sums = np.abs(network.whole.state()["1.kernel"]).sum(axis=(0, 1, 2))
    assert (np.diff(sums) <= 0).all() and not np.array_equal(state["1.kernel"], sums)
    labels = random.integers(0, 10, 40)
    for genes in (*members(4), SPACE.largest, SPACE.smallest):
        member = network.member(genes)
        assert member.chain == SPACE.decode(genes).chain()
        shapes = {n: v.shape for n, v in untrained(member.chain, 0).state().items()}
        assert {n: v.shape for n, v in member.state().items()} == shapes
        side = SPACE.decode(genes).resolution
        from tflm_planner.codesign.training.images import resize

        own = member.accuracy(resize(images, side), labels)
        assert own == network.accuracy(genes, images, labels)
    small = network.member(SPACE.smallest).state()["2.kernel"]
    large = network.whole.state()["2.kernel"]
    assert np.array_equal(small[:, :, 0], large[1:-1, 1:-1, 0, : small.shape[3]])


@needs_framework
@pytest.mark.long
def test_a_super_network_learns() -> None:
    pytest.importorskip("sklearn")
    from tflm_planner.codesign.training.data import load_data
    from tflm_planner.codesign.training.loop import Recipe
    from tflm_planner.codesign.training.super_network import (
        SuperNetwork,
        SuperNetworkRecipe,
        train_super_network,
    )

    data = load_data("digits")
    space = replace(SPACE, resolutions=(6, 8))
    network = SuperNetwork(space, data.images)
    recipe = SuperNetworkRecipe(Recipe(epochs=2), Recipe(epochs=2, batch=128), parts=0)
    train_super_network(network, data, recipe)
    test = data.test_images, data.test_labels
    assert network.accuracy(space.largest, *test) > 0.8
    assert network.accuracy(space.smallest, *test) > 0.3
