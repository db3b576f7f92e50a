"""Reads the operators of a model as parts: each is a layer, a sum or a concatenation.

    PAD, CONV_2D, RELU    -> a convolution, padded and activated
    MUL, ADD of constants -> a norm
    ADD, CONCATENATION    -> two values that are joined

What a chain cannot hold is refused, with the operator and the reason. What it holds with another
operator, or with windows that lie a pixel further, is a remark. It must not know in which order
parts follow each other (`chain_of_model`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from tflm_planner.codesign.chains.chain import Activation, Layer, LayerKind
from tflm_planner.model.ir import Graph, Op, Tensor
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.ops.resize import resize_of
from tflm_planner.ops.roles import PADS
from tflm_planner.ops.window import COLUMNS, CONVOLUTIONS, POOLS, ROWS, Window, window_of
from tflm_planner.support.errors import ModelError

_FUSED: dict[int, Activation] = {0: "none", 1: "relu", 3: "relu6"}
_ALONE: dict[str, Activation] = {"RELU": "relu", "RELU6": "relu6"}
_CONVERTS = "QUANTIZE", "DEQUANTIZE"
_NO_LAYER = (
    "is no layer of a chain (convolutions, norms, pools, upsampling, dense layers, sums and "
    "concatenations of two values, ReLU, ReLU6, a softmax)"
)
_MOVED = "windows lie as SAME padding places them, a pixel elsewhere, or see no zeros around"
Shape = tuple[int, ...]


@dataclass(frozen=True)
class ModelPart:
    """Operators that make one result. operands: the values that it reads, two if it joins them.
    result: the value that it makes. layer: what it computes, without a skip; for a sum or a
    concatenation a layer of the kind "join", of which `join` says which one it is. constants: its
    weights and, if it has one, its bias; of a norm the factors and the addends."""

    op: Op
    operands: tuple[Tensor, ...]
    result: Tensor
    layer: Layer
    constants: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class ModelParts:
    """The parts of a model by their results. image, result: the first and the last value.
    remarks: what is held otherwise than in the model -> the operators. moved: whether that changes
    what is computed, because windows lie elsewhere."""

    image: Tensor
    result: Tensor
    by_result: dict[Tensor, ModelPart]
    remarks: dict[str, list[Op]]
    moved: bool


def refuse(op: Op, why: str) -> NoReturn:
    """Raise ModelError: an operator, and why no chain holds it."""
    raise ModelError(f"no chain holds {op.label}, which {why}")


def parts_of(graph: Graph) -> ModelParts:
    """The parts of a graph. Raises ModelError for what a chain cannot hold."""
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise ModelError(
            f"a chain has one image and one result, this model has {len(graph.inputs)} inputs and "
            f"{len(graph.outputs)} outputs"
        )
    reading = _Reading(graph)
    for op in graph.ops:
        reading.read(op)
    if reading.waiting:
        op = next(iter(reading.waiting.values()))
        refuse(op, "no operator follows with which it is one layer")
    result = reading.value(graph.outputs[0])
    moved = _MOVED in reading.remarks
    return ModelParts(reading.image, result, reading.parts, reading.remarks, moved)


class _Reading:
    """Reads the operators of a graph one after the other."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._same: dict[Tensor, Tensor] = {}  # converted at an end of the model
        self.image = graph.inputs[0]
        self.parts: dict[Tensor, ModelPart] = {}
        self.waiting: dict[Tensor, Op] = {}  # PAD and MUL, until their layer is complete
        self.remarks: dict[str, list[Op]] = {}

    def value(self, tensor: Tensor) -> Tensor:
        """The tensor, or the one of which it is a conversion."""
        return self._same.get(tensor, tensor)

    def read(self, op: Op) -> None:
        """Add an operator to the parts."""
        kind = op.kind
        if kind in CONVOLUTIONS or kind in POOLS:
            self._window(op)
        elif kind == "FULLY_CONNECTED":
            self._dense(op)
        elif kind in ("ADD", "CONCATENATION"):
            self._join(op)
        elif kind in PADS or kind == "MUL":
            self._wait(op)
        elif kind in _ALONE:
            self._activate(op)
        elif kind in _CONVERTS:
            self._convert(op)
        else:
            self._simple(op)

    def _add(
        self, op: Op, operands: Sequence[Tensor], layer: Layer, constants: Sequence[Tensor] = ()
    ) -> None:
        values = [self.value(t) for t in operands]
        for value in values:
            if value in self.waiting:
                refuse(self.waiting[value], "no operator follows with which it is one layer")
        result = op.outputs[0]
        self.parts[result] = ModelPart(op, tuple(values), result, layer, tuple(constants))

    def _remark(self, words: str, op: Op) -> None:
        self.remarks.setdefault(words, []).append(op)

    def _window(self, op: Op) -> None:
        window = window_of(op)
        if window is None:
            refuse(op, "has a form that TFLM does not run, or weights that are no constants")
        x = self.value(op.operands()[0])
        if op.kind in POOLS and _fused(op) != "none":
            refuse(op, "has an activation, which pools of a chain have not; put it before the pool")
        if op.kind in POOLS and window.output == (1, 1) and window.kernel == window.input:
            if op.kind != "AVERAGE_POOL_2D":
                refuse(op, "takes the maximum of the whole image; chains have the mean of it")
            return self._add(op, [x], Layer("pool"))
        if window.stride[0] != window.stride[1] or not window.undilated:
            refuse(op, "has a dilation, or another stride along rows than along columns")
        padding, pad = (0, 0, 0, 0), self.waiting.get(x)
        if pad is not None and pad.kind in PADS:
            padding, x = _padding_of(pad), self.value(pad.operands()[0])
            del self.waiting[pad.outputs[0]]
            self._remark("one layer here with the windows that read it", pad)
        self._check_padding(op, window, padding)
        return self._add(op, [x], _window_layer(op, window), op.operands()[1:])

    def _check_padding(self, op: Op, window: Window, padding: tuple[int, ...]) -> None:
        """Refuse windows whose results have another size than with SAME padding."""
        moved = False
        for axis in range(2):
            low, high = padding[2 * axis : 2 * axis + 2]
            size = window.input[axis] - low - high
            kernel, stride = window.kernel[axis], window.stride[axis]
            if window.output[axis] != -(-size // stride):
                refuse(
                    op, "has no SAME padding, which every window of a chain has: its result has "
                    f"{window.output[0]} x {window.output[1]} pixels (padding='same')"
                )  # fmt: skip
            same = max((window.output[axis] - 1) * stride + kernel - size, 0)
            if op.options.padding == VALID_PADDING:
                moved |= low != same // 2 or (op.kind in POOLS and bool(low or high))
            elif low or high:
                refuse(op, "is padded twice: by PAD and by SAME padding")
        if moved:
            self._remark(_MOVED, op)

    def _dense(self, op: Op) -> None:
        x, weights = op.operands()[:2]
        out, inside = weights.shape or (0, 0)
        if not weights.is_constant or x.elements != inside:
            refuse(op, "has weights that are no constants, or several rows of operands")
        if len(x.shape or ()) != 2 and x.elements != (x.shape or (0,))[-1]:
            refuse(op, "reads an image; put a Flatten or a pool over the whole image before it")
        layer = Layer("dense", channels_in=inside, channels_out=out, activation=_fused(op))
        self._add(op, [x], layer, op.operands()[1:])

    def _join(self, op: Op) -> None:
        values = op.operands()
        constants = [t for t in values if t.is_constant]
        if constants:
            return self._norm(op, constants)
        if len(values) != 2:
            refuse(op, f"has {len(values)} operands; a skip adds or concatenates one value")
        shapes = [t.shape or () for t in values]
        if op.kind == "ADD":
            if shapes[0] != shapes[1]:
                refuse(op, "adds values of different shapes")
            return self._add(op, values, Layer("join", activation=_fused(op)))
        if (
            op.options.axis not in (-1, 3)
            or any(len(s) != 4 for s in shapes)
            or _fused(op) != "none"
        ):
            refuse(op, "concatenates along another axis than channels, or has an activation")
        return self._add(op, values, Layer("join", join="concat"))

    def _norm(self, op: Op, constants: Sequence[Tensor]) -> None:
        """A factor for each channel, which waits, and this addend."""
        x = next((self.value(t) for t in op.operands() if not t.is_constant), None)
        factor = None if x is None else self.waiting.get(x)
        if x is None or factor is None or factor.kind != "MUL":
            refuse(op, "adds a constant to what is no product; only a factor and an addend for "
                   "each channel are a layer")  # fmt: skip
        _check_channels(op, constants[0], x)
        del self.waiting[x]
        source = next(t for t in factor.operands() if not t.is_constant)
        scale = next(t for t in factor.operands() if t.is_constant)
        self._add(op, [source], Layer("norm", activation=_fused(op)), (scale, constants[0]))

    def _wait(self, op: Op) -> None:
        values = [t for t in op.operands() if not t.is_constant]
        if op.kind == "MUL":
            constants = [t for t in op.operands() if t.is_constant]
            if len(values) != 1 or len(constants) != 1 or _fused(op) != "none":
                refuse(op, "multiplies two values, as attention and squeeze-and-excitation do")
            _check_channels(op, constants[0], op.outputs[0])
        if len(op.outputs[0].consumers) != 1 or self.value(values[0]) in self.waiting:
            refuse(op, "no single operator follows with which it is one layer")
        self.waiting[op.outputs[0]] = op

    def _activate(self, op: Op) -> None:
        x = self.value(op.operands()[0])
        part = self.parts.get(x)
        if part is None or len(x.consumers) != 1 or not _takes_activation(part.layer):
            refuse(op, "does not follow a convolution, a dense layer, a norm or a sum that it "
                   "alone reads")  # fmt: skip
        del self.parts[x]
        layer = replace(part.layer, activation=_ALONE[op.kind])
        self._add(op, part.operands, layer, part.constants)

    def _convert(self, op: Op) -> None:
        x, result = op.operands()[0], op.outputs[0]
        if x in self._graph.inputs or result in self._graph.outputs:
            self._remark("conversion of the input or of the output, which is left out", op)
            self._same[result] = self.value(x)
            return
        refuse(op, "converts inside the model; convert all of it to int8, or leave it in float")

    def _simple(self, op: Op) -> None:
        """Operators without weights, activation or padding."""
        if not op.operands() or len(op.outputs) != 1:
            refuse(op, _NO_LAYER)
        x, result = op.operands()[0], op.outputs[0]
        shape, shape_out = x.shape or (), result.shape or ()
        kind: LayerKind | None = None
        if op.kind == "MEAN" and len(shape) == 4 and result.elements == shape[3]:
            kind = "mean"
        elif op.kind == "SOFTMAX":
            kind = "softmax"
        elif op.kind in ("RESHAPE", "SQUEEZE") and len(shape_out) == 2 and shape_out[0] == 1:
            return self._add(op, [x], _flatten(shape))
        elif op.kind == "RESIZE_NEAREST_NEIGHBOR":
            return self._add(op, [x], _upsample(op))
        if kind is None:
            refuse(op, _NO_LAYER)
        return self._add(op, [x], Layer(kind))


def _fused(op: Op) -> Activation:
    activation = _FUSED.get(op.options.activation)
    if activation is None:
        refuse(op, "has an activation that chains have not: only ReLU and ReLU6")
    return activation


def _takes_activation(layer: Layer) -> bool:
    takes = layer.kind in ("conv", "dense", "norm") or (
        layer.kind == "join" and layer.join == "sum"
    )
    return takes and layer.activation == "none"


def _window_layer(op: Op, window: Window) -> Layer:
    kernel, stride = window.kernel, window.stride[0]
    if op.kind in POOLS:
        return Layer("max_pool" if op.kind == "MAX_POOL_2D" else "average_pool", kernel, stride)
    ins, outs = window.channels
    return Layer("conv", kernel, stride, ins, outs, window.groups, _fused(op))


def _padding_of(op: Op) -> tuple[int, int, int, int]:
    """Rows above and below, columns left and right, that a PAD adds."""
    if op.kind != "PAD" or len(op.operands()) != 2:
        refuse(op, "pads with a number of its own; chains pad with zeros")
    table = op.operands()[1]
    data = table.buffer.data
    if not table.is_constant or data is None or table.type_name != "int32":
        refuse(op, "has a table of paddings that is no constant of int32")
    numbers = [int(n) for n in data[: table.nbytes].view("int32")]
    if len(numbers) != 8 or any(numbers[:2] + numbers[6:]):
        refuse(op, "pads another axis than rows and columns")
    return numbers[2], numbers[3], numbers[4], numbers[5]


def _check_channels(op: Op, constant: Tensor, x: Tensor) -> None:
    """Refuse a constant that is not one number for each channel."""
    channels = (x.shape or (0,))[-1]
    along_channels = (constant.shape or ())[-1:] == (channels,)
    if len(x.shape or ()) != 4 or constant.elements != channels or not along_channels:
        refuse(op, "has a constant that is not one number for each channel of an image")


def _flatten(shape: Shape) -> Layer:
    """A row of all numbers. channels_in is 0 where the image is a single pixel."""
    channels, pixels = shape[-1], 1
    for size in shape[1:-1]:
        pixels *= size
    if pixels == 1:
        return Layer("flatten")
    return Layer("flatten", channels_in=channels, channels_out=pixels * channels)


def _upsample(op: Op) -> Layer:
    rows, columns = resize_of(op, ROWS), resize_of(op, COLUMNS)
    if rows is None or columns is None:
        refuse(op, "resizes in a way that is not known")
    factor = rows.out // rows.size
    for axis in (rows, columns):
        repeats = axis.out == factor * axis.size and all(
            axis.taps(row) == (row // factor, row // factor, 0) for row in range(axis.out)
        )
        if not repeats:
            refuse(op, "does not repeat each pixel the same number of times along both axes")
    return Layer("upsample", stride=factor)
