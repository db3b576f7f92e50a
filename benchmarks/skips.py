"""What skips are worth in accuracy: a small ResNet or DenseNet as it is, without skips, with
DERO's, and with skips that vanish, trained on real digits, at equal width and at equal arena.

    python benchmarks/skips.py [--family resnet] [--side 20] [--width 8] [--layers 14] [--epochs 6]
                               [--seeds 3] [--data mnist5k] [--tiles] [--keep FILE]
                               [--rows 4] [--workers 1]

Prints a table in Markdown ([docs/training.md](../docs/training.md)). Arenas are planned, on a
Cortex-M4 with CMSIS-NN; at equal arena a variant is as wide (to two channels) as the arena of
the original, or of DERO's, allows. The width of a DenseNet (`--family densenet`) is its growth, to
one channel; it has a growth of 6 and 22 layers where nothing else is asked for. `--tiles` adds the
arena in tiles. `--keep` appends each training to a file, and what that has is not trained again.
`--rows` makes the first rows alone, `--workers` trains as many at once, each in a process of its
own (one GPU serves several). `KERAS_BACKEND=torch` trains on PyTorch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.families import ChainBuilder
from tflm_planner.codesign.chains.papers import small_densenet
from tflm_planner.codesign.chains.residuals import plain, reorganise, vanishing
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.networks.folding import running
from tflm_planner.codesign.networks.selection import planned_memory, select
from tflm_planner.codesign.networks.weights import Norms
from tflm_planner.codesign.training.data import load_data
from tflm_planner.codesign.training.data_set import DataSet
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, round_network
from tflm_planner.codesign.training.trainable import Trainable, untrained
from tflm_planner.pipeline.options import TilePermission
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.targets import load_target

TARGET = load_target("cortex-m4/cmsis-nn")
MEMORY = partial(planned_memory, target=TARGET)
WIDEST = 24


@dataclass(frozen=True)
class Shape:
    """Of the networks: rows of the image, its channels, layers, and classes."""

    side: int
    channels: int
    layers: int
    classes: int


@dataclass(frozen=True)
class Family:
    """Networks of a kind. make: shape, width -> chain. rows: variants, and beside each that whose
    arena, at the width of the first, its own width follows ("": it has that width). widths: those
    that are tried for it. width, layers: those of the first row, where nothing is asked for."""

    make: Callable[[Shape, int], Chain]
    rows: tuple[tuple[str, str], ...]
    widths: range
    width: int
    layers: int


def resnet(shape: Shape, width: int) -> Chain:
    """A ResNet for small images, whose stages are `width`, twice and four times as wide."""
    grown = ChainBuilder(shape.channels)
    grown.conv(width, (3, 3), 1, "relu")
    for stage in range(3):
        for block in range((shape.layers - 2) // 6):
            stride = 2 if stage and not block else 1
            grown.conv(width << stage, (3, 3), stride, "relu")
            grown.conv(width << stage, (3, 3), activation="relu", skip=2)
    grown.classify(shape.classes, pools=True)
    image = (shape.side, shape.side, shape.channels)
    return Chain(f"resnet{shape.layers}_{width}", image, tuple(grown.layers))


def densenet(shape: Shape, growth: int) -> Chain:
    """A DenseNet of three blocks for small images. A layer of a block is two convolutions."""
    image = (shape.side, shape.side, shape.channels)
    sizes = ((shape.layers - 4) // 6,) * 3
    return small_densenet(f"densenet{shape.layers}_{growth}", image, sizes, growth, shape.classes)


def original(chain: Chain) -> tuple[Chain, Norms]:
    """As it is."""
    return chain, "after"


def without(chain: Chain) -> tuple[Chain, Norms]:
    """Without skips."""
    return plain(chain), "after"


def dero(chain: Chain) -> tuple[Chain, Norms]:
    """With DERO's skips, normalised before convolutions, and scaled where the paper's network of
    that kind has them scaled."""
    is_dense = chain.name.startswith("dense")
    made = reorganise(chain, scaled="where shapes change" if is_dense else "always")
    return made, "before"


def everywhere(chain: Chain) -> tuple[Chain, Norms]:
    """With a skip around each convolution that folds into it."""
    return vanishing(chain), "after"


def at_peak(chain: Chain) -> tuple[Chain, Norms]:
    """With such skips where others lived at the peak; the others stay."""
    return select(chain, vanishing, MEMORY).chain, "after"


VARIANTS: dict[str, Callable[[Chain], tuple[Chain, Norms]]] = {
    "original": original,
    "plain": without,
    "DERO": dero,
    "vanishing": everywhere,
    "vanishing at the peak": at_peak,
    "plain, taught": without,
}
TAUGHT = ("plain, taught",)
"""Variants that learn half from the original of their width, trained as they are."""
_OF_RESNET = (
    ("original", ""), ("plain", ""), ("DERO", ""), ("vanishing", ""),
    ("plain", "original"), ("vanishing", "original"), ("vanishing at the peak", "original"),
    ("original", "DERO"), ("plain", "DERO"), ("vanishing", "DERO"),
)  # fmt: skip
"""Variants at the width of the original, then those that are as wide as the arena of the original
allows, then as that of DERO's does, which needs more than the original at any width."""
_OF_DENSENET = (
    ("original", ""), ("plain", ""), ("DERO", ""), ("vanishing", ""),
    ("plain", "original"), ("DERO", "original"), ("original", "DERO"), ("plain", "DERO"),
    ("plain, taught", ""),
)  # fmt: skip
FAMILIES = {
    "resnet": Family(resnet, _OF_RESNET, range(2, WIDEST + 1, 2), 8, 14),
    "densenet": Family(densenet, _OF_DENSENET, range(1, WIDEST + 1), 6, 22),
}


