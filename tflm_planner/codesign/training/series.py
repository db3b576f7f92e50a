"""Reads labelled time series from `.ts` files, as sktime has them.

    @data
    0.1,0.2,0.3:1.5,1.6,1.7:b        values of each channel in time, and the class at the end

A series becomes an image whose rows are points in time and whose columns are channels. It must not
know data sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tflm_planner.codesign.networks.weights import Array
from tflm_planner.support.errors import UsageError

Series = list[Array]
"""Series of any length, each (points in time, channels)."""


def read_series(path: Path) -> tuple[Series, Array]:
    """The series in a file, and the name of the class of each. Raises UsageError for a file of
    another form."""
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    series: Series = []
    names: list[str] = []
    if not any(line.strip().lower() == "@data" for line in lines):  # the rest is data
        raise UsageError(f"{path} has no @data: it is no file of time series")
    try:
        for line in filter(None, map(str.strip, lines)):
            *channels, name = line.split(":")
            values = [np.array(channel.split(","), np.float32) for channel in channels]
            series.append(np.stack(values, axis=1))
            names.append(name.strip())
    except ValueError as error:
        raise UsageError(f"{path}: series {len(series) + 1} cannot be read: {error}") from error
    return series, np.array(names)


def as_images(training: Series, testing: Series) -> tuple[Array, Array]:
    """Both parts as floats from -1 to 1 (number, points in time, channels, 1). Shorter series end
    in zeros, longer ones than any that is trained on are cut off. Values are relative to the
    largest one that is trained on, and cut off there."""
    points = max(map(len, training))
    most = max(float(np.abs(one).max()) for one in training)
    return _padded(training, points, most), _padded(testing, points, most)


def _padded(series: Sequence[Array], points: int, most: float) -> Array:
    images = np.zeros((len(series), points, series[0].shape[1], 1), np.float32)
    for image, values in zip(images, series, strict=True):
        kept = values[:points]
        image[: len(kept), :, 0] = np.clip(kept / most, -1, 1)
    return images
