"""Small models that several tests take, and two builders for more of them."""

from __future__ import annotations

import random

import numpy as np

from tests.models.build import Graph, Net
from tests.models.registry import SCALE as HANDMADE_SCALE
from tests.models.registry import add, conv, relu, start

SCALE = 0.05
ONES = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}


class Chain:
    """Operators on one image, one after the other."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.net = Net()
        self.graph: Graph = self.net.graph()
        self.rng = np.random.default_rng(5)
        self.shape, self.x = shape, self.graph.input("x", shape, scale=SCALE, zero=2)

    def tensor(self, shape: tuple[int, ...]) -> int:
        name = f"t{len(self.graph.table.tensors)}"
        return self.graph.tensor(name, shape, scale=SCALE, zero=2)

    def conv(self, channels: int, size: int, *, keep: bool = True) -> int:
        """A SAME convolution of the newest image."""
        scales = np.full(channels, 1 / 300)
        weights = self.rng.integers(-127, 128, (channels, size, size, self.shape[-1]))
        w = self.graph.constant(f"w{self.x}", weights, "int8", scale=scales)
        b = self.graph.constant(f"b{self.x}", np.zeros(channels), scale=SCALE * scales)
        shape = (*self.shape[:3], channels)
        y = self.tensor(shape)
        self.graph.op("CONV_2D", [self.x, w, b], [y], "Conv2DOptions", version=3, **ONES)
        if keep:
            self.x, self.shape = y, shape
        return y

    def pool(self, of: int | None = None, size: int = 2) -> int:
        """A VALID pool of size x size, with that stride."""
        batch, height, width, channels = self.shape
        shape = (batch, height // size, width // size, channels)
        y = self.tensor(shape)
        names = ("strideH", "strideW", "filterHeight", "filterWidth")
        fields = {**dict.fromkeys(names, size), "padding": 1}
        source = self.x if of is None else of
        self.graph.op("MAX_POOL_2D", [source], [y], "Pool2DOptions", version=2, **fields)
        if of is None:
            self.x, self.shape = y, shape
        return y

    def finish(self, *outputs: int) -> bytes:
        self.graph.outputs(*(outputs or (self.x,)))
        return self.net.finish()


class One:
    """One operator between two RELUs, so that neither end is the model's."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "int8") -> None:
        self.net = Net()
        self.graph: Graph = self.net.graph()
        self.dtype = dtype
        self.scale = {} if dtype == "float32" else {"scale": 0.1}
        x = self.graph.input("x", shape, dtype, **self.scale)
        self.x = self.relu(x, shape)
        self.count = 0

    def tensor(self, shape: tuple[int, ...]) -> int:
        self.count = len(self.graph.table.tensors)
        return self.graph.tensor(f"t{self.count}", shape, self.dtype, **self.scale)

    def relu(self, x: int, shape: tuple[int, ...]) -> int:
        y = self.tensor(shape)
        self.graph.op("RELU", [x], [y])
        return y

    def integers(self, *values: int) -> int:
        return self.graph.constant(f"c{len(self.graph.table.tensors)}", list(values))

    def finish(self, *results: tuple[int, tuple[int, ...]]) -> bytes:
        self.graph.outputs(*(self.relu(y, shape) for y, shape in results))
        return self.net.finish()


def wide(*, reshaped: bool = False) -> bytes:
    """A chain of convolutions, and a RELU at its end; or with a RESHAPE before it, and none."""
    net, graph, x = start((1, 24, 24, 4))
    shape = (1, 24, 24, 4)
    if reshaped:
        shape = (1, 48, 12, 4)
        y = graph.tensor("reshaped", shape, scale=HANDMADE_SCALE, zero=2)
        graph.op("RESHAPE", [x], [y], "ReshapeOptions", newShape=list(shape))
        x = y
    for i in range(4):
        x = conv(graph, x, shape, f"layer{i}")
    graph.outputs(x if reshaped else relu(graph, x, shape))
    return net.finish()


def narrow_rows(rows: int = 120) -> bytes:
    """Rows of 60 bytes enter a row of the result: four of these are a multiple of 16 bytes."""
    chain = Chain((1, rows, 30, 1))
    chain.conv(32, 1)
    chain.pool()
    return chain.finish()


def joined_uint8() -> bytes:
    """uint8 pieces joined, which TFLM cannot do."""
    net = Net()
    graph = net.graph()
    parts = [graph.input(n, (1, 4), "uint8", scale=0.1) for n in "ab"]
    y = graph.tensor("joined", (1, 8), "uint8", scale=0.1)
    graph.op("CONCATENATION", parts, [y], "ConcatenationOptions", axis=1)
    graph.outputs(y)
    return net.finish()


def small_network(seed: int) -> bytes:
    """Convolutions, sums and RELUs on one small image, wired at random."""
    chance = random.Random(seed)
    shape = (1, chance.choice((8, 12, 18)), chance.choice((4, 8)), chance.choice((4, 8)))
    net, graph, x = start(shape)
    made = [x]
    for i in range(chance.randint(3, 6)):
        source = chance.choice(made[-2:])
        kind = chance.choice(("conv", "conv", "sum", "relu"))
        if kind == "conv":
            made.append(conv(graph, source, shape, f"conv{i}"))
        elif kind == "sum":
            made.append(add(graph, source, made[-1], shape, f"sum{i}"))
        else:
            made.append(relu(graph, source, shape))
    graph.outputs(relu(graph, made[-1], shape))
    return net.finish()