@dataclass(frozen=True)
class Networks:
    """The variants of a family at a shape."""

    family: str
    shape: Shape

    @cache  # noqa: B019 (there is one)
    def made(self, name: str, width: int) -> tuple[Chain, Norms]:
        """A variant, and where it is normalised in training."""
        return VARIANTS[name](FAMILIES[self.family].make(self.shape, width))

    def trainable(self, name: str, width: int, seed: int) -> Trainable:
        """A variant with weights from a seed."""
        chain, norms = self.made(name, width)
        return untrained(chain, seed, norms)

    @cache  # noqa: B019
    def memory(self, name: str, width: int) -> int:
        """Bytes of planned arena."""
        return MEMORY(self.made(name, width)[0]).arena

    def width_within(self, name: str, arena: int) -> int:
        """The largest width at which a variant's arena is no larger."""
        widths = FAMILIES[self.family].widths
        return max(w for w in widths if self.memory(name, w) <= arena)

    def in_tiles(self, name: str, width: int) -> int:
        """Bytes of arena with the tiles that the search finds, of the firmware's own operators."""
        permission = TilePermission(operators=AllowedOperators.NONE)
        return planned_memory(self.made(name, width)[0], TARGET, permission).arena


@dataclass(frozen=True)
class Training:
    """One training of a variant. data: the name of its images."""

    networks: Networks
    name: str
    width: int
    data: str
    recipe: Recipe

    @property
    def key(self) -> str:
        """What its figures are kept under."""
        family, shape = self.networks.family, self.networks.shape
        what = (self.name, shape, self.width, self.data, self.recipe)
        return repr(what if family == "resnet" else (family, *what))


@cache
def images(name: str, side: int) -> DataSet:
    """Images that are read once in each process."""
    return load_data(name, side)


