"""Joint search for a board: a super-network of digits in photographs, evolution within the exact
arena against drawing at random, and how often a count of activations is wrong about what fits.

    python benchmarks/joint_search.py run FOLDER [--budget 64K] [--drawn 2000] [--record FILE]
    python benchmarks/joint_search.py show FILE [--svg FILE]

FOLDER keeps what is found (verdicts and accuracies in SQLite, weights), so that a run that was
ended goes on. It gets the winner's files: the int8 model, planned and proved, and its C++ sources.
`--record` writes every network that was drawn; `show` prints the tables of such a file, and draws
its picture ([docs/joint-search.md](../docs/joint-search.md)). `--address` of a Dask scheduler has
verdicts found on a cluster.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tflm_planner.codesign.joint.evolution import (
    DrawnNetwork,
    EvolutionOptions,
    Judging,
    Score,
    SearchHistory,
    search,
)
from tflm_planner.codesign.joint.memory import QUICK_TILES, BoardLimits, MemoryVerdict
from tflm_planner.codesign.joint.search_svg import search_svg
from tflm_planner.codesign.joint.space import Genes, SearchSpace, StageShape
from tflm_planner.codesign.training.data import DataSet, load_data, resized
from tflm_planner.codesign.training.loop import Recipe, RunFiles, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, RoundedModel, round_network
from tflm_planner.codesign.training.supernet import SuperNetwork, SuperRecipe, train_super
from tflm_planner.device.export import export
from tflm_planner.jobs.engine import JobEngine, engine_at
from tflm_planner.jobs.store import ResultStore
from tflm_planner.pipeline import api
from tflm_planner.support.files import make_folder
from tflm_planner.support.units import parse_size

STAGES = (StageShape(16, 2), StageShape(24, 2), StageShape(40, 2))
SPACE = SearchSpace(1, 10, 8, STAGES, (24, 32, 40, 48), depths=(1, 2), kernels=(3, 5))
INSTRUCTIONS = 12_000_000
"""Of one inference: about a fifth of a second at 64 MHz, one a cycle."""
SCENES_OF_ONE = 2
VALIDATION = 400
"""Images kept from training, by which networks are chosen; those to test on choose nothing."""
SAMPLE = 500
"""Networks whose exact arena is compared with the count of activations."""
SUPER = SuperRecipe(Recipe(epochs=3, shift=2), Recipe(epochs=4, rate=0.05, shift=2))
LAST = Recipe(epochs=8, rate=0.02, shift=2)
TESTS = (
    (False, "flash"), (False, "floor"), (False, "time"), (True, "stock"), (True, "plan"),
    (True, "tiles"), (False, "plan"), (False, "tiles"),
)  # fmt: skip


@dataclass(frozen=True)
class Parts:
    """The data set, without the images that networks are chosen by, and these."""

    training: DataSet
    images: np.ndarray
    labels: np.ndarray


def split(data: DataSet) -> Parts:
    """The last digits of a random order are kept from training, with all scenes of theirs, which
    lie together."""
    order = np.random.default_rng(1).permutation(len(data.images) // SCENES_OF_ONE)
    images = (SCENES_OF_ONE * order[:, None] + np.arange(SCENES_OF_ONE)).ravel()
    kept, rest = images[:VALIDATION], images[VALIDATION:]
    training = replace(data, images=data.images[rest], labels=data.labels[rest])
    return Parts(training, data.images[kept], data.labels[kept])


def super_network(parts: Parts, folder: Path) -> SuperNetwork:
    """Trained, or as an earlier run trained it."""
    network = SuperNetwork(SPACE, parts.training.images)
    path = folder / "super.npz"
    if path.is_file():
        network.whole.load(dict(np.load(path)))
    else:
        train_super(network, parts.training, SUPER, print)
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


# --- what was drawn -------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchRecord:
    """What a run of searches drew. about: limits, seconds. sample: verdicts of random networks,
    each with its exact arena, planned whole."""

    about: Mapping[str, Any]
    histories: Mapping[str, SearchHistory]
    sample: Sequence[MemoryVerdict]

    def write(self, path: Path) -> None:
        """A line for what it is about, then one for each network."""
        rows: list[Mapping[str, Any]] = [dict(self.about)]
        for name, history in self.histories.items():
            rows += [
                {"search": name, "genes": c.genes, "accuracy": c.accuracy, **asdict(c.verdict)}
                for c in history.candidates
            ]
        rows += [{"search": "sample", **asdict(verdict)} for verdict in self.sample]
        with gzip.GzipFile(path, "wb", mtime=0) as file:
            file.writelines(json.dumps(row).encode() + b"\n" for row in rows)

    @staticmethod
    def read(path: Path) -> SearchRecord:
        """What `write` wrote."""
        with gzip.open(path, "rt") as file:
            about, *rows = map(json.loads, file)
        histories: dict[str, SearchHistory] = {}
        sample: list[MemoryVerdict] = []
        for row in rows:
            name = row.pop("search")
            if name == "sample":
                sample.append(MemoryVerdict(**row))
                continue
            genes, accuracy = tuple(row.pop("genes")), row.pop("accuracy")
            drawn = DrawnNetwork(genes, MemoryVerdict(**row), accuracy)
            histories.setdefault(name, SearchHistory()).candidates.append(drawn)
        return SearchRecord(about, histories, sample)

    def show(self) -> Iterator[str]:
        """All tables."""
        yield from (f"{name}: {value}" for name, value in self.about.items())
        yield tests_table(self.histories)
        yield progress_table(self.histories)
        budget = self.about["arena"]
        budgets = (budget // 2, budget * 3 // 4, budget, budget * 3 // 2)
        yield count_table(self.sample, budgets)
        yield schedule_table(self.histories, budget)


def tests_table(histories: Mapping[str, SearchHistory]) -> str:
    """How many networks each test decided on."""
    heads = [f"{name} {'fits' if fits else 'rejects'}" for fits, name in TESTS]
    lines = [f"| search | drawn | {' | '.join(heads)} | scored | best |",
             "|---|" + "--:|" * (3 + len(heads))]  # fmt: skip
    for name, history in histories.items():
        tests, scored = history.tests(), len({c.genes for c in history.scored})
        cells = [f"{tests[column]:,}" for column in TESTS]
        best = history.scored[0]
        lines.append(
            f"| {name} | {len(history.candidates):,} | {' | '.join(cells)} | {scored:,} | "
            f"{100 * (best.accuracy or 0):.1f} % |"
        )
    return "\n".join(lines)


def count_table(sample: Sequence[MemoryVerdict], budgets: Sequence[int]) -> str:
    """How often the count of activations says otherwise than the exact arena of the plan."""
    lines = ["| budget | fit | count accepts | of these too large | count refuses what fits |",
             "|--:|--:|--:|--:|--:|"]  # fmt: skip
    for budget in budgets:
        pairs = [(v.counted <= budget, (v.arena or 0) <= budget) for v in sample]
        lines.append(f"| {budget:,} | {_pairs(pairs)} |")
    return "\n".join(lines)


def progress_table(histories: Mapping[str, SearchHistory]) -> str:
    """The best accuracy after so many networks were scored."""
    curves = {name: list(_best_so_far(history)) for name, history in histories.items()}
    most = min(map(len, curves.values()))
    marks = [n for n in (10, 20, 50, 100, 200, 500, 1000, 2000) if n < most] + [most]
    lines = [f"| search | {' | '.join(f'{n:,}' for n in marks)} |", "|---|" + "--:|" * len(marks)]
    for name, curve in curves.items():
        cells = (f"{100 * curve[n - 1]:.1f} %" for n in marks)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _best_so_far(history: SearchHistory) -> Iterator[float]:
    """After each network that was scored for the first time."""
    best, seen = 0.0, set[Genes]()
    for candidate in history.candidates:
        if candidate.accuracy is not None and candidate.genes not in seen:
            seen.add(candidate.genes)
            best = max(best, candidate.accuracy)
            yield best


def schedule_table(histories: Mapping[str, SearchHistory], budget: int) -> str:
    """The same of the networks that the searches drew and no other limit refused: may they be
    tiled, then the count refuses more of what fits."""
    lines = ["| search | in time | fit | count accepts | of these too large | count refuses what "
             "fits |", "|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for name, history in histories.items():
        verdicts = {c.genes: c.verdict for c in history.candidates}.values()
        judged = [v for v in verdicts if v.by in ("stock", "plan", "tiles")]
        pairs = [(v.counted <= budget, v.fits) for v in judged]
        lines.append(f"| {name} | {len(judged):,} | {_pairs(pairs)} |")
    return "\n".join(lines)


def _pairs(pairs: Sequence[tuple[bool, bool]]) -> str:
    """Cells of pairs: whether the count accepts a network, whether it fits."""
    fitting = sum(fits for _, fits in pairs)
    accepted = sum(counted for counted, _ in pairs)
    wrong = sum(counted and not fits for counted, fits in pairs)
    lost = sum(fits and not counted for counted, fits in pairs)
    return f"{fitting:,} | {accepted:,} | {wrong:,} | {lost:,}"


# --- the run --------------------------------------------------------------------------------------


def processor_seconds() -> float:
    """Of this process, and of its children that have ended."""
    uses = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in uses)


@dataclass
class Stopwatch:
    """Seconds of steps. by_step: by the clock, and of all processors here."""

    by_step: dict[str, tuple[float, float]]

    def time(self, step: str, began: tuple[float, float]) -> None:
        """Note a step that ends now."""
        spent = (time.monotonic() - began[0], processor_seconds() - began[1])
        self.by_step[step] = (round(spent[0], 1), round(spent[1], 1))
        print(f"{step}: {spent[0]:.0f} s, {spent[1]:.0f} s of processor time here", flush=True)


def now() -> tuple[float, float]:
    """The clock, and processor seconds."""
    return time.monotonic(), processor_seconds()


def searches(
    judging: Judging, score: Score, drawn: int, watch: Stopwatch
) -> dict[str, SearchHistory]:
    """Evolution, and as many scored networks drawn at random."""
    began = now()
    evolved = search(judging, score, EvolutionOptions(drawn), _say)
    watch.time("evolution", began)
    scored = len({c.genes for c in evolved.scored})
    options = EvolutionOptions(10 * drawn, scored, seed=1, evolves=False)
    began = now()
    chance = search(judging, score, options, _say)
    watch.time("random", began)
    return {"evolution": evolved, "random": chance}


def sample_of(judging: Judging) -> list[MemoryVerdict]:
    """Random networks with their exact arenas, planned whole."""
    random = np.random.default_rng(2)
    limits = replace(judging.limits, tiles=None, flash=None, instructions=None, exact=True)
    return replace(judging, limits=limits).verdicts([SPACE.random(random) for _ in range(SAMPLE)])


def finish(
    name: str,
    network: SuperNetwork,
    best: DrawnNetwork,
    data: DataSet,
    limits: BoardLimits,
    folder: Path,
) -> str:
    """Train the best network of a search further, round it, plan and prove it, export it. Returns
    what it came to."""
    member = network.member(best.genes)
    side = SPACE.decode(best.genes).resolution
    small = resized(data, side)
    before = member.accuracy(small.test_images, small.test_labels)
    train(member, small, LAST, RunFiles(checkpoint=folder / f"{name}.npz"))
    rounded = round_network(member, small, FINE_TUNING)
    source = folder / f"{name}.int8.tflite"
    source.write_bytes(rounded.int8)
    search_options = api.MemoryOptions(kernels=api.kernels_of(limits.target))
    options = api.PlanOptions(search_options, api.TilePermission(), budget=limits.arena, force=True)
    result = api.plan(source, folder / f"{name}.planned.tflite", options)
    make_folder(folder / name)
    for file, text in export(result.data, "winner", limits.target).items():
        (folder / name / file).write_text(text, encoding="utf-8")
    return "\n".join((
        f"{name}: genes {best.genes}, resolution {side}, {best.verdict.macs:,} multiplications, "
        f"{100 * (best.accuracy or 0):.1f} % of {VALIDATION} images to choose by",
        _accuracies(before, rounded, len(small.test_labels)),
        _arenas(result.report, len(result.data), limits),
    ))  # fmt: skip


def _accuracies(before: float, rounded: RoundedModel, images: int) -> str:
    return (
        f"accuracy on {images} test images: as a part {100 * before:.1f} %, "
        f"fine-tuned {100 * rounded.of_floats:.1f} %, int8 {100 * rounded.after_training:.1f} %, "
        f"int8 fine-tuned {100 * rounded.of_int8:.1f} %"
    )


def _arenas(report: api.Report, file_bytes: int, limits: BoardLimits) -> str:
    host = report.after.host
    measured = None if host.measured is None else (host.measured.head, host.measured.tail)
    return (
        f"arena {report.before.arena.arena:,} -> {report.after.arena.arena:,} B of "
        f"{limits.arena:,} B, file {file_bytes:,} B; verified: {report.verified}; TFLM here: head "
        f"and tail predicted {(host.predicted_head, host.predicted_tail)}, measured {measured}"
    )


def _say(words: str) -> None:
    print(words, flush=True)


def run(given: argparse.Namespace, engine: JobEngine) -> None:
    """All of it, one after the other."""
    data, watch = load_data("scenes"), Stopwatch({})
    parts = split(data)
    target = api.load_target(given.target)
    sizes = parse_size(given.budget), parse_size(given.flash)
    limits = BoardLimits(target, *sizes, INSTRUCTIONS, QUICK_TILES)
    began = now()
    network = super_network(parts, given.folder)
    watch.time("super-network", began)
    with ResultStore(given.folder / "results.sqlite") as store:
        judging = Judging(SPACE, limits, engine, store)
        score = kept_score(network, parts, store)
        histories = searches(judging, score, given.drawn, watch)
        sample = sample_of(judging)
    about = {"target": given.target, "arena": limits.arena, "flash": limits.flash,
             "instructions": INSTRUCTIONS, "seconds": watch.by_step}  # fmt: skip
    record = SearchRecord(about, histories, sample)
    if given.record is not None:
        record.write(given.record)
    print("\n\n".join(record.show()), flush=True)
    for name, history in histories.items():
        began = now()
        print(finish(name, network, history.scored[0], data, limits, given.folder))
        watch.time(f"finish {name}", began)


def main() -> None:
    """A run, or what an earlier one recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    running = verbs.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--target", default="nano33ble")
    running.add_argument("--budget", default="64K")
    running.add_argument("--flash", default="96K")
    running.add_argument("--drawn", type=int, default=2000)
    running.add_argument("--workers", type=int, default=2)
    running.add_argument("--address")
    running.add_argument("--record", type=Path)
    showing = verbs.add_parser("show")
    showing.add_argument("file", type=Path)
    showing.add_argument("--svg", type=Path)
    given = parser.parse_args()
    if given.verb == "show":
        record = SearchRecord.read(given.file)
        print("\n\n".join(record.show()))
        if given.svg is not None:
            given.svg.write_text(search_svg(record.histories, record.about["arena"]))
        return
    make_folder(given.folder)
    imports = ("tflm_planner.codesign.joint.memory",)
    with engine_at(given.address, given.workers, imports) as engine:
        run(given, engine)


if __name__ == "__main__":
    main()
