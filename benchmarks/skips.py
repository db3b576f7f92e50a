"""What skips are worth in accuracy: a small ResNet as it is, without skips, with DERO's, and with
skips that vanish, trained on real digits, at equal width and at equal arena.

    python benchmarks/skips.py [--side 20] [--width 8] [--layers 14] [--epochs 6] [--seeds 3]
                               [--data mnist5k] [--keep FILE]

Prints a table in Markdown ([docs/training.md](../docs/training.md)). Arenas are planned, on a
Cortex-M4 with CMSIS-NN; at equal arena a variant is as wide (to two channels) as the arena of
the original, or of DERO's, allows. `--keep` appends each training to a file, and what that has is
not trained again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.families import ChainBuilder
from tflm_planner.codesign.chains.residuals import plain, reorganise
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.networks.folding import running
from tflm_planner.codesign.networks.selection import planned_memory, select
from tflm_planner.codesign.training.data import DataSet, load_data
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, round_network
from tflm_planner.codesign.training.trainable import TrainingForm, untrained
from tflm_planner.tflm.targets import load_target

MEMORY = partial(planned_memory, target=load_target("cortex-m4/cmsis-nn"))
WIDEST = 24


@dataclass(frozen=True)
class Shape:
    """Of the networks: rows of the image, its channels, layers, and classes."""

    side: int
    channels: int
    layers: int
    classes: int


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


def original(chain: Chain) -> tuple[Chain, TrainingForm]:
    """As it is."""
    return chain, TrainingForm()


def without(chain: Chain) -> tuple[Chain, TrainingForm]:
    """Without skips."""
    return plain(chain), TrainingForm()


def dero(chain: Chain) -> tuple[Chain, TrainingForm]:
    """With DERO's skips, normalised before convolutions."""
    return reorganise(chain), TrainingForm("before")


def vanishing(chain: Chain) -> tuple[Chain, TrainingForm]:
    """With a skip around each convolution that folds into it."""
    return plain(chain), TrainingForm("after", "identity")


def vanishing_at_peak(chain: Chain) -> tuple[Chain, TrainingForm]:
    """With such skips where others lived at the peak; the others stay."""
    chosen = select(chain, plain, MEMORY)
    around: Collection[int] = {
        place
        for end in chosen.changed
        for place in range(end + 1 - chain.layers[end].skip, end + 1)
    }
    return chosen.chain, TrainingForm("after", "identity", around)


VARIANTS: dict[str, Callable[[Chain], tuple[Chain, TrainingForm]]] = {
    "original": original,
    "plain": without,
    "DERO": dero,
    "vanishing": vanishing,
    "vanishing at the peak": vanishing_at_peak,
}
ROWS = (
    ("original", ""), ("plain", ""), ("DERO", ""), ("vanishing", ""),
    ("plain", "original"), ("vanishing", "original"), ("vanishing at the peak", "original"),
    ("original", "DERO"), ("plain", "DERO"), ("vanishing", "DERO"),
)  # fmt: skip
"""Variants at the width of the original, then those that are as wide as the arena of the original
allows, then as that of DERO's does, which needs more than the original at any width."""


@cache
def width_within(name: str, shape: Shape, arena: int) -> int:
    """The largest even width at which a variant's arena is no larger."""
    widths = range(2, WIDEST + 1, 2)
    fitting = (w for w in widths if memory_of(name, shape, w) <= arena)
    return max(fitting)


@cache
def memory_of(name: str, shape: Shape, width: int) -> int:
    """Bytes of planned arena."""
    return MEMORY(VARIANTS[name](resnet(shape, width))[0]).arena


def score(name: str, shape: Shape, width: int, data: DataSet, recipe: Recipe) -> dict[str, float]:
    """Accuracies of one training, and the processor time that it took."""
    began = time.process_time()
    chain, form = VARIANTS[name](resnet(shape, width))
    trainable = untrained(chain, form, recipe.seed)
    train(trainable, data, recipe)
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


def line(name: str, shape: Shape, width: int, scores: list[dict[str, float]]) -> str:
    """A row of the table."""
    chain = running(VARIANTS[name](resnet(shape, width))[0])
    size, arena = size_of(chain), memory_of(name, shape, width)
    cells = [in_words([s[key] for s in scores]) for key in ("float", "after training", "int8")]
    about = f"{size.macs / 1e6:.2f} M | {size.parameters:,} | {arena:,}"
    return f"| {name} | {width} | {about} | {' | '.join(cells)} |"


def main() -> None:
    """Train what is not kept yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option, number in (("side", 20), ("width", 8), ("layers", 14), ("epochs", 6), ("seeds", 3)):
        parser.add_argument(f"--{option}", type=int, default=number)
    parser.add_argument("--data", default="mnist5k")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    data = load_data(given.data, given.side)
    shape = Shape(given.side, data.images.shape[3], given.layers, data.classes)
    kept: dict[str, dict[str, float]] = {}
    if given.keep is not None and given.keep.is_file():
        kept = dict(json.loads(text) for text in given.keep.read_text().splitlines())
    for name, beside in ROWS:
        limit = memory_of(beside, shape, given.width) if beside else 0
        width = width_within(name, shape, limit) if beside else given.width
        scores: list[dict[str, float]] = []
        for seed in range(given.seeds):
            recipe = Recipe(epochs=given.epochs, shift=1, seed=seed)
            key = repr((name, shape, width, given.data, recipe))
            if key not in kept:
                kept[key] = score(name, shape, width, data, recipe)
                if given.keep is not None:
                    with given.keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps((key, kept[key])) + "\n")
            scores.append(kept[key])
        print(line(name, shape, width, scores), flush=True)
    print(f"processor time: {sum(s['seconds'] for s in kept.values()):.0f} s")


if __name__ == "__main__":
    main()
