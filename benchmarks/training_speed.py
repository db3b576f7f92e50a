"""How fast a framework trains on a device, and whether it gives the same numbers twice.

    python -m benchmarks.training_speed [--layers 20] [--width 16] [--side 48] [--epochs 3]
    KERAS_BACKEND=torch CUDA_VISIBLE_DEVICES= python -m benchmarks.training_speed   # not on the GPU

Trains a ResNet (`benchmarks.skips`) twice, with its weights from the same seed, on 2,048 random
images in batches of 64, and prints seconds of the fastest epoch but the first, which compiles.
"""

from __future__ import annotations

import argparse
import hashlib
import time

import numpy as np

from benchmarks.skips import Shape, resnet
from tflm_planner.codesign.framework import keras
from tflm_planner.codesign.training.data_set import DataSet
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.trainable import untrained
from tflm_planner.support.progress import Progress

IMAGES = 2048
CLASSES = 10


def random_images(side: int) -> DataSet:
    """Images of noise; the last batch tests."""
    random = np.random.default_rng(0)
    images = random.normal(size=(IMAGES + 64, side, side, 1)).astype(np.float32)
    labels = random.integers(0, CLASSES, IMAGES + 64)
    return DataSet("noise", images[:IMAGES], labels[:IMAGES], images[IMAGES:], labels[IMAGES:])


def clock(moments: list[float]) -> Progress:
    """Notes the time after each epoch."""

    def say(words: str) -> None:
        if "accuracy" in words:
            moments.append(time.perf_counter())

    return say


def device() -> str:
    """Where the framework keeps its variables."""
    variable = keras().Variable(np.zeros(1, np.float32))
    return str(variable.value.device)


def main() -> None:
    """Print framework, device, seconds of an epoch, and digests of both trainings."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option, number in (("layers", 20), ("width", 16), ("side", 48), ("epochs", 3)):
        parser.add_argument(f"--{option}", type=int, default=number)
    given = parser.parse_args()
    data = random_images(given.side)
    chain = resnet(Shape(given.side, 1, given.layers, CLASSES), given.width)
    digests: list[str] = []
    seconds: list[float] = []
    for _ in range(2):
        moments: list[float] = []
        network = untrained(chain, 0)
        train(network, data, Recipe(epochs=given.epochs, shift=1), say=clock(moments))
        seconds += list(np.diff(moments))
        numbers = b"".join(values.tobytes() for values in network.state().values())
        digests.append(hashlib.sha256(numbers).hexdigest()[:12])
    same = "the same weights" if digests[0] == digests[1] else "other weights"
    print(
        f"{keras().config.backend()} on {device()}: {min(seconds):.2f} s an epoch of {IMAGES} "
        f"images; the second training gave {same} ({', '.join(digests)})"
    )


if __name__ == "__main__":
    main()
