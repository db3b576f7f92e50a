"""Joint search for a board: a super-network of digits, evolution within the exact arena against
drawing at random, and how often a count of activations is wrong about what fits.

    python benchmarks/joint_search.py FOLDER [--budget 24K] [--flash 48K] [--drawn 2000]

FOLDER keeps what is found (verdicts and accuracies in SQLite, weights), so that a run that was
ended goes on. It gets the winner's files: the int8 model, planned and proved, and its C++ sources.
Prints tables in Markdown and draws search.svg. No figure of it is in the documents yet.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tflm_planner.codesign.joint.evolution import (
    DrawnNetwork,
    EvolutionOptions,
    Judging,
    Score,
    SearchHistory,
    search,
)
from tflm_planner.codesign.joint.memory import BoardLimits
from tflm_planner.codesign.joint.search_svg import search_svg
from tflm_planner.codesign.joint.space import Genes, SearchSpace, StageShape
from tflm_planner.codesign.training.data import DataSet, load_data, resize
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, round_network
from tflm_planner.codesign.training.supernet import SuperNetwork, SuperRecipe, train_super
from tflm_planner.device.export import export
from tflm_planner.jobs.engine import engine_at
from tflm_planner.jobs.store import ResultStore
from tflm_planner.pipeline import api
from tflm_planner.support.files import make_folder
from tflm_planner.support.units import parse_size

STAGES = (StageShape(16, 2), StageShape(24, 2), StageShape(32, 2))
SPACE = SearchSpace(1, 10, 8, STAGES, (16, 20, 24, 28))
VALIDATION = 500
"""Images kept from training, by which networks are chosen; those to test on choose nothing."""
SAMPLE = 500
"""Networks whose exact arena is compared with the count of activations."""
LAST = Recipe(epochs=8, rate=0.02, shift=1)


@dataclass(frozen=True)
class Parts:
    """The data set, without the images that networks are chosen by, and these."""

    training: DataSet
    images: np.ndarray
    labels: np.ndarray


def split(data: DataSet) -> Parts:
    """The last images of a random order are kept from training."""
    order = np.random.default_rng(1).permutation(len(data.images))
    kept, rest = order[:VALIDATION], order[VALIDATION:]
    training = replace(data, images=data.images[rest], labels=data.labels[rest])
    return Parts(training, data.images[kept], data.labels[kept])


def super_network(parts: Parts, folder: Path) -> SuperNetwork:
    """Trained, or as an earlier run trained it."""
    network = SuperNetwork(SPACE, parts.training.images)
    path = folder / "super.npz"
    if path.is_file():
        network.whole.load(dict(np.load(path)))
    else:
        train_super(network, parts.training, SuperRecipe(), print)
        np.savez(path, allow_pickle=True, **network.whole.state())
    return network


def kept_score(network: SuperNetwork, parts: Parts, store: ResultStore) -> Score:
    """The accuracy of a member, kept by its genes and the weights."""
    weights = network.whole.state()
    digest = hashlib.sha256(b"".join(weights[name].tobytes() for name in sorted(weights)))

    def score(genes: Genes) -> float:
        key = f"accuracy {digest.hexdigest()} {genes}"
        known = store.get(key)
        if known is None:
            known = repr(network.accuracy(genes, parts.images, parts.labels))
            store.put(key, known)
        return float(known)

    return score


def tests_table(histories: dict[str, SearchHistory]) -> str:
    """How many each test decided on."""
    columns = [(False, "flash"), (False, "floor"), (False, "time"), (True, "stock"),
               (True, "plan"), (False, "plan")]  # fmt: skip
    lines = ["| search | drawn | flash | floor | time | stock fits | plan fits | plan does not | "
             "scored | best |", "|---|" + "--:|" * 9]  # fmt: skip
    for name, history in histories.items():
        tests, scored = history.tests(), len({c.genes for c in history.scored})
        cells = [f"{tests[column]:,}" for column in columns]
        best = history.scored[0]
        lines.append(
            f"| {name} | {len(history.candidates):,} | {' | '.join(cells)} | {scored:,} | "
            f"{100 * (best.accuracy or 0):.1f} % |"
        )
    return "\n".join(lines)


def count_table(judging: Judging, budgets: Sequence[int]) -> str:
    """How often the count of activations says otherwise than the exact arena."""
    random = np.random.default_rng(2)
    drawn = [SPACE.random(random) for _ in range(SAMPLE)]
    exact = replace(judging, limits=replace(judging.limits, exact=True, flash=None))
    verdicts = exact.verdicts(drawn)
    lines = ["| budget | fit | count accepts | of these too large | count refuses what fits |",
             "|--:|--:|--:|--:|--:|"]  # fmt: skip
    for budget in budgets:
        pairs = [(v.counted <= budget, (v.arena or 0) <= budget) for v in verdicts]
        accepted = sum(counted for counted, _ in pairs)
        wrong = sum(counted and not fits for counted, fits in pairs)
        lost = sum(fits and not counted for counted, fits in pairs)
        fitting = sum(fits for _, fits in pairs)
        lines.append(f"| {budget:,} | {fitting} | {accepted} | {wrong} | {lost} |")
    return "\n".join(lines)


def finish(network: SuperNetwork, best: DrawnNetwork, data: DataSet, limits: BoardLimits,
           folder: Path) -> str:  # fmt: skip
    """Train the winner further, round it, plan and prove it, export it. Returns what it came to."""
    member = network.member(best.genes)
    side = SPACE.decode(best.genes).resolution
    small = replace(
        data, images=resize(data.images, side), test_images=resize(data.test_images, side)
    )
    before = member.accuracy(small.test_images, small.test_labels)
    train(member, small, LAST)
    rounded = round_network(member, small, FINE_TUNING)
    (folder / "winner.int8.tflite").write_bytes(rounded.int8)
    search_options = api.MemoryOptions(kernels=api.kernels_of(limits.target))
    options = api.PlanOptions(search_options, api.TilePermission(), budget=limits.arena, force=True)
    result = api.plan(folder / "winner.int8.tflite", folder / "winner.planned.tflite", options)
    for name, text in export(result.data, "winner", limits.target).items():
        (folder / name).write_text(text, encoding="utf-8")
    report, host = result.report, result.report.after.host
    measured = None if host.measured is None else (host.measured.head, host.measured.tail)
    return (
        f"winner {best.genes}: resolution {side}, {best.verdict.macs:,} multiplications, arena "
        f"{report.before.arena.arena:,} -> {report.after.arena.arena:,} B of {limits.arena:,} B, "
        f"file {len(result.data):,} B\n"
        f"accuracy on the {len(small.test_labels)} test images: as a part {100 * before:.1f} %, "
        f"fine-tuned {100 * rounded.of_floats:.1f} %, int8 {100 * rounded.after_training:.1f} %, "
        f"int8 fine-tuned {100 * rounded.of_int8:.1f} %\n"
        f"verified: {report.verified}; TFLM here: head and tail predicted "
        f"{(host.predicted_head, host.predicted_tail)}, measured {measured}"
    )


def main() -> None:
    """All of it, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", default="24K")
    parser.add_argument("--flash", default="48K")
    parser.add_argument("--drawn", type=int, default=2000)
    parser.add_argument("--address")
    given = parser.parse_args()
    make_folder(given.folder)
    data = load_data("mnist5k")
    parts = split(data)
    target = api.load_target("nano33ble")
    limits = BoardLimits(target, parse_size(given.budget), parse_size(given.flash))
    began = time.process_time()
    network = super_network(parts, given.folder)
    print(f"super-network: {time.process_time() - began:.0f} s of processor time here", flush=True)
    with (
        ResultStore(given.folder / "results.sqlite") as store,
        engine_at(given.address, 1, ("tflm_planner.codesign.joint.memory",)) as engine,
    ):
        judging = Judging(SPACE, limits, engine, store)
        score = kept_score(network, parts, store)
        began = time.process_time()
        evolved = search(judging, score, EvolutionOptions(given.drawn), print)
        print(f"evolution: {time.process_time() - began:.0f} s here", flush=True)
        scored = len({c.genes for c in evolved.scored})
        options = EvolutionOptions(10 * given.drawn, scored, seed=1, evolves=False)
        drawn = search(judging, score, options, print)
        histories = {"evolution": evolved, "random": drawn}
        print(tests_table(histories))
        budget = limits.arena
        print(count_table(judging, (budget * 2 // 3, budget, budget * 4 // 3)))
    (given.folder / "search.svg").write_text(search_svg(histories, limits.arena))
    print(finish(network, evolved.scored[0], data, limits, given.folder))


if __name__ == "__main__":
    main()
