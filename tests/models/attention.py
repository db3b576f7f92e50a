"""Attention as converters write it: heads apart by RESHAPE and TRANSPOSE, rows of queries within.

x --FC--RESHAPE--TRANSPOSE--> q k v     q k' --SCALE--SOFTMAX--> p     p v --> heads together
"""

from __future__ import annotations

import numpy as np

from tests.models.build import Graph, Net

SCALE = 0.05


class _Layer:
    def __init__(self, rows: int, heads: int, depth: int, dtype: str, seed: int) -> None:
        self.net = Net()
        self.graph: Graph = self.net.graph()
        self.rows, self.heads, self.depth, self.dtype = rows, heads, depth, dtype
        self.width = heads * depth
        self.random = np.random.default_rng(seed)
        self.names = 0

    def tensor(self, shape: tuple[int, ...], scale: float = SCALE, zero: int = 0) -> int:
        self.names += 1
        more = {} if self.dtype == "float32" else {"scale": scale, "zero": zero}
        return self.graph.tensor(f"t{self.names}", shape, self.dtype, **more)

    def integers(self, *values: int) -> int:
        self.names += 1
        return self.graph.constant(f"c{self.names}", list(values))

    def dense(self, x: int, shape: tuple[int, ...]) -> int:
        """(.., width) -> (.., width)."""
        size, self.names = (self.width, self.width), self.names + 1
        if self.dtype == "float32":
            data = self.random.normal(0, size[1] ** -0.5, size).astype(np.float32)
            w = self.graph.tensor(f"w{self.names}", size, "float32", data=data)
        else:
            data = self.random.integers(-127, 128, size).astype(np.int8)
            scale = 1 / 127 / size[1] ** 0.5
            w = self.graph.tensor(f"w{self.names}", size, "int8", data=data, scale=scale)
        y = self.tensor(shape)
        self.graph.op("FULLY_CONNECTED", [x, w, -1], [y], "FullyConnectedOptions", keepNumDims=True)
        return y

    def turned(self, x: int, shape: tuple[int, ...], *order: int) -> int:
        y = self.tensor(tuple(shape[a] for a in order))
        self.graph.op("TRANSPOSE", [x, self.integers(*order)], [y], "TransposeOptions")
        return y

    def reshaped(self, x: int, *shape: int) -> int:
        y = self.tensor(shape)
        self.graph.op(
            "RESHAPE", [x, self.integers(*shape)], [y], "ReshapeOptions", newShape=list(shape)
        )
        return y

    def product(self, x: int, y: int, out: tuple[int, ...], *, turn: bool = False) -> int:
        z = self.tensor(out)
        fields = {"adjX": False, "adjY": turn, "asymmetricQuantizeInputs": False}
        self.graph.op("BATCH_MATMUL", [x, y], [z], "BatchMatMulOptions", **fields)
        return z

    def heads_of(self, x: int, *order: int) -> int:
        """x, dense, apart by heads, (1, rows, heads, depth) in another order of axes."""
        y = self.dense(x, (1, self.rows, self.width))
        apart = (1, self.rows, self.heads, self.depth)
        return self.turned(self.reshaped(y, *apart), apart, *order)

    def attended(self, x: int) -> int:
        n, h, d = self.rows, self.heads, self.depth
        k = self.heads_of(x, 0, 2, 3, 1)
        q = self.heads_of(x, 0, 2, 1, 3)
        scores = self.product(q, k, (1, h, n, n))
        p = self.tensor((1, h, n, n), 1 / 256, -128)
        self.graph.op("SOFTMAX", [scores], [p], "SoftmaxOptions", beta=1.0)
        v = self.heads_of(x, 0, 2, 1, 3)
        mixed = self.product(p, v, (1, h, n, d))
        together = self.reshaped(self.turned(mixed, (1, h, n, d), 0, 2, 1, 3), n, self.width)
        y = self.dense(together, (n, self.width))
        out = self.tensor((1, n, self.width))
        self.graph.op("ADD", [x, y], [out], "AddOptions")
        return out


def attention(
    rows: int = 32,
    heads: int = 2,
    depth: int = 8,
    layers: int = 1,
    dtype: str = "int8",
    seed: int = 0,
) -> bytes:
    """Layers of attention with a residual, between two RELUs."""
    layer = _Layer(rows, heads, depth, dtype, seed)
    shape = (1, rows, layer.width)
    more = {} if dtype == "float32" else {"scale": SCALE}
    x = layer.graph.input("x", shape, dtype, **more)
    for _ in range(layers):
        x = layer.attended(x)
    y = layer.tensor(shape)
    layer.graph.op("RELU", [x], [y])
    layer.graph.outputs(y)
    return layer.net.finish()
