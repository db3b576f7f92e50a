"""Writes 1x1 convolutions and products of rows in other ways, because the way decides which kernel
runs.

    as it is   (1, 48, 48, 8) --CONV_2D 1x1--> (1, 48, 48, 16)
    in rows    (1, 48, 48, 8) --RESHAPE--> (48, 1, 48, 8) --CONV_2D 1x1, stride 2 in height-->
                                           (48, 1, 48, 16) --RESHAPE--> (1, 48, 48, 16)
    dilated    (1, 48, 48, 8) --CONV_2D 1x1, dilation 2--> (1, 48, 48, 16)

    as it is   (1, 64, 16) --FULLY_CONNECTED--> (1, 64, 32)
    a matrix   (1, 64, 16) --RESHAPE--> (64, 16) --FULLY_CONNECTED--> (64, 32) --RESHAPE-->
                                                                              (1, 64, 32)

A 1x1 convolution reads no neighbouring pixels: each pixel's sums are the same, in the same order,
wherever the pixel lies. So its images may be cut into rows of n pixels, as a batch of images of
height 1. In a single row a stride in height changes nothing, and a window of one pixel has nothing
to dilate: every spelling computes the same bits.

But CMSIS-NN's wrapper chooses the kernel by stride and dilation. Without either it calls
`arm_convolve_1x1_s8_fast`: one product of all pixels with output channels as the outermost loop, so
that the whole input is read until the end and no overlap is safe. With a stride it calls
`arm_convolve_1x1_s8`: the same product row by row, so that results may lie one row below their
operand; each row sums the weights again, which adds 1/n of the work. With a dilation it calls
`arm_convolve_s8`: pixel by pixel, with scratch, slower. FULLY_CONNECTED of int8 with a result of
more than two axes and a depth that four divides runs as that first kernel too; with two axes
`arm_fully_connected_s8` computes row after row, so that results may lie a row below their operand.
Source: CMSIS-NN 99f736a, arm_convolve_wrapper_s8.c; tflite-micro 90b983c,
cmsis_nn/fully_connected.cc. Both shapes of a tensor are the same bytes, so the TFLM dialect drops
the RESHAPEs. This module must not judge which spelling is worthwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.ops.layout import row_product_of
from tflm_planner.ops.roles import ROWS_BY_MATRIX
from tflm_planner.ops.window import Window, window_of
from tflm_planner.tflm.kernels import adds_pixels_alike
from tflm_planner.transforms.base import RegionResult, TransformRefusedError, apply_regions

SpellingKind = Literal["rows", "dilated", "matrix"]
SPELLABLE = frozenset(("CONV_2D", ROWS_BY_MATRIX))
"""The kinds of operators that can be spelled otherwise."""
_DILATION = 2
_STRIDE = 2
_MATRIX = 2
"""Axes of a matrix."""


class Unspellable(Enum):
    """The reason why an operator cannot be spelled otherwise."""

    KIND = "only convolutions that TFLM computes as windows, and FULLY_CONNECTED, have other ways"
    WINDOW = "its window is more than one pixel, or has a stride, a dilation or groups"
    CUT = "its result was cut off, so that not every pixel of the operand has one"
    TYPE = "sums of floating-point numbers may be rounded otherwise in another spelling"
    SUMS = "CMSIS-NN wraps its sums around in some pixels, and in other ones in another spelling"
    PIXELS = "rows must hold a number of pixels that divides theirs, and be several"
    AXES = "its data and its result must hold as many rows, and the result have more than two axes"
    OTHER = "this kind of operator is not written so"


class SpellingRefusedError(TransformRefusedError):
    """The reason why an operator keeps its spelling; the text follows "not spelled otherwise: "."""

    prefix = "not spelled otherwise"

    def __init__(self, reason: Unspellable) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, order=True)
class Spelling:
    """Another way to write the operator of the main graph at position `op`: a convolution in "rows"
    of `pixels` pixels, or "dilated"; a FULLY_CONNECTED of a "matrix"."""

    op: int
    kind: SpellingKind
    pixels: int = 0

    @property
    def ops(self) -> tuple[int, ...]:
        """The operator's position as a tuple, as regions give theirs."""
        return (self.op,)


@dataclass(frozen=True)
class Respell:
    """Writes operators in other spellings; an operator for which that is impossible stays
    unchanged, with a note."""

    spellings: Sequence[Spelling]

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        return [result.note for result in self.rewrite(model)]

    def rewrite(self, model: Model) -> list[RegionResult[Spelling]]:
        """The outcome of each spelling, in their order."""

        def write(spelling: Spelling, ops: list[Op]) -> str:
            (op,) = ops
            _SpellingWriter(model, model.main, op, spelling).replace()
            return f"{op.label} spelled otherwise: {_describe(spelling)}"

        return apply_regions(model, self.spellings, write)


def spell(op: Op, spelling: Spelling) -> Op:
    """The operator in that spelling, with its own tensors and of no model, so that the properties
    of its kernel can be computed. Raises SpellingRefusedError."""
    nowhere = Graph("", [], [], [], [], None)
    model = Model([nowhere], [], [op.outputs[0].buffer], [], [], [], None)
    return _SpellingWriter(model, nowhere, op, spelling).write()


