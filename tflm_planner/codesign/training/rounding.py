"""Turns a trained network into an int8 model: folded, calibrated, and optionally fine-tuned.

    Trainable --fold--> Network --ranges of its values--> int8          (after training)
                           `-- fine-tuned with rounded values and weights --> int8

Fine-tuning (Jacob et al. 2018): in the forward pass, values and weights are rounded as in int8, and
the gradient ignores the rounding. The ranges of values stay those of the calibration. A folded
network has no normalisations that would keep gradients small: where fine-tuning loses accuracy on
images that it trained on, it is done again at a lower rate, and left out if that loses, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflm_planner.codesign.networks.build import build_floats, build_int8
from tflm_planner.codesign.networks.folding import fold
from tflm_planner.codesign.networks.ranges import ValueRange
from tflm_planner.codesign.networks.scoring import accuracy, value_ranges
from tflm_planner.codesign.networks.weights import Array, Network
from tflm_planner.codesign.training.data_set import DataSet
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.trainable import Trainable, of_network
from tflm_planner.support.progress import Progress, silent

CALIBRATION = 200
"""Number of images from which ranges are calibrated."""
_JUDGES = 1000
"""Number of training images on which fine-tuning must not lose accuracy."""
_LOSS = 0.01
"""How much accuracy it must lose there to be done again: a point, or ten of these images."""
_RATES = 1, 0.1, 0.01
"""Factors of the rates that are tried."""
FINE_TUNING = Recipe(epochs=1, rate=0.002, smoothing=0.0)
"""How the networks of docs/training.md are trained further in int8."""


@dataclass(frozen=True)
class RoundedModel:
    """A trained network as .tflite files. floats, int8: the float and the int8 model. of_floats,
    of_int8: their accuracies on the test images. after_training: the accuracy of the int8 model
    before fine-tuning."""

    floats: bytes
    int8: bytes
    of_floats: float
    after_training: float
    of_int8: float


def round_network(
    trained: Trainable, data: DataSet, fine_tuning: Recipe | None = None, say: Progress = silent
) -> RoundedModel:
    """Make the models of a trained network. fine_tuning: how to fine-tune; None: not at all. What
    loses accuracy by it stays as it is after training."""
    folded = fold(trained.network())
    random = np.random.default_rng(0)
    chosen = random.permutation(len(data.images))[:_JUDGES]
    ranges = value_ranges(folded, data.images[chosen[:CALIBRATION]])
    floats, int8 = build_floats(folded), build_int8(folded, ranges)
    test = data.test_images, data.test_labels
    after_training = accuracy(int8, *test)
    of_int8 = after_training
    tuned = fine_tuning and _fine_tuned(folded, ranges, data, chosen, fine_tuning, say)
    if tuned is not None:
        int8 = build_int8(tuned, ranges)
        of_int8 = accuracy(int8, *test)
    return RoundedModel(floats, int8, accuracy(floats, *test), after_training, of_int8)


def _fine_tuned(
    folded: Network,
    ranges: tuple[ValueRange, ...],
    data: DataSet,
    judges: Array,
    recipe: Recipe,
    say: Progress,
) -> Network | None:
    """The network trained further with rounded values and weights; None if each rate loses accuracy
    on the training images `judges`."""
    images, labels = data.images[judges], data.labels[judges]
    least: float | None = None
    for factor in _RATES:
        tuned = of_network(folded)
        tuned.rounding = ranges
        if least is None:
            least = tuned.accuracy(images, labels) - _LOSS
        train(tuned, data, replace(recipe, distilling=0.0, rate=recipe.rate * factor), say=say)
        if tuned.accuracy(images, labels) >= least:
            return tuned.network()
    return None
