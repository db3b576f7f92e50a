"""What a smaller image costs: one network, trained at several image sizes to name a digit, and to
find digits (MCUNetV2's figure 2 says that detection suffers more).

    python -m benchmarks.resolution [--sides 48 36 24 12] [--epochs 6] [--batch 16] [--smoothing 0]
                                    [--seeds 2] [--keep FILE] [--record FILE]

Prints a table in Markdown ([docs/training.md](../docs/training.md#smaller-images)). Both tasks have
scenes of 48x48 with digits of 12 to 24 rows on photographs, resized by the mean over areas:

    naming    `scenes`: one digit; accuracy
    finding   `detection`: one to three digits on a grid of 6x6 cells; F1 of digits with the right
              class in the right cell

The layers are the same at all sizes, with as many weights: a max pool brings any image to a grid of
6x6 before the last convolutions. Naming ends in the mean over that grid and a dense layer, finding
in a 1x1 convolution. Scores are of floats. Arenas are planned, of the int8 model on a Cortex-M4
with CMSIS-NN. `--keep` appends each training to a file, and what that has is not trained again.
`--record notebooks/resolution.json` writes the figures that `notebooks/papers.ipynb` draws.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from functools import partial
from pathlib import Path

from benchmarks.skips import MEMORY, Kept
from tflm_planner.codesign.chains.chain import Chain, Layer
from tflm_planner.codesign.chains.families import ChainBuilder
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.networks.folding import running
from tflm_planner.codesign.training.data import load_data
from tflm_planner.codesign.training.data_set import DataSet, resized
from tflm_planner.codesign.training.detection import found
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.scenes import GRID
from tflm_planner.codesign.training.trainable import untrained

TASKS = {"naming": "scenes", "finding": "detection"}
"""What is trained, and on which data."""


def network(task: str, side: int, classes: int) -> Chain:
    """The network for images of `side` rows, a multiple of 12."""
    if side % (2 * GRID):
        raise ValueError(f"images of {side} rows have no grid of {GRID}; a multiple of {2 * GRID}")
    grown = ChainBuilder(1)
    grown.conv(8, (3, 3), 2, "relu")
    grown.conv(16, (3, 3), 1, "relu")
    grown.conv(16, (3, 3), 1, "relu")
    window = side // (2 * GRID)
    grown.layers.append(Layer("max_pool", (window, window), window))
    grown.conv(48, (3, 3), 1, "relu")
    grown.conv(48, (3, 3), 1, "relu")
    if task == "naming":
        grown.classify(classes, pools=True)
    else:
        grown.conv(classes)
    return Chain(f"{task}_{side}", (side, side, 1), tuple(grown.layers))


def trained(task: str, side: int, data: DataSet, recipe: Recipe) -> dict[str, float]:
    """Scores of one training on the test images, and the processor time that it took."""
    began = time.process_time()
    small = resized(data, side)
    trainable = untrained(network(task, side, data.classes), recipe.seed)
    history = train(trainable, small, recipe)
    scores = {"accuracy": history[-1].accuracy}
    if task == "finding":
        judged = found(trainable.predict(small.test_images), small.test_labels)
        scores |= {"f1": judged.f1, "precision": judged.precision, "recall": judged.recall}
    return scores | {"seconds": time.process_time() - began}


def figures(task: str, side: int, classes: int, scores: list[dict[str, float]]) -> dict[str, float]:
    """What the table says of a task at a size. score: the mean over seeds of accuracy or F1.
    spread: its standard deviation."""
    each = [s["f1" if task == "finding" else "accuracy"] for s in scores]
    chain = network(task, side, classes)
    return {
        "score": statistics.mean(each),
        "spread": statistics.stdev(each) if len(each) > 1 else 0.0,
        "arena": MEMORY(chain).arena,
        "macs": size_of(running(chain)).macs,
    }


def table(rows: dict[str, dict[str, dict[str, float]]]) -> str:
    """Figures by task and side as Markdown. Relative: to the first side."""
    lines = ["| image | accuracy, naming | of the largest | F1, finding | of the largest | "
             "arena, naming | arena, finding | MACs, finding |",
             "|--:|--:|--:|--:|--:|--:|--:|--:|"]  # fmt: skip
    first = next(iter(rows["naming"]))
    for side in rows["naming"]:
        cells = [f"{side}x{side}"]
        for of_task in rows.values():
            row = of_task[side]
            cells.append(f"{100 * row['score']:.1f} ± {100 * row['spread']:.1f}")
            cells.append(f"{100 * row['score'] / of_task[first]['score']:.0f} %")
        cells += [f"{of_task[side]['arena']:,}" for of_task in rows.values()]
        cells.append(f"{rows['finding'][side]['macs'] / 1e6:.2f} M")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Train what is not kept yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", default=[48, 36, 24, 12])
    for option, number in (("epochs", 6), ("batch", 16), ("seeds", 2)):
        parser.add_argument(f"--{option}", type=int, default=number)
    parser.add_argument("--smoothing", type=float, default=0.0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--record", type=Path)
    given, rows = parser.parse_args(), {}
    kept = Kept(given.keep)
    for task, name in TASKS.items():
        data, rows[task] = load_data(name), {}
        for side in sorted(given.sides, reverse=True):
            scores: list[dict[str, float]] = []
            for seed in range(given.seeds):
                recipe = Recipe(given.epochs, given.batch, smoothing=given.smoothing, seed=seed)
                what = repr((task, network(task, side, data.classes), recipe))
                scores.append(kept.get(what, partial(trained, task, side, data, recipe)))
            rows[task][str(side)] = figures(task, side, data.classes, scores)
    print(table(rows))
    print(f"processor time: {sum(s['seconds'] for s in kept.scores.values()):.0f} s")
    if given.record:
        given.record.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
