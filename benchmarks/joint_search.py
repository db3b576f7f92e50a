"""Joint search for a board: a super-network of digits in photographs, evolution within the exact
arena against drawing at random, and how often a count of activations is wrong about what fits.

    python -m benchmarks.joint_search run FOLDER [--budget 64K] [--drawn 2000] [--seed 0]
                                                 [--record FILE]
    python -m benchmarks.joint_search show FILE [--svg FILE]
    python -m benchmarks.joint_search time FILE
    python -m benchmarks.joint_search ask [--budget 32K] [--drawn 200]

FOLDER keeps what is found (verdicts and accuracies in SQLite, weights), so that a run that was
ended goes on. It gets the winner's files: the int8 model, planned and proved, and its C++ sources.
`--record` writes every network that was drawn; `show` prints the tables of such a file, and draws
its picture ([docs/joint-search.md](../docs/joint-search.md)), `time` judges some of its networks
anew, alone in this process, and says how long verdicts take. `ask` only asks whether random
networks fit, tiles permitted, and how often the count is wrong; nothing is trained. `--address` of
a Dask scheduler has verdicts found on a cluster. `--seed` is that of the weights, of training and
of what is drawn; the images are the same for all.

Two recorded runs lie beside this file: `joint_search_measured.jsonl.gz` with 64 KB and
`joint_search_32k_measured.jsonl.gz` with 32 KB.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.joint_record import TESTS, SearchRecord, schedule_table, tests_table
from tflm_planner.codesign.joint.evolution import (
    DrawnNetwork,
    EvolutionOptions,
    Judge,
    Score,
    SearchHistory,
    search,
)
from tflm_planner.codesign.joint.memory import (
    QUICK_TILES,
    BoardLimits,
    FitQuestion,
    MemoryVerdict,
    judge,
)
from tflm_planner.codesign.joint.search_svg import search_svg
from tflm_planner.codesign.joint.space import Genes, SearchSpace, StageShape
from tflm_planner.codesign.training.data import load_data
from tflm_planner.codesign.training.data_set import DataSet, resized
from tflm_planner.codesign.training.loop import Recipe, RunFiles, epochs_only, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, RoundedModel, round_network
from tflm_planner.codesign.training.super_network import (
    SuperNetwork,
    SuperNetworkRecipe,
    train_super_network,
)
from tflm_planner.device.cpp.export import export
from tflm_planner.jobs.engine import JobEngine
from tflm_planner.jobs.engines import engine_at
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
SUPER = SuperNetworkRecipe(Recipe(epochs=3, shift=2), Recipe(epochs=4, rate=0.05, shift=2))
LAST = Recipe(epochs=8, rate=0.02, shift=2)


@dataclass(frozen=True)
class Parts:
    """The data set, without the images that networks are chosen by, and these."""

    training: DataSet
    images: np.ndarray
    labels: np.ndarray


def split(data: DataSet) -> Parts:
    """The first digits of a random order are kept from training, with all scenes of theirs, which
    lie together."""
    order = np.random.default_rng(1).permutation(len(data.images) // SCENES_OF_ONE)
    images = (SCENES_OF_ONE * order[:, None] + np.arange(SCENES_OF_ONE)).ravel()
    kept, rest = images[:VALIDATION], images[VALIDATION:]
    training = replace(data, images=data.images[rest], labels=data.labels[rest])
    return Parts(training, data.images[kept], data.labels[kept])


def super_network(parts: Parts, folder: Path, seed: int) -> SuperNetwork:
    """Trained, or as an earlier run trained it."""
    network = SuperNetwork(SPACE, parts.training.images[:], seed)
    path = folder / "super.npz"
    if path.is_file():
        network.whole.load(dict(np.load(path)))
    else:
        train_super_network(network, parts.training, super_recipe(seed), epochs_only(_say))
        np.savez(path, allow_pickle=True, **network.whole.state())
    return network


def super_recipe(seed: int) -> SuperNetworkRecipe:
    """That of the experiment, with another order of images and other parts."""
    largest, elastic = (replace(r, seed=seed) for r in (SUPER.largest, SUPER.elastic))
    return replace(SUPER, largest=largest, elastic=elastic)


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


# --- the run --------------------------------------------------------------------------------------


def took(step: str, began: tuple[float, float]) -> None:
    """Say how long a step took that ends now: by the clock, and of processors for this process
    alone, which trains and scores; verdicts are found by others."""
    clock, processor = (end - start for end, start in zip(now(), began, strict=True))
    print(f"{step}: {clock:.0f} s, {processor:.0f} s of processor time here", flush=True)


def now() -> tuple[float, float]:
    """The clock, and processor seconds."""
    return time.monotonic(), time.process_time()


def searches(judging: Judge, score: Score, drawn: int, seed: int) -> dict[str, SearchHistory]:
    """Evolution, and as many scored networks drawn at random."""
    began = now()
    evolved = search(judging, score, EvolutionOptions(drawn, seed=2 * seed), _say)
    took("evolution", began)
    scored = len({c.genes for c in evolved.scored})
    options = EvolutionOptions(10 * drawn, scored, seed=2 * seed + 1, evolves=False)
    began = now()
    chance = search(judging, score, options, _say)
    took("random", began)
    return {"evolution": evolved, "random": chance}


def sample_of(judging: Judge) -> list[MemoryVerdict]:
    """Random networks with their exact arenas, planned whole."""
    random = np.random.default_rng(2)
    limits = replace(judging.limits, tiles=None, flash=None, instructions=None, exact=True)
    return replace(judging, limits=limits).verdicts([SPACE.random(random) for _ in range(SAMPLE)])


def ask(limits: BoardLimits, drawn: int, engine: JobEngine) -> Iterator[str]:
    """What decides about random networks, and how often the count is wrong about them."""
    random = np.random.default_rng(3)
    genes = [SPACE.random(random) for _ in range(drawn)]
    verdicts = Judge(SPACE, limits, engine).verdicts(genes)
    candidates = [DrawnNetwork(g, v) for g, v in zip(genes, verdicts, strict=True)]
    histories = {"random": SearchHistory(candidates)}
    yield tests_table(histories)
    yield schedule_table(histories, limits.arena)


def unchosen(network: SuperNetwork, drawn: SearchHistory, data: DataSet, number: int = 20) -> str:
    """The first networks that were drawn at random, which nothing chose: their accuracy on the
    images to choose by beside that on test images. Test images are cut from other parts of the
    photographs, so that they are harder for every network."""
    first = [c for c in drawn.candidates if c.accuracy is not None][:number]
    tested = [network.accuracy(c.genes, data.test_images[:], data.test_labels) for c in first]
    kept = [c.accuracy or 0.0 for c in first]
    return (
        f"{len(first)} random networks, on average: {100 * np.mean(kept):.1f} % of images to "
        f"choose by, {100 * np.mean(tested):.1f} % of test images"
    )


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
    memory_options = api.MemoryOptions(kernels=api.kernels_of(limits.target))
    options = api.PlanOptions(
        memory_options, api.TilePermission(), given_arena_limit=limits.arena, force=True
    )
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


def limits_of(given: argparse.Namespace) -> BoardLimits:
    """Of the command line."""
    sizes = parse_size(given.budget), parse_size(given.flash)
    return BoardLimits(api.load_target(given.target), *sizes, INSTRUCTIONS, QUICK_TILES)


def run(given: argparse.Namespace, engine: JobEngine) -> None:
    """All of it, one after the other."""
    data = load_data("scenes")
    parts = split(data)
    limits = limits_of(given)
    began = now()
    network = super_network(parts, given.folder, given.seed)
    took("super-network", began)
    with ResultStore(given.folder / "results.sqlite") as store:
        judging = Judge(SPACE, limits, engine, store)
        score = kept_score(network, parts, store)
        histories = searches(judging, score, given.drawn, given.seed)
        sample = sample_of(judging)
    about = {"target": given.target, "arena": limits.arena, "flash": limits.flash,
             "instructions": INSTRUCTIONS, "seed": given.seed}  # fmt: skip
    record = SearchRecord(about, histories, sample)
    if given.record is not None:
        record.write(given.record)
    print("\n\n".join(record.show()), flush=True)
    print(unchosen(network, histories["random"], data), flush=True)
    for name, history in histories.items():
        began = now()
        print(finish(name, network, history.scored[0], data, limits, given.folder))
        took(f"finish {name}", began)


def timed(record: SearchRecord, each: int = 12) -> Iterator[str]:
    """Processor seconds of a verdict, by what decided: of the first networks of each kind that
    evolution drew, judged in this process; and what all that it drew took at that rate."""
    about, evolved = record.about, record.histories["evolution"]
    target = api.load_target(about["target"])
    limits = BoardLimits(target, about["arena"], about["flash"], about["instructions"], QUICK_TILES)
    judge(FitQuestion(SPACE.decode(SPACE.smallest).chain(), replace(limits, arena=9000)))  # warm
    means: dict[tuple[bool, str], float] = {}
    for kind in TESTS:
        drawn = [c for c in evolved.candidates if (c.verdict.fits, c.verdict.by) == kind][:each]
        if drawn:
            began = time.process_time()
            for candidate in drawn:
                judge(FitQuestion(SPACE.decode(candidate.genes).chain(), limits))
            means[kind] = (time.process_time() - began) / len(drawn)
            words = "fits" if kind[0] else "rejects"
            yield f"{kind[1]} {words}: {means[kind]:.3f} s each, of {len(drawn)}"
    counts = Counter((c.verdict.fits, c.verdict.by) for c in evolved.candidates)
    total = sum(means[kind] * number for kind, number in counts.items())
    yield f"all {len(evolved.candidates):,}: {total:.0f} s"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    running, asking = verbs.add_parser("run"), verbs.add_parser("ask")
    running.add_argument("folder", type=Path)
    running.add_argument("--record", type=Path)
    running.add_argument("--seed", type=int, default=0)
    for verb, budget, drawn in ((running, "64K", 2000), (asking, "32K", 200)):
        verb.add_argument("--target", default="nano33ble")
        verb.add_argument("--budget", default=budget)
        verb.add_argument("--flash", default="96K")
        verb.add_argument("--drawn", type=int, default=drawn)
        verb.add_argument("--workers", type=int, default=2)
        verb.add_argument("--address")
    showing = verbs.add_parser("show")
    showing.add_argument("file", type=Path)
    showing.add_argument("--svg", type=Path)
    verbs.add_parser("time").add_argument("file", type=Path)
    return parser.parse_args()


def main() -> None:
    """A run, or what an earlier one recorded."""
    given = arguments()
    if given.verb == "time":
        for line in timed(SearchRecord.read(given.file)):
            print(line, flush=True)
    elif given.verb == "show":
        record = SearchRecord.read(given.file)
        print("\n\n".join(record.show()))
        if given.svg is not None:
            given.svg.write_text(search_svg(record.histories, record.about["arena"]))
    else:
        imports = ("tflm_planner.codesign.joint.memory",)
        with engine_at(given.address, given.workers, imports) as engine:
            if given.verb == "ask":
                print("\n\n".join(ask(limits_of(given), given.drawn, engine)))
            else:
                make_folder(given.folder)
                run(given, engine)


if __name__ == "__main__":
    main()