def bottleneck(dtype: str = "int8", activation: int = 0) -> bytes:
    """8 channels to 24, a depthwise convolution, and back to 6: figure 5 of MOTES."""
    one, rng = One((1, 6, 5, 8), dtype), np.random.default_rng(4)

    def constant(name, shape, axis, size):
        if dtype == "float32":
            return one.graph.constant(name, rng.normal(size=shape) * size, dtype)
        scales = np.linspace(0.5, 1.5, shape[axis]) * size / 60
        return one.graph.constant(
            name, rng.integers(-127, 128, shape), "int8", scale=scales, axis=axis
        )

    def bias(name, channels):
        values = rng.integers(-300, 301, channels)
        if dtype == "float32":
            return one.graph.constant(name, values / 300, dtype)
        return one.graph.constant(name, values, "int32", scale=np.full(channels, 0.001))

    a, b, c = (one.tensor((1, 6, 5, n)) for n in (24, 24, 6))
    wide = [one.x, constant("w1", (24, 1, 1, 8), 0, 0.3), bias("b1", 24)]
    deep = [a, constant("w2", (1, 3, 3, 24), 3, 0.3), bias("b2", 24)]
    narrow = [b, constant("w3", (6, 1, 1, 24), 0, 0.3), bias("b3", 6)]
    one.graph.op("CONV_2D", wide, [a], "Conv2DOptions", **ONES)
    options = {**ONES, "depthMultiplier": 1}
    one.graph.op("DEPTHWISE_CONV_2D", deep, [b], "DepthwiseConv2DOptions", **options)
    more = {**ONES, "fusedActivationFunction": activation}
    one.graph.op("CONV_2D", narrow, [c], "Conv2DOptions", **more)
    one.graph.outputs(c)
    return one.net.finish()


def one_operator(kind: str, custom: str = "") -> bytes:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 8, 4, 2), "float32")
    y = graph.tensor("y", (1, 8, 4, 2), "float32")
    if custom:
        graph.custom(custom, [x], [y], b"")
    else:
        graph.op(kind, [x], [y])
    graph.outputs(y)
    return net.finish()


def swapping(*, swapped: bool) -> bytes:
    """WHILE over two values that the body hands on, or swaps."""
    net = Net()
    graph = net.graph()
    x, y = (graph.input(n, (1, 64), scale=0.1) for n in "xy")
    condition, body = net.graph("condition"), net.graph("body")
    i, *_ = (condition.input(n, (1,) if n == "i" else (1, 64), "int32" if n == "i" else "int8",
                             **({} if n == "i" else {"scale": 0.1})) for n in "icd")  # fmt: skip
    go = condition.tensor("go", (1,), "bool")
    condition.op("LESS", [i, condition.constant("limit", [3])], [go], "LessOptions")
    condition.outputs(go)
    j = body.input("i", (1,), "int32")
    a, b = (body.input(n, (1, 64), scale=0.1) for n in "ab")
    after = body.tensor("after", (1,), "int32")
    body.op("ADD", [j, body.constant("one", [1])], [after], "AddOptions")
    body.outputs(after, *((b, a) if swapped else (a, b)))
    last = graph.tensor("last", (1,), "int32")
    outs = [graph.tensor(n, (1, 64), scale=0.1) for n in "vw"]
    graph.op("WHILE", [graph.constant("zero", [0]), x, y], [last, *outs], "WhileOptions",
             condSubgraphIndex=condition.index, bodySubgraphIndex=body.index)  # fmt: skip
    graph.outputs(*outs, x)
    return net.finish()


CHAIN_SHAPE = (1, 16, 16, 4)


def type_chain(*types: str, extra_output: int | None = None) -> bytes:
    """A model that changes its input's type again and again; `extra_output`: a tensor on the way
    that is an output too."""
    net = Net()
    graph = net.graph()
    at = graph.input("x0", CHAIN_SHAPE, types[0], **_chain_scale(types[0]))
    made = [at]
    for number, to in enumerate(types[1:], 1):
        kind = "DEQUANTIZE" if to == "float32" else "QUANTIZE"
        made.append(graph.tensor(f"x{number}", CHAIN_SHAPE, to, **_chain_scale(to)))
        graph.op(kind, [at], [made[-1]], f"{kind.capitalize()}Options")
        at = made[-1]
    graph.outputs(at, *(() if extra_output is None else (made[extra_output],)))
    return net.finish()


def _chain_scale(dtype: str) -> dict[str, float]:
    scales = {"int8": 0.05, "uint8": 0.05, "int16": 0.0002}
    return {"scale": scales[dtype], "zero": 128 * (dtype == "uint8")} if dtype in scales else {}


def operator_alone(kind: str, dtype: str = "int8") -> bytes:
    """An operator of one operand on (1, 4) elements; TILE, which TFLM has no kernel for, twice."""
    net = Net()
    graph = net.graph()
    scale = {"scale": 0.1} if dtype == "int8" else {}
    x = graph.input("x", (1, 4), dtype, **scale)
    more = [graph.constant("times", [1, 2])] if kind == "TILE" else []
    shape = (1, 8) if kind == "TILE" else (1, 4)
    y = graph.tensor("it", shape, dtype, **scale)
    graph.op(kind, [x, *more], [y], version=3 if kind == "TILE" else 1)
    graph.outputs(y)
    return net.finish()


def mystery(elements: int) -> bytes:
    """A custom operator that nobody knows: figures of it are "about" so much."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, elements), scale=0.1)
    y = graph.tensor("y", (1, elements), scale=0.1)
    graph.custom("mystery", [x], [y], b"")
    graph.outputs(y)
    return net.finish()
