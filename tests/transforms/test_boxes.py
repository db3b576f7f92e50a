"""Boxes and their names, against elements counted one by one."""

from __future__ import annotations

import math
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from tests.models.build import Net
from tflm_planner.model.ir import Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.transforms.tile.boxes import (
    Box,
    along,
    box_name,
    cuts,
    extents,
    full_box,
    grow,
    hull,
    is_empty,
    is_run,
    view_unit,
)


def tensor_of(shape: tuple[int, ...], dtype: str = "int8") -> Tensor:
    """A tensor of that shape, called "x"."""
    net = Net()
    graph = net.graph()
    graph.outputs(graph.input("x", shape, dtype))
    return read_model(net.finish()).main.inputs[0]


def test_boxes_are_sets_of_elements() -> None:
    first, second = ((0, 2), (1, 3)), ((1, 4), (0, 1))
    assert hull([first, second]) == ((0, 4), (0, 3))
    assert extents(first) == (2, 2)
    assert grow(first, [(1, 0), (2, 3)]) == ((-1, 2), (-1, 6))
    assert along(first, 1, [(1, 2), (2, 3)]) == [((0, 2), (1, 2)), ((0, 2), (2, 3))]
    assert full_box(tensor_of((1, 4, 3))) == ((0, 1), (0, 4), (0, 3))
    assert is_empty(None) and is_empty(((0, 2), (3, 3))) and not is_empty(first)


def test_parts_cover_an_axis_and_start_at_units() -> None:
    for size, parts, unit in product(range(1, 20), range(1, 8), range(1, 6)):
        found = cuts(size, parts, unit)
        assert [i for a, b in found for i in range(a, b)] == list(range(size))
        assert all(a % unit == 0 for a, _ in found)
        units = [-(-(b - a) // unit) for a, b in found]
        assert len(found) == min(parts, -(-size // unit)) and max(units) - min(units) <= 1


def test_parts_grow_or_shrink_evenly() -> None:
    assert cuts(300, 3, growth=30) == [(0, 70), (70, 170), (170, 300)]
    assert cuts(300, 3, growth=-30) == [(0, 130), (130, 230), (230, 300)]
    assert cuts(10, 1, growth=50) == [(0, 10)]
    for size, parts, unit in product((7, 48, 97), range(2, 7), (1, 4)):
        for growth in (-99, -20, 20, 99):
            found = cuts(size, parts, unit, growth)
            assert [i for a, b in found for i in range(a, b)] == list(range(size))
            assert all(a % unit == 0 for a, _ in found) and len(found) <= parts
            lengths = [b - a for a, b in (found if growth > 0 else reversed(found))]
            assert all(b - a >= -unit for a, b in pairwise(lengths))


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize("shape", [(1, 6, 4, 3), (1, 1, 1, 1), (1, 5, 1, 8), (7, 2), (2, 3, 4)])
def test_a_view_begins_at_the_first_multiple_of_16_bytes(
    shape: tuple[int, ...], dtype: str
) -> None:
    tensor = tensor_of(shape, dtype)
    element = np.dtype(dtype).itemsize
    for axis in range(len(shape)):
        step = math.prod(shape[axis + 1 :]) * element
        aligned = next(n for n in range(1, 17) if n * step % 16 == 0)
        contiguous = math.prod(shape[:axis]) == 1
        assert view_unit(tensor, axis) == (aligned if contiguous else 1)


@pytest.mark.parametrize("shape", [(1, 4, 3, 2), (1, 1, 4, 3), (2, 3, 2), (5,)])
def test_a_run_is_one_stretch_of_elements_cut_along_one_axis(shape: tuple[int, ...]) -> None:
    full: Box = tuple((0, n) for n in shape)
    places = np.arange(math.prod(shape)).reshape(shape)
    for box in product(*(list(combinations(range(n + 1), 2)) for n in shape)):
        cut = [axis for axis, r in enumerate(box) if r != full[axis]]
        inside = places[tuple(slice(*r) for r in box)].ravel()
        if len(cut) == 1 and math.prod(shape[: cut[0]]) == 1:
            assert is_run(full, box) and np.all(np.diff(inside) == 1)
        else:
            assert not is_run(full, box)


@pytest.mark.parametrize(
    ("shape", "box", "what", "name"),
    [
        ((1, 8, 6, 4), ((0, 1), (0, 4), (2, 6), (0, 4)), "", "x/h0:4,w2:6"),
        ((2, 8, 6, 4), ((1, 2), (0, 8), (0, 6), (1, 3)), "halo", "x/n1:2,c1:3/halo"),
        ((1, 8, 6), ((0, 1), (3, 8), (0, 6)), "", "x/13:8"),
        ((1, 8), ((0, 1), (0, 8)), "padded", "x/padded"),
        ((1, 2, 3, 4, 5), ((0, 1), (0, 1), (0, 3), (0, 4), (2, 5)), "", "x/10:1,42:5"),
    ],
)
def test_names_of_parts(shape: tuple[int, ...], box: Box, what: str, name: str) -> None:
    assert box_name(tensor_of(shape), box, what) == name
