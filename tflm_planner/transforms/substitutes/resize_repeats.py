"""Writes TILE, for which TFLM has no kernel, as RESIZE_NEAREST_NEIGHBOR, for which it has one.

    UpSampling2D of Keras, an image twice as high and wide:
    (1, 8, 8, 32) --RESHAPE--> (1, 8, 1, 8, 32)   --TILE 1 1 2 1 1--> (1, 8, 2, 8, 32)
                  --RESHAPE--> (1, 16, 8, 1, 32)  --TILE 1 1 1 2 1--> (1, 16, 8, 2, 32)
                  --RESHAPE--> (1, 16, 16, 32)
    (1, 8, 8, 32) --RESIZE_NEAREST_NEIGHBOR 16 16--> (1, 16, 16, 32)

    any other, along one axis after another: an image of one pixel for what is before the axis
    (2, 3, 4) --TILE 1 5 1--> (2, 15, 4)
    (2, 3, 4) --RESHAPE--> (2, 1, 1, 12) --RESIZE_NEAREST_NEIGHBOR 5 1--> (2, 5, 1, 12) --RESHAPE-->

Kernels round the ratio of both sizes; a factor with which some pixel would be taken from elsewhere
is left alone (`ops.resize`), as are types for which TFLM cannot resize. This module must not know
memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from tflm_planner.model.constants import integers
from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.ops.resize import Resize
from tflm_planner.ops.roles import RESHAPES
from tflm_planner.support.deferred import defer
from tflm_planner.transforms.fold_transpose import is_private

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Places = npt.NDArray[np.int64]
    """For each element of a tensor, the element of another one of which it is a copy."""
else:
    np = defer("numpy")

Image = tuple[int, int, int, int]
"""Images, rows, columns, channels."""

_RESIZED_TYPES = frozenset({"int8", "int16", "float32"})
"""Types for which TFLM resizes (resize_nearest_neighbor.cc of tflite-micro 90b983c)."""
_MOST_ELEMENTS = 1 << 24
"""Elements of a result above which it is left alone: each is looked at, and no microcontroller has
as many bytes."""
_MOST_LINKS = 8
"""Operators of a chain on either side of a TILE: Keras writes four of an image, six of a volume."""


def resize_repeats(model: Model) -> list[str]:
    """Replace every TILE that can be; returns a note if there were any."""
    count = sum(_resize_in(model, graph) for graph in model.graphs)
    if not count:
        return []
    return [
        f"{count} TILE, for which TFLM has no kernel, written as RESIZE_NEAREST_NEIGHBOR, which "
        "the firmware must register; so it is counted before, too"
    ]


@dataclass(frozen=True)
class _Resizing:
    """One image resized to another, each pixel `down` times in height and `across` times in
    width."""

    image: Image
    down: int
    across: int

    @property
    def result(self) -> Image:
        """The resized image."""
        count, rows, columns, channels = self.image
        return count, rows * self.down, columns * self.across, channels

    def half_pixel(self) -> bool | None:
        """Whether kernels must take pixels at their centres, so that each takes the right one; None
        if they would not even then."""
        _, rows, columns, _ = self.image
        factors = ((rows, self.down), (columns, self.across))
        for half_pixel in (False, True):
            if all(_is_exact(size, factor, half_pixel=half_pixel) for size, factor in factors):
                return half_pixel
        return None

    def places(self) -> Places:
        """Of which pixels and channels the result is made."""
        elements = np.arange(math.prod(self.image)).reshape(self.image)
        return elements.repeat(self.down, 1).repeat(self.across, 2)


def _is_exact(size: int, factor: int, *, half_pixel: bool) -> bool:
    resize = Resize("nearest", False, half_pixel, size, size * factor)
    taps = (resize.taps(row) for row in range(resize.out))
    return all(t is not None and t[0] == row // factor for row, t in enumerate(taps))


def _resize_in(model: Model, graph: Graph) -> int:
    """Replace the TILEs of one graph; returns how many."""
    count = 0
    waiting = [op for op in graph.ops if op.kind == "TILE"]
    while waiting:
        chains = list(_chains(model, graph, waiting.pop(0)))
        for steps_of, chain in product((_as_one_image, _axis_by_axis), chains):
            steps = steps_of(chain)
            if steps is not None and _does_the_same(chain, steps):
                _replace(model, graph, chain, steps)
                count += sum(op.kind == "TILE" for op in chain)
                waiting = [op for op in waiting if op not in chain]
                break
    return count


def _chains(model: Model, graph: Graph, op: Op) -> Iterator[list[Op]]:
    """The chains of RESHAPE and TILE with `op` in them of which nothing else reads what lies
    between, the longest first; at last `op` alone."""
    before = _follow(op, lambda link: _only_maker(model, graph, link))
    after = _follow(op, lambda link: _only_reader(model, graph, link))
    lengths = [(i, j) for i in range(len(before) + 1) for j in range(len(after) + 1)]
    for i, j in sorted(lengths, key=sum, reverse=True):
        yield [*reversed(before[:i]), op, *after[:j]]


def _follow(op: Op, next_of: Callable[[Op], Op | None]) -> list[Op]:
    """The next links of a chain, the nearest first."""
    links: list[Op] = []
    while len(links) < _MOST_LINKS:
        link = next_of(links[-1] if links else op)
        if link is None:
            break
        links.append(link)
    return links


def _only_maker(model: Model, graph: Graph, op: Op) -> Op | None:
    data = op.inputs[0]
    maker = None if data is None else data.producer
    return maker if maker is not None and _only_reader(model, graph, maker) is op else None


def _only_reader(model: Model, graph: Graph, op: Op) -> Op | None:
    """The operator of a chain that alone reads the result of another one; None if there is none."""
    result = op.outputs[0]
    if not _is_link(op) or len(result.consumers) != 1 or not is_private(model, graph, result):
        return None
    reader = result.consumers[0]
    return reader if _is_link(reader) and reader.inputs[0] is result else None


def _is_link(op: Op) -> bool:
    return len(op.outputs) == 1 and bool(op.inputs) and op.kind in {*RESHAPES, "TILE"}


def _as_one_image(chain: Sequence[Op]) -> list[_Resizing] | None:
    """A chain from one image to another as a single step; None if it has other ends."""
    image, resized = _as_image(chain[0].inputs[0]), _as_image(chain[-1].outputs[0])
    if image is None or resized is None:
        return None
    return [_Resizing(image, resized[1] // image[1], resized[2] // image[2])]


def _as_image(tensor: Tensor | None) -> Image | None:
    """The shape of a tensor as images; None if it has another number of axes."""
    shape = (tensor and tensor.shape) or ()
    if 0 in shape:
        return None
    if len(shape) == 3:
        return shape[0], shape[1], 1, shape[2]
    return shape if len(shape) == 4 else None


def _axis_by_axis(chain: Sequence[Op]) -> list[_Resizing] | None:
    """A step for each axis along which each TILE of a chain repeats, the last axis first; None if
    that is unknown. RESHAPEs between them change no order."""
    steps: list[_Resizing] = []
    for op in (op for op in chain if op.kind == "TILE"):
        shape, factors = list((op.inputs[0] and op.inputs[0].shape) or ()), _factors_of(op)
        if factors is None or len(factors) != len(shape):
            return None
        for axis in reversed(range(len(shape))):
            if factors[axis] > 1:
                image = math.prod(shape[:axis]), 1, 1, math.prod(shape[axis:])
                steps.append(_Resizing(image, factors[axis], 1))
                shape[axis] *= factors[axis]
    return steps


def _factors_of(op: Op) -> list[int] | None:
    """How often a TILE repeats its operand along each axis; None if that is unknown."""
    return integers(op.inputs[1]) if len(op.inputs) > 1 else None


def _does_the_same(chain: Sequence[Op], steps: Sequence[_Resizing]) -> bool:
    """Whether steps compute what a chain does, on every library."""
    source, result = chain[0].inputs[0], chain[-1].outputs[0]
    if source is None or source.is_constant or not same_values(source, result):
        return False
    if result.type_name not in _RESIZED_TYPES or not source.elements:
        return False
    if max(source.elements, result.elements) > _MOST_ELEMENTS:
        return False
    places = _places_of(chain, source)
    if places is None or not np.array_equal(places, _places_after(steps, source.elements)):
        return False
    return all(step.half_pixel() is not None for step in steps)


def _places_of(chain: Sequence[Op], source: Tensor) -> Places | None:
    """Of which elements of `source` a chain makes its result, in order; None if that is unknown or
    shapes contradict each other."""
    places = np.arange(source.elements).reshape(source.shape or ())
    for op in chain:
        if op.kind == "TILE":
            factors = _factors_of(op)
            if factors is None or not _makes(places.shape, factors, op.outputs[0]):
                return None
            places = np.tile(places, factors)
        elif places.size != op.outputs[0].elements:
            return None
        places = places.reshape(op.outputs[0].shape or ())
    return places.reshape(-1)


def _makes(shape: tuple[int, ...], factors: Sequence[int], result: Tensor) -> bool:
    """Whether a TILE of a tensor of this shape makes a result as it is declared, which is not too
    large to be looked at."""
    made = tuple(n * often for n, often in zip(shape, factors, strict=False))
    is_declared = len(factors) == len(shape) and made == result.shape
    return is_declared and result.elements <= _MOST_ELEMENTS


def _places_after(steps: Sequence[_Resizing], elements: int) -> Places:
    """The same for steps. elements: how many there are before them."""
    places = np.arange(elements)
    for step in steps:
        places = places[step.places().reshape(-1)]
    return places


def _replace(model: Model, graph: Graph, chain: Sequence[Op], steps: Sequence[_Resizing]) -> None:
    """Put the steps in place of a chain; where nothing is repeated, a RESHAPE."""
    draft = Draft(model, graph)
    source, result = chain[0].inputs[0], chain[-1].outputs[0]
    assert source is not None
    current = source
    for number, step in enumerate(steps):
        if current.shape != step.image:
            image = draft.tensor(source, f"{result.name}/image{number}", step.image)
            draft.reshape(current, image)
            current = image
        is_last = step is steps[-1] and result.shape == step.result
        resized = (
            result if is_last else draft.tensor(source, f"{result.name}/{number}", step.result)
        )
        size = draft.integers("size", step.result[1:3])
        half_pixel = bool(step.half_pixel())
        draft.op(
            "RESIZE_NEAREST_NEIGHBOR", [current, size], [resized], half_pixel_centers=half_pixel
        )
        current = resized
    if current is not result:
        draft.reshape(current, result)
    draft.commit(chain)
