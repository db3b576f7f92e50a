"""A data set: labelled images or time series, in a training part and a test part.

The split has its own seed and does not depend on the seed of a training. It must not know where
data sets come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflm_planner.codesign.networks.weights import Array
from tflm_planner.codesign.training.images import Images, resize

_TEST_SHARE = 0.2


@dataclass(frozen=True)
class DataSet:
    """images: floats from -1 to 1 (number, rows, columns, channels); of series (number, points in
    time, their channels, 1). labels: class numbers from 0, of images (number,), or of cells of a
    grid over each image (number, rows of cells, columns)."""

    name: str
    images: Images
    labels: Array
    test_images: Images
    test_labels: Array

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(max(self.labels.max(), self.test_labels.max())) + 1


def split(name: str, images: Array, labels: Array) -> DataSet:
    """Split off a fifth of each class as test images."""
    is_test = test_part(labels)
    return DataSet(name, images[~is_test], labels[~is_test], images[is_test], labels[is_test])


def test_part(labels: Array) -> Array:
    """Which images are test images: a fifth of each class."""
    random = np.random.default_rng(0)
    is_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        is_test[members[: round(_TEST_SHARE * len(members))]] = True
    return is_test


def resized(data: DataSet, side: int) -> DataSet:
    """The data set with its images resized to `side` rows and columns. Labels stay."""
    parts = (resize(data.images, side), data.labels, resize(data.test_images, side))
    return DataSet(data.name, *parts, data.test_labels)
