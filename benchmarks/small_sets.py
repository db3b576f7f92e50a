"""How well the small data sets that lie in packages are learned: a network of three convolutions
and a classifier for each, trained with several seeds, in floats and in int8.

    python -m benchmarks.small_sets [SETS...] [--epochs 60] [--batch 16] [--seeds 3]

Prints a table in Markdown ([docs/training.md](../docs/training.md)). Arenas are planned, of the
int8 model on a Cortex-M4 with CMSIS-NN. `faces` needs scikit-image, `gunpoint` and `vowels` need
sktime, which no extra brings; of both only files are read.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.skips import MEMORY, in_words
from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.families import ChainBuilder
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.training.data import load_data
from tflm_planner.codesign.training.data_set import DataSet
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, round_network
from tflm_planner.codesign.training.trainable import untrained

KERNELS = {"digits": (3, 3), "faces": (3, 3), "gunpoint": (9, 1), "vowels": (3, 3)}
"""The data sets, and the windows of convolutions: of a series of one channel points in time
alone."""
WIDTHS = 8, 16, 32


def network(name: str, data: DataSet) -> Chain:
    """The network of a data set; all convolutions but the first halve the image."""
    height, width, channels = data.images.shape[1:]
    grown = ChainBuilder(channels)
    for place, out in enumerate(WIDTHS):
        grown.conv(out, KERNELS[name], 2 if place else 1, "relu")
    grown.classify(data.classes)
    return Chain(name, (height, width, channels), tuple(grown.layers))


def row(name: str, recipes: list[Recipe]) -> str:
    """A line of the table: a training for each recipe."""
    data, began = load_data(name), time.process_time()
    chain = network(name, data)
    scores: list[tuple[float, float]] = []
    for recipe in recipes:
        trainable = untrained(chain, recipe.seed)
        train(trainable, data, recipe)
        rounded = round_network(trainable, data, FINE_TUNING)
        scores.append((rounded.of_floats, rounded.of_int8))
    floats, int8 = (in_words([*values]) for values in zip(*scores, strict=True))
    size, images = size_of(chain), f"{len(data.images):,} | {len(data.test_images):,}"
    about = f"{size.macs / 1e6:.2f} M | {size.parameters:,} | {MEMORY(chain).arena:,}"
    seconds = f"{time.process_time() - began:.0f}"
    return f"| `{name}` | {images} | {about} | {floats} | {int8} | {seconds} |"


def main() -> None:
    """Train, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=list(KERNELS))
    for option, number in (("epochs", 60), ("batch", 16), ("seeds", 3)):
        parser.add_argument(f"--{option}", type=int, default=number)
    given = parser.parse_args()
    heads = ("data", "to train on", "to test on", "MACs", "parameters", "arena", "float",
             "int8 fine-tuned", "seconds")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|---|{'--:|' * (len(heads) - 1)}")
    recipes = [Recipe(given.epochs, given.batch, seed=seed) for seed in range(given.seeds)]
    for name in given.sets:
        print(row(name, recipes), flush=True)


if __name__ == "__main__":
    main()
