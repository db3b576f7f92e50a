"""Images as arrays, or read from their files as they are used; other sizes of them.

It must not know data sets, nor labels.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from tflm_planner.codesign.framework import tensorflow
from tflm_planner.codesign.networks.weights import Array
from tflm_planner.support.errors import UsageError

_AT_ONCE = 64
"""Images that are read together when all are gone through one by one."""


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


def scaled(images: Array, most: float) -> Array:
    """Scale numbers from [0, most] to [-1, 1]."""
    return (images / most * 2 - 1).astype(np.float32)


def _read_image(path: Path, side: int) -> Array:
    """Read the central square of a colour image, resized to `side` rows and columns."""
    image = decoded(path, channels=3)
    least = min(image.shape[:2])
    top, left = ((size - least) // 2 for size in image.shape[:2])
    square = image[None, top : top + least, left : left + least]
    return scaled(resize(square, side), 255)[0]


def decoded(path: Path, channels: Literal[1, 3]) -> Array:
    """Decode an image file to (rows, columns, channels), with brightness from 0 to 255; of several
    pictures the first. Raises UsageError if it is none.

    TensorFlow decodes where it is installed, whatever trains, since the figures of docs/training.md
    and docs/joint-search.md were made so; else Pillow. JPEG files differ by up to 18 of 255, others
    do not."""
    try:
        decode = _decoded_by_tensorflow if find_spec("tensorflow") else _decoded_by_pillow
        return decode(path, channels)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as an image ({error}); replace it, or move it away"
        ) from error


def _decoded_by_tensorflow(path: Path, channels: Literal[1, 3]) -> Array:
    tf = tensorflow()
    try:
        image: Any = tf.io.decode_image(
            path.read_bytes(), channels=channels, expand_animations=False
        )
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(error.message) from error
    return image.numpy().astype(np.float32)


def _decoded_by_pillow(path: Path, channels: Literal[1, 3]) -> Array:
    pillow: Any = importlib.import_module("PIL.Image")
    with pillow.open(path) as image:
        if image.mode.startswith("I"):  # 16 bits, which `convert` would clip at 255
            image = pillow.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"), np.float32)
    return pixels.reshape(*pixels.shape[:2], channels)
