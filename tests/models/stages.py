"""Random networks of stages: convolutions and pools with strides, several readers of one value."""

from __future__ import annotations

import numpy as np

from tests.models.build import Graph, Net

_SCALE = 0.05


class Stages:
    """Draws operators on images; the newest are read most often."""

    def __init__(self, seed: int, *, dtype: str = "int8") -> None:
        self.rng = np.random.default_rng(seed)
        self.net = Net()
        self.graph: Graph = self.net.graph()
        self.dtype, self.zero = dtype, 0 if dtype == "int16" else 2
        shape = (int(self.rng.choice([1, 1, 1, 2])), *(int(n) for n in self.rng.integers(1, 12, 2)))
        channels = int(self.rng.integers(1, 6))
        x = self.graph.input("x", (*shape, channels), dtype, scale=_SCALE, zero=self.zero)
        self.values: list[tuple[int, tuple[int, ...]]] = [(x, (*shape, channels))]
        self.read: set[int] = set()

    def pick(self) -> tuple[int, tuple[int, ...]]:
        """A value to read: mostly one of the last three."""
        last = len(self.values) - 1
        back = min(int(self.rng.geometric(0.5)) - 1, last)
        value = self.values[last - back]
        self.read.add(value[0])
        return value

    def made(self, shape: tuple[int, ...]) -> int:
        name = f"t{len(self.graph.table.tensors)}"
        y = self.graph.tensor(name, shape, self.dtype, scale=_SCALE, zero=self.zero)
        self.values.append((y, shape))
        return y

    def _window(self, size: int, stride: int, shape: tuple[int, ...]) -> tuple[int, int, int]:
        """(padding, rows, columns) of a result; VALID where the window fits, at times."""
        valid = int(self.rng.random() < 0.4 and min(shape[1:3]) >= size)
        rows, columns = (-(-(n - (size - 1) * valid) // stride) for n in shape[1:3])
        return valid, rows, columns

    def conv(self, *, skips: bool = False) -> None:
        """A convolution; `skips`: of 1x1 with a stride."""
        x, shape = self.pick()
        size = 1 if skips else int(self.rng.choice([1, 1, 3]))
        stride = int(self.rng.choice([2, 2, 3])) if skips else int(self.rng.choice([1, 1, 1, 2]))
        padding, rows, columns = self._window(size, stride, shape)
        channels = int(self.rng.integers(1, 9))
        scales = np.full(channels, 1 / 300)
        weights = self.rng.integers(-127, 128, (channels, size, size, shape[-1]))
        number = len(self.graph.table.tensors)
        w = self.graph.constant(f"w{number}", weights, "int8", scale=scales)
        wide = "int64" if self.dtype == "int16" else "int32"
        b = self.graph.constant(f"b{number}", np.arange(channels), wide, scale=_SCALE * scales)
        y = self.made((shape[0], rows, columns, channels))
        self.graph.op(
            "CONV_2D", [x, w, b], [y], "Conv2DOptions", version=3, padding=padding, strideH=stride,
            strideW=stride, dilationHFactor=1, dilationWFactor=1,
            fusedActivationFunction=int(self.rng.random() < 0.5),
        )  # fmt: skip

    def skipping(self) -> None:
        """A convolution of 1x1 with a stride."""
        self.conv(skips=True)

    def pool(self) -> None:
        """A pool, mostly of one pixel, which copies."""
        x, shape = self.pick()
        size, stride = int(self.rng.choice([1, 1, 2])), int(self.rng.choice([1, 2, 2]))
        padding, rows, columns = self._window(size, stride, shape)
        kind = str(self.rng.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"]))
        y = self.made((shape[0], rows, columns, shape[3]))
        self.graph.op(
            kind, [x], [y], "Pool2DOptions", version=2, padding=padding, strideH=stride,
            strideW=stride, filterHeight=size, filterWidth=size,
            fusedActivationFunction=int(self.rng.random() < 0.2),
        )  # fmt: skip

    def add(self) -> None:
        """A sum of two values of one shape, or of a value and one constant for each channel."""
        x, shape = self.pick()
        same = [v for v, s in self.values if s == shape]
        if self.rng.random() < 0.2:
            values = self.rng.integers(-50, 50, shape[-1])
            name = f"c{len(self.graph.table.tensors)}"
            other = self.graph.constant(name, values, self.dtype, scale=_SCALE, zero=self.zero)
        else:
            other = int(self.rng.choice(same))
            self.read.add(other)
        self.graph.op("ADD", [x, other], [self.made(shape)], "AddOptions", version=2)

    def relu(self) -> None:
        x, shape = self.pick()
        self.graph.op("RELU", [x], [self.made(shape)], version=2)

    def finish(self) -> bytes:
        """What nothing reads is an output; so is another value, at times."""
        outputs = [v for v, _ in self.values if v not in self.read]
        if self.rng.random() < 0.2:
            outputs.append(self.values[-1 - int(self.rng.integers(len(self.values)))][0])
        self.graph.outputs(*dict.fromkeys(outputs))
        return self.net.finish()


def random_stages(seed: int, steps: int) -> bytes:
    """A random network; the last operators are convolutions that skip pixels."""
    rng = np.random.default_rng(seed)
    stages = Stages(seed, dtype=str(rng.choice(["int8", "int16"], p=[0.8, 0.2])))
    kinds = ["conv", "skipping", "pool", "add", "relu"]
    for kind in rng.choice(kinds, steps, p=[0.3, 0.2, 0.1, 0.3, 0.1]):
        getattr(stages, kind)()
    for _ in range(int(rng.integers(1, 3))):
        stages.skipping()
    return stages.finish()