def ways_of(op: Op, *, reshaped: bool) -> Iterator[Spelling]:
    """All ways to write an operator, as if it had position 0. reshaped: whether ways that need
    RESHAPEs are permitted. Raises SpellingRefusedError if it has none."""
    if op.kind == ROWS_BY_MATRIX:
        rows_of(op)
        yield from [Spelling(0, "matrix")] * reshaped
        return
    pixels = pixels_of(op)
    rows = range(1, pixels // 2 + 1) if reshaped else ()
    yield from (Spelling(0, "rows", n) for n in rows if pixels % n == 0)
    yield Spelling(0, "dilated")


def rows_of(op: Op) -> int:
    """Number of rows that a FULLY_CONNECTED multiplies, of which a matrix can be made; else raises
    SpellingRefusedError."""
    data = op.inputs[0] if op.kind == ROWS_BY_MATRIX and op.inputs else None
    if data is None:
        raise SpellingRefusedError(Unspellable.KIND)
    if data.type_name != "int8" or op.outputs[0].type != data.type:
        raise SpellingRefusedError(Unspellable.TYPE)
    product = row_product_of(op)
    if product is None or len(op.outputs[0].shape or ()) <= _MATRIX:
        raise SpellingRefusedError(Unspellable.AXES)
    return product.rows


def pixels_of(op: Op) -> int:
    """Number of pixels, over all images, of a convolution that can be spelled otherwise; else
    raises SpellingRefusedError."""
    window = window_of(op) if op.kind == "CONV_2D" else None
    if window is None:
        raise SpellingRefusedError(Unspellable.KIND)
    if not _is_plain(window):
        raise SpellingRefusedError(Unspellable.WINDOW)
    if window.output != window.input:
        raise SpellingRefusedError(Unspellable.CUT)
    if op.outputs[0].type_name not in ("int8", "int16"):
        raise SpellingRefusedError(Unspellable.TYPE)
    if not adds_pixels_alike(op):
        raise SpellingRefusedError(Unspellable.SUMS)
    return window.batch * window.input[0] * window.input[1]


def _is_plain(window: Window) -> bool:
    return window.kernel == window.stride == window.dilation == (1, 1) and window.groups == 1


def _describe(spelling: Spelling) -> str:
    return {
        "rows": f"in rows of {spelling.pixels} pixels",
        "dilated": "dilated",
        "matrix": "with its rows as a matrix",
    }[spelling.kind]


class _SpellingWriter:
    """Writes one operator in another spelling."""

    def __init__(self, model: Model, graph: Graph, op: Op, spelling: Spelling) -> None:
        self._op, self._spelling, self._draft = op, spelling, Draft(model, graph)
        if (spelling.kind == "matrix") != (op.kind == ROWS_BY_MATRIX):
            raise SpellingRefusedError(Unspellable.OTHER)
        self._count = rows_of(op) if spelling.kind == "matrix" else pixels_of(op)

    def write(self) -> Op:
        """The drafted operator, without RESHAPEs."""
        op, (data, *constants), (result,) = self._op, self._op.inputs, self._op.outputs
        assert data is not None
        if self._spelling.kind == "matrix":
            matrices = self._as_matrix(data), self._as_matrix(result)
            return self._draft.clone(op, [matrices[0], *constants], [matrices[1]])
        if self._spelling.kind == "dilated":
            sides = dict.fromkeys(("dilation_h_factor", "dilation_w_factor"), _DILATION)
            return self._draft.clone(op, [data, *constants], [result], **sides)
        rows = self._in_rows(data), self._in_rows(result)
        return self._draft.clone(op, [rows[0], *constants], [rows[1]], stride_h=_STRIDE)

    def replace(self) -> None:
        """Replace the old operator by it, with RESHAPEs if its tensors have other shapes."""
        written = self.write()
        drafted, (data, result) = self._draft.ops, (self._op.inputs[0], self._op.outputs[0])
        assert data is not None and written.inputs[0] is not None
        drafted.clear()
        if written.inputs[0] is not data:
            self._draft.reshape(data, written.inputs[0])
        drafted.append(written)
        if written.outputs[0] is not result:
            self._draft.reshape(written.outputs[0], result)
        self._draft.commit([self._op])

    def _as_matrix(self, tensor: Tensor) -> Tensor:
        shape = (self._count, tensor.elements // self._count)
        if tensor.shape == shape:
            return tensor
        return self._draft.tensor(tensor, f"{tensor.name}/matrix", shape)

    def _in_rows(self, tensor: Tensor) -> Tensor:
        pixels = self._spelling.pixels
        if not 0 < pixels < self._count or self._count % pixels:
            raise SpellingRefusedError(Unspellable.PIXELS)
        shape = (self._count // pixels, 1, pixels, (tensor.shape or (0,))[-1])
        return self._draft.tensor(tensor, f"{tensor.name}/rows", shape)