def score(training: Training) -> dict[str, float]:
    """Accuracies of one training, and the processor time that it took."""
    began = time.process_time()
    networks, name, width, recipe = (
        training.networks,
        training.name,
        training.width,
        training.recipe,
    )
    data = images(training.data, networks.shape.side)
    trainable = networks.trainable(name, width, recipe.seed)
    teacher = None
    if name in TAUGHT:
        taught_by = networks.trainable("original", width, recipe.seed)
        train(taught_by, data, recipe)
        teacher, recipe = taught_by.predict, replace(recipe, distilling=0.5)
    train(trainable, data, recipe, teacher=teacher)
    rounded = round_network(trainable, data, FINE_TUNING)
    return {
        "float": rounded.of_floats,
        "after training": rounded.after_training,
        "int8": rounded.of_int8,
        "seconds": time.process_time() - began,
    }


def in_words(values: list[float]) -> str:
    """Mean and standard deviation, in percent."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.mean(values):.2f} ± {100 * deviation:.2f}"


def line(
    networks: Networks, name: str, width: int, scores: list[dict[str, float]], *, tiles: bool
) -> str:
    """A row of the table."""
    size = size_of(running(networks.made(name, width)[0]))
    cells = [in_words([s[key] for s in scores]) for key in ("float", "after training", "int8")]
    arenas = [networks.memory(name, width), *([networks.in_tiles(name, width)] * tiles)]
    about = f"{size.macs / 1e6:.2f} M | {size.parameters:,}"
    return f"| {name} | {width} | {about} | {' | '.join([*map('{:,}'.format, arenas), *cells])} |"


class Kept:
    """Trainings that are done, by what was trained. file: where they are appended, if anywhere."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.scores: dict[str, dict[str, float]] = {}
        if file is not None and file.is_file():
            self.scores = dict(json.loads(text) for text in file.read_text().splitlines())

    def get(self, key: str, make: Callable[[], dict[str, float]]) -> dict[str, float]:
        """The figures of a training, which is done if it is not kept."""
        if key not in self.scores:
            self.add(key, make())
        return self.scores[key]

    def add(self, key: str, scores: dict[str, float]) -> None:
        """Keep the figures of a training."""
        self.scores[key] = scores
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps((key, scores)) + "\n")


def train_all(trainings: list[Training], kept: Kept, workers: int) -> None:
    """Do all trainings that are not kept yet, `workers` at once."""
    missing = [training for training in trainings if training.key not in kept.scores]
    if workers == 1:
        for training in missing:
            kept.get(training.key, partial(score, training))
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        running = {pool.submit(score, training): training for training in missing}
        for done in as_completed(running):
            kept.add(running[done].key, done.result())


def main() -> None:
    """Train what is not kept yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=FAMILIES, default="resnet")
    for option, number in (("side", 20), ("width", 0), ("layers", 0), ("epochs", 6), ("seeds", 3)):
        parser.add_argument(f"--{option}", type=int, default=number)
    parser.add_argument("--data", default="mnist5k")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    family, kept = FAMILIES[given.family], Kept(given.keep)
    data = images(given.data, given.side)
    layers = given.layers or family.layers
    shape = Shape(given.side, data.images.shape[3], layers, data.classes)
    networks = Networks(given.family, shape)
    recipes = [Recipe(epochs=given.epochs, shift=1, seed=seed) for seed in range(given.seeds)]
    rows: list[list[Training]] = []
    for name, beside in family.rows[: given.rows]:
        width = given.width or family.width
        if beside:
            width = networks.width_within(name, networks.memory(beside, width))
        rows.append([Training(networks, name, width, given.data, recipe) for recipe in recipes])
    if given.workers > 1:
        train_all([training for row in rows for training in row], kept, given.workers)
    for row in rows:
        train_all(row, kept, 1)
        scores = [kept.scores[training.key] for training in row]
        print(line(networks, row[0].name, row[0].width, scores, tiles=given.tiles), flush=True)
    print(f"processor time: {sum(s['seconds'] for s in kept.scores.values()):.0f} s")


if __name__ == "__main__":
    main()
