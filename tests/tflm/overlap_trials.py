"""Models of one operator, and a child process that runs many of them in stock TFLM.

`python -m tests.tflm.overlap_trials` reads pickled jobs from standard input and writes a pickled
answer for each: TFLM aborts its process on some models.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.models.build import Net
from tests.tflm.kernel_loops import Shape
from tests.tflm.pickled_jobs import serve
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model

DTYPES = {1: "int8", 2: "int16", 4: "float32"}
KINDS = {
    "conv": ("CONV_2D", "Conv2DOptions"),
    "depthwise": ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"),
    "average": ("AVERAGE_POOL_2D", "Pool2DOptions"),
    "max": ("MAX_POOL_2D", "Pool2DOptions"),
}
PLAN = "OfflineMemoryAllocation"
MARK = 0x5EED_ABC0
"""Stands in the plan for the input's offset, and the number after it for the output's."""


def model_of(s: Shape, seed: int = 0, *, planned: bool = False, packed: bool = False) -> bytes:
    """A model of one window operator, with weights that spread the outputs over their range.

    With `planned`, it has a plan whose offsets `at_distance` fills in.
    `packed`: filter of int4.
    """
    rng, net = np.random.default_rng(seed), Net()
    graph = net.graph()
    dtype = DTYPES[s.element]
    quantised = _scale_of(dtype)
    x = graph.input("x", (s.batch, s.h, s.w, s.ci), dtype, **quantised)
    shape_out = (s.batch, s.ho, s.wo, s.co)
    name, options = KINDS[s.kind]
    fields: dict[str, Any] = {"padding": int(not s.same), "strideH": s.sh, "strideW": s.sw}
    inputs = [x]
    if s.kind in ("conv", "depthwise"):
        inputs += _constants(s, graph, rng, packed)
        fields |= {"dilationHFactor": s.dh, "dilationWFactor": s.dw}
        if s.kind == "depthwise":
            fields["depthMultiplier"] = s.co // s.ci
    else:
        fields |= {"filterHeight": s.kh, "filterWidth": s.kw}
    y = graph.tensor("y", shape_out, dtype, **quantised)
    graph.op(name, inputs, [y], options, **fields)
    graph.outputs(y)
    if planned:
        _plan(net, [{x: MARK, y: MARK + 1}.get(t, -1) for t in range(y + 1)])
    return net.finish()


def _constants(s: Shape, graph: Any, rng: np.random.Generator, packed: bool) -> list[int]:
    depth = s.ci // s.groups if s.kind == "conv" else 1
    shape = (s.co, s.kh, s.kw, depth) if s.kind == "conv" else (1, s.kh, s.kw, s.co)
    terms = s.kh * s.kw * depth
    if s.element == 4:
        weights = rng.normal(0, 1, shape).astype(np.float32)
        return [
            graph.constant("filter", weights, "float32"),
            graph.constant("bias", rng.normal(0, 1, s.co), "float32"),
        ]
    largest = 7 if packed else 127
    weights = rng.integers(-largest, largest + 1, shape)
    spread = 0.58 * largest * (0.29 * 256**s.element)
    scale = 0.16 * 256**s.element / (spread * terms**0.5)
    axis = 0 if s.kind == "conv" else 3
    scales = np.full(s.co, scale, np.float32)
    bias = rng.integers(-1000, 1000, s.co)
    kind = "int64" if s.element == 2 else "int32"
    if packed:
        flat = np.resize(weights.ravel() & 15, weights.size + weights.size % 2)
        data = (flat[::2] | flat[1::2] << 4).astype(np.uint8)
        features = graph.tensor("filter", shape, "int4", data=data, scale=scales, axis=axis)
    else:
        features = graph.constant("filter", weights, "int8", scale=scales, axis=axis)
    return [features, graph.constant("bias", bias, kind, scale=0.1 * scales)]


def _scale_of(dtype: str) -> dict[str, Any]:
    """The quantisation of an input or a result of this type."""
    return {} if dtype == "float32" else {"scale": 0.1}


def pad_model(
    shape: tuple[int, ...], pads: list[list[int]], dtype: str = "int8", *, planned: bool = False
) -> bytes:
    """A model of one PAD."""
    net = Net()
    graph = net.graph()
    quantised = _scale_of(dtype)
    x = graph.input("x", shape, dtype, **quantised)
    constant = graph.constant("pads", pads)
    larger = tuple(n + sum(p) for n, p in zip(shape, pads, strict=True))
    y = graph.tensor("y", larger, dtype, **quantised)
    graph.op("PAD", [x, constant], [y], "PadOptions")
    graph.outputs(y)
    if planned:
        _plan(net, [MARK, -1, MARK + 1])
    return net.finish()


def gather_model(
    shape: tuple[int, ...], rows: Sequence[int], dtype: str = "int8", *, planned: bool = False
) -> bytes:
    """A model of one GATHER of rows."""
    net = Net()
    graph = net.graph()
    quantised = _scale_of(dtype)
    x = graph.input("x", shape, dtype, **quantised)
    y = graph.tensor("y", (1, len(rows), *shape[2:]), dtype, **quantised)
    graph.op("GATHER", [x, graph.constant("rows", rows)], [y], "GatherOptions", axis=1)
    graph.outputs(y)
    if planned:
        _plan(net, [MARK, MARK + 1, -1])
    return net.finish()


def concatenation_model(
    parts: Sequence[tuple[int, ...]],
    axis: int,
    place: int,
    dtype: str = "int8",
    *,
    planned: bool = False,
) -> bytes:
    """A model of one CONCATENATION of parts of these shapes: the input at `place`, constants
    elsewhere."""
    rng, net = np.random.default_rng(1), Net()
    graph = net.graph()
    quantised = _scale_of(dtype)
    tensors: list[int] = []
    for number, shape in enumerate(parts):
        if number == place:
            tensors.append(graph.input("x", shape, dtype, **quantised))
        else:
            values = rng.integers(-100, 100, shape)
            tensors.append(graph.constant(f"c{number}", values, dtype, **quantised))
    joined = [*parts[0]]
    joined[axis] = sum(shape[axis] for shape in parts)
    y = graph.tensor("y", tuple(joined), dtype, **quantised)
    graph.op("CONCATENATION", tensors, [y], "ConcatenationOptions", axis=axis)
    graph.outputs(y)
    if planned:
        _plan(net, [{place: MARK, y: MARK + 1}.get(t, -1) for t in range(y + 1)])
    return net.finish()


def elementwise_model(
    kind: str,
    shape: tuple[int, ...],
    other: tuple[int, ...] | None,
    dtype: str = "int8",
    *,
    planned: bool = False,
) -> bytes:
    """A model of one element-wise operator of an input and, if it has a shape, a constant."""
    net = Net()
    graph = net.graph()
    quantised = _scale_of(dtype)
    operands = [graph.input("x", shape, dtype, **quantised)]
    if other is not None:
        values = np.random.default_rng(2).integers(1, 9, other)
        operands.append(graph.constant("c", values, dtype, **quantised))
    bounded = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0), "QUANTIZE": (0.2, 3)}
    result = dict(quantised)
    if quantised and kind in bounded:
        result["scale"], result["zero"] = bounded[kind]
    y = graph.tensor("y", shape, dtype, **result)
    tables = {"LEAKY_RELU": "LeakyReluOptions", "HARD_SWISH": "HardSwishOptions"}
    plain = kind in ("RELU", "RELU6", "LOGISTIC", "TANH")
    fields = {"alpha": 0.3} if kind == "LEAKY_RELU" else {}
    table = () if plain else (tables.get(kind, f"{kind.capitalize()}Options"),)
    graph.op(kind, operands, [y], *table, **fields)
    graph.outputs(y)
    if planned:
        _plan(net, [{0: MARK, y: MARK + 1}.get(t, -1) for t in range(y + 1)])
    return net.finish()


def transpose_conv_model(
    side: int,
    channels: tuple[int, int],
    kernel: int = 3,
    stride: int = 2,
    *,
    same: bool = True,
    planned: bool = False,
) -> bytes:
    """A model of one int8 TRANSPOSE_CONV of a square image."""
    rng, net = np.random.default_rng(0), Net()
    graph = net.graph()
    ci, co = channels
    made = side * stride if same else (side - 1) * stride + kernel
    larger = (1, made, made, co)
    size = graph.constant("size", larger)
    scales = np.full(co, 0.002, np.float32)
    weights = rng.integers(-127, 128, (co, kernel, kernel, ci))
    features = graph.constant("filter", weights, "int8", scale=scales)
    x = graph.input("x", (1, side, side, ci), scale=0.1)
    y = graph.tensor("y", larger, scale=0.1)
    options: dict[str, Any] = {"padding": int(not same), "strideH": stride, "strideW": stride}
    graph.op("TRANSPOSE_CONV", [size, features, x], [y], "TransposeConvOptions", **options)
    graph.outputs(y)
    if planned:
        _plan(net, [-1, -1, MARK, MARK + 1])
    return net.finish()


def fully_connected_model(
    rows: int, depth: int, made: int, dtype: str = "int8", *, rank: int = 2, planned: bool = False
) -> bytes:
    """A model of one FULLY_CONNECTED over rows, of `rank` axes."""
    rng, net = np.random.default_rng(0), Net()
    graph = net.graph()
    floats = dtype == "float32"
    quantised = _scale_of(dtype)
    x = graph.input("x", (*[1] * (rank - 2), rows, depth), dtype, **quantised)
    if floats:
        features = graph.constant("filter", rng.normal(0, 1, (made, depth)), "float32")
    else:
        weights = rng.integers(-127, 128, (made, depth))
        features = graph.constant("filter", weights, "int8", scale=0.015 / depth**0.5)
    y = graph.tensor("y", (*[1] * (rank - 2), rows, made), dtype, **quantised)
    options: dict[str, Any] = {"keepNumDims": rank > 2}
    graph.op("FULLY_CONNECTED", [x, features], [y], "FullyConnectedOptions", **options)
    graph.outputs(y)
    if planned:
        _plan(net, [MARK, -1, MARK + 1])
    return net.finish()


def resize_model(
    kind: str,
    shape: tuple[int, ...],
    size: tuple[int, int],
    corners: str = "",
    dtype: str = "int8",
    *,
    planned: bool = False,
) -> bytes:
    """A model of one resize to `size`. corners: "align", "half" pixel centres, or neither."""
    net = Net()
    graph = net.graph()
    quantised = _scale_of(dtype)
    x = graph.input("x", shape, dtype, **quantised)
    sizes = graph.constant("size", size)
    y = graph.tensor("y", (shape[0], *size, shape[3]), dtype, **quantised)
    table = "".join(word.capitalize() for word in kind.split("_")) + "Options"
    options: dict[str, Any] = {
        "alignCorners": corners == "align",
        "halfPixelCenters": corners == "half",
    }
    graph.op(kind, [x, sizes], [y], table, **options)
    graph.outputs(y)
    if planned:
        _plan(net, [MARK, -1, MARK + 1])
    return net.finish()


RETYPED = [
    *(("QUANTIZE", "float32", to) for to in ("int8", "int16")),
    *(("QUANTIZE", "int32", to) for to in ("int8", "int16")),
    *(("QUANTIZE", "int16", to) for to in ("int8", "int32")),
    *(("QUANTIZE", "int8", to) for to in ("uint8", "int16", "int32")),
    ("QUANTIZE", "uint8", "int8"),
    *(("DEQUANTIZE", read, "float32") for read in ("int8", "uint8", "int16")),
    *(
        ("CAST", read, to)
        for read in ("bool", "int8", "int16", "int32", "uint32", "float32")
        for to in ("int8", "int16", "int32", "uint32", "float32")
        if read != to
    ),
]
"""Every (kind, type of the operand, type of the result) that TFLM computes, but for equal types."""


def retyping_model(
    kind: str, read: str, to: str, shape: tuple[int, ...], *, planned: bool = False
) -> bytes:
    """A model of one QUANTIZE, DEQUANTIZE or CAST."""
    net = Net()
    graph = net.graph()
    scales = {"int8": (0.05, -3), "uint8": (0.05, 125), "int16": (0.0002, 0), "int32": (0.0001, 0)}
    fields: list[dict[str, Any]] = [
        {} if t not in scales or kind == "CAST" else {"scale": scales[t][0], "zero": scales[t][1]}
        for t in (read, to)
    ]
    x = graph.input("x", shape, read, **fields[0])
    y = graph.tensor("y", shape, to, **fields[1])
    graph.op(kind, [x], [y], f"{kind.capitalize()}Options")
    graph.outputs(y)
    if planned:
        _plan(net, [MARK, MARK + 1])
    return net.finish()


def inputs_of_type(shape: tuple[int, ...], name: str, count: int) -> list[np.ndarray]:
    """Inputs over the range of a type; of wide ones, as far as results of eight bits tell them
    apart."""
    rng = np.random.default_rng(7)
    if name == "float32":
        return [rng.normal(0, 3, shape).astype(np.float32) for _ in range(count)]
    if name == "bool":
        return [rng.integers(0, 2, shape).astype(bool) for _ in range(count)]
    limits = np.iinfo(name)
    low, high = max(limits.min, -60_000), min(limits.max, 60_000)
    return [rng.integers(low, high, shape, name, True) for _ in range(count)]


def _plan(net: Net, offsets: list[int]) -> None:
    net.metadata(PLAN, np.array([1, 0, len(offsets), *offsets], np.int64).astype("<i4").tobytes())


def at_distance(planned: bytes, distance: int) -> bytes:
    """The planned model with its input `distance` bytes above its output, the lower one at 0."""
    placed = {MARK: max(distance, 0), MARK + 1: max(-distance, 0)}
    for mark, offset in placed.items():
        planned = planned.replace(mark.to_bytes(4, "little"), offset.to_bytes(4, "little"), 1)
    return planned


def op_of(model: bytes) -> Op:
    """The only operator of a model."""
    return read_model(model).main.ops[0]


def random_inputs(shape: tuple[int, ...], element: int, count: int) -> list[np.ndarray]:
    """Inputs over the whole range of the type."""
    rng = np.random.default_rng(7)
    if element == 4:
        return [rng.normal(0, 1, shape).astype(np.float32) for _ in range(count)]
    dtype = np.int8 if element == 1 else np.int16
    limits = np.iinfo(dtype)
    return [rng.integers(limits.min, limits.max, shape, dtype, True) for _ in range(count)]


class Runner:
    """The child process: `safe_distances` asks stock TFLM which distances keep the bits."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.tflm.overlap_trials"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=root,
        )

    def outputs(self, stock: bytes, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """What the model computes."""
        return self._ask(("run", stock, inputs))

    def safe_distances(
        self, stock: bytes, planned: bytes, inputs: list[np.ndarray], distances: Sequence[int]
    ) -> list[bool]:
        """For each distance, whether the outputs for all inputs equal those without a plan."""
        return self._ask(("sweep", stock, planned, inputs, distances))

    def _ask(self, job: tuple[Any, ...]) -> Any:
        assert self._child.stdin is not None and self._child.stdout is not None
        pickle.dump(job, self._child.stdin)
        self._child.stdin.flush()
        return pickle.load(self._child.stdout)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()


def _outputs(model: bytes, inputs: list[np.ndarray]) -> list[np.ndarray]:
    from tflite_micro import runtime

    interpreter: Any = runtime.Interpreter.from_bytes(model, arena_size=1 << 18)
    found: list[np.ndarray] = []
    for x in inputs:
        interpreter.set_input(x, 0)
        interpreter.invoke()
        found.append(interpreter.get_output(0).copy())
    return found


def _answer(job: Any) -> Any:
    """("run", model, inputs): the outputs. ("sweep", model, planned, inputs, distances): at which
    distances those of the planned model are the same."""
    what, stock, *rest = job
    if what == "run":
        return _outputs(stock, rest[0])
    planned, inputs, distances = rest
    want = _outputs(stock, inputs)
    found = (_outputs(at_distance(planned, distance), inputs) for distance in distances)
    return [all(np.array_equal(a, b) for a, b in zip(want, f, strict=True)) for f in found]


if __name__ == "__main__":
    serve(_answer)
