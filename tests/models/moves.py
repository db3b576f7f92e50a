"""Random chains of operators that move the elements of an image."""

from __future__ import annotations

import numpy as np

from tests.models.build import Graph, Net
from tests.models.small import ONES

_SCALE = 0.05
Places = tuple[int, ...]
"""One number for each axis."""
KINDS = "pad", "padv2", "cut", "strided", "pool"


class Moves:
    """Moves elements of the newest image."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "int8", seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.net = Net()
        self.graph: Graph = self.net.graph()
        self.dtype = dtype
        zero = {"int8": 2, "int16": 0}.get(dtype, 0)
        self.scale = {} if dtype == "float32" else {"scale": _SCALE, "zero": zero}
        self.x, self.shape = self.graph.input("x", shape, dtype, **self.scale), shape
        self.images = [self.x]

    def made(self, shape: tuple[int, ...]) -> int:
        name = f"t{len(self.graph.table.tensors)}"
        self.x, self.shape = self.graph.tensor(name, shape, self.dtype, **self.scale), shape
        self.images.append(self.x)
        return self.x

    def integers(self, values: object) -> int:
        return self.graph.constant(f"c{len(self.graph.table.tensors)}", np.array(values))

    def pad(self, *pads: tuple[int, int], value: int | None = None) -> None:
        """Padding along each axis; value: by PADV2."""
        x = [self.x, self.integers(pads)]
        if value is not None:
            name = f"v{len(self.graph.table.tensors)}"
            x.append(self.graph.constant(name, np.array(value), self.dtype, **self.scale))
        shape = tuple(n + a + b for n, (a, b) in zip(self.shape, pads, strict=True))
        kind, options = ("PAD", "PadOptions") if value is None else ("PADV2", "PadV2Options")
        self.graph.op(kind, x, [self.made(shape)], options, version=2)

    def cut(self, begin: tuple[int, ...], size: tuple[int, ...]) -> None:
        x = [self.x, self.integers(begin), self.integers(size)]
        self.graph.op("SLICE", x, [self.made(size)], "SliceOptions", version=2)

    def strided(self, begin: Places, end: Places, strides: Places) -> None:
        x = [self.x, *map(self.integers, (begin, end, strides))]
        sizes = zip(begin, end, strides, strict=True)
        shape = tuple(-(-(e - b) // s) for b, e, s in sizes)
        self.graph.op("STRIDED_SLICE", x, [self.made(shape)], "StridedSliceOptions", version=2)

    def pool(self, rows: int, columns: int, kind: str = "AVERAGE_POOL_2D") -> None:
        """A pool of one pixel."""
        batch, height, width, channels = self.shape
        shape = (batch, -(-height // rows), -(-width // columns), channels)
        fields = {"strideH": rows, "strideW": columns, "filterHeight": 1, "filterWidth": 1}
        x, options = self.x, "Pool2DOptions"
        self.graph.op(kind, [x], [self.made(shape)], options, version=2, padding=1, **fields)

    def conv(self, channels: int, stride: int) -> None:
        """A convolution of 1x1."""
        scales = np.full(channels, 1 / 300)
        x, number = self.x, len(self.graph.table.tensors)
        floats = self.dtype == "float32"
        weights = self.rng.integers(-127, 128, (channels, 1, 1, self.shape[-1]))
        told = {} if floats else {"scale": scales}
        w = self.graph.constant(f"w{number}", weights, "float32" if floats else "int8", **told)
        wide = {"float32": "float32", "int16": "int64"}.get(self.dtype, "int32")
        told = {} if floats else {"scale": _SCALE * scales}
        b = self.graph.constant(f"b{number}", np.arange(channels), wide, **told)
        shape = (self.shape[0], *(-(-n // stride) for n in self.shape[1:3]), channels)
        self.graph.op(
            "CONV_2D", [x, w, b], [self.made(shape)], "Conv2DOptions", version=3,
            **{**ONES, "strideH": stride, "strideW": stride},
        )  # fmt: skip

    def random_move(self) -> None:
        """One of the kinds, at random places."""
        rng, shape = self.rng, self.shape
        kind = str(rng.choice(KINDS))
        if kind.startswith("pad"):
            pads = [tuple(int(n) for n in rng.integers(0, 3, 2)) for _ in shape]
            pads[0] = (0, 0)
            value = int(rng.integers(-9, 9)) if kind == "padv2" else None
            self.pad(*pads, value=value)
            return
        if kind == "pool":
            rows, columns = (int(n) for n in rng.choice([1, 2, 2, 3], 2))
            if self.dtype != "float32" or (rows, columns) != (1, 1):
                self.pool(rows, columns, str(rng.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"])))
            return
        begin = tuple(int(rng.integers(0, max(n // 2, 1))) for n in shape)
        end = tuple(int(rng.integers(b + 1, n + 1)) if rng.random() < 0.4 else n
                    for b, n in zip(begin, shape, strict=True))  # fmt: skip
        if kind == "cut":
            self.cut(begin, tuple(e - b for b, e in zip(begin, end, strict=True)))
        else:
            self.strided(begin, end, (1, *(int(s) for s in rng.choice([1, 2, 2, 3], 2)), 1))

    def finish(self, *more: int) -> bytes:
        self.graph.outputs(*dict.fromkeys((self.x, *more)))
        return self.net.finish()


def random_moves(seed: int) -> bytes:
    """A chain of two to six moves, at times with a convolution at its end that skips pixels, and
    with a value inside that is read otherwise, too."""
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["int8", "int16", "float32"], p=[0.6, 0.2, 0.2]))
    height, width, channels = (int(n) for n in rng.integers((2, 2, 1), (14, 14, 5)))
    moves = Moves((1, height, width, channels), dtype, seed)
    if rng.random() < 0.5:
        moves.conv(3, 1)
    for _ in range(int(rng.integers(2, 7))):
        moves.random_move()
    if rng.random() < 0.5:
        moves.conv(int(rng.integers(1, 9)), 2)
    read = [moves.images[int(rng.integers(1, len(moves.images)))]] if rng.random() < 0.2 else []
    return moves.finish(*read)
