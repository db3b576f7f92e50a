"""Folders of images as data sets: FOLDER/CLASS/*.png, or FOLDER/train and FOLDER/val with such
folders (ImageNet, Visual Wake Words).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tflm_planner.codesign.networks.weights import Array
from tflm_planner.codesign.training.data_set import DataSet, test_part
from tflm_planner.codesign.training.images import ImageFiles, Images
from tflm_planner.support.errors import UsageError

_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif")
_TRAINING, _TESTING = ("train", "training"), ("val", "validation", "test")


def load_folder(folder: Path, side: int, most_in_memory: int) -> DataSet:
    """The images of a folder, resized to `side` rows and columns. most_in_memory: bytes; a part
    that is larger as floats is read from its files as it is used. Raises UsageError if folders or
    images are missing."""
    training = _first_folder(folder, _TRAINING)
    testing = _first_folder(folder, _TESTING)
    if (training is None) != (testing is None):
        raise UsageError(f"{folder} has one of train and val, but not both")
    if training is None or testing is None:
        files, labels = _class_files(folder, _class_names(folder))
        is_test = test_part(labels)
        if not is_test.any():
            raise UsageError(
                f"{folder}: a fifth of each class are test images, and no class has three images; "
                "add some, or make folders train and val"
            )
        parts = (files[~is_test], labels[~is_test], files[is_test], labels[is_test])
    else:
        names = _class_names(training)
        parts = (*_class_files(training, names), *_class_files(testing, names))
    images, labels, test_images, test_labels = parts
    read = partial(_read, side=side, most_in_memory=most_in_memory)
    return DataSet(str(folder), read(images), labels, read(test_images), test_labels)


def _read(files: Array, *, side: int, most_in_memory: int) -> Images:
    """The images in these files. They are read now if there is room, else when they are used."""
    images = ImageFiles(files, side)
    return images[:] if 4 * math.prod(images.shape) <= most_in_memory else images


def _first_folder(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_dir()), None)


def _class_names(folder: Path) -> list[str]:
    names = sorted(path.name for path in _visible(folder) if path.is_dir())
    if len(names) < 2:
        raise UsageError(f"{folder}: two folders or more are needed, one a class")
    return names


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, sorted, without what tools hide there (`.ipynb_checkpoints`,
    `._1.png`)."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _class_files(folder: Path, names: Sequence[str]) -> tuple[Array, Array]:
    """The files of all images in the folders of these classes, and the number of their class.
    Raises UsageError where a class has none, or where there are other classes."""
    more = sorted({path.name for path in _visible(folder) if path.is_dir()} - set(names))
    if more:
        raise UsageError(f"{folder} has classes that the training part has not: {', '.join(more)}")
    files: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(names):
        inside = _visible(folder / name) if (folder / name).is_dir() else []
        found = [path for path in inside if path.suffix.lower() in _IMAGES]
        if not found:
            raise UsageError(f"{folder / name}: no images ({', '.join(_IMAGES)}) of this class")
        files += found
        labels += [label] * len(found)
    return np.array(files, object), np.array(labels)
