"""A model of random operators under construction: numbers, names, tensors, shapes.

Shapes are those of small vision and audio networks: few and many rows, channels that are and are
not multiples of 4. It must not know operators.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.models.build import Graph, Net

INTEGERS = {"int8": 127, "int16": 32767}
MOST_ELEMENTS = 40_000
Shape = tuple[int, ...]


class Draw:
    """One model under construction."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.net = Net("random operators")
        self.graph: Graph = self.net.graph()
        self.results: list[int] = []
        self.dtype = "int8"
        self.names = 0

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def between(self, low: int, high: int) -> int:
        """A whole number, small ones as likely as large ones of their octave."""
        return int(np.clip(round(np.exp(self.rng.uniform(np.log(low), np.log(high + 0.99)))), low, high))  # noqa: E501  # fmt: skip

    def channels(self, most: int = 160) -> int:
        """Mostly a multiple of 4, as networks have them, or the 1 or 3 of their inputs."""
        if self.rng.random() < 0.1:
            return self.pick(1, 3)
        drawn = self.between(1, most)
        return drawn if self.rng.random() < 0.3 else max(4, drawn // 4 * 4)

    def name(self) -> str:
        """A fresh tensor name."""
        self.names += 1
        return f"t{self.names}"

    def scale(self, dtype: str, scale: float = 0.05) -> dict[str, float]:
        """Quantisation where the type has any."""
        return {"scale": scale} if dtype in INTEGERS else {}

    def given(self, shape: Shape, dtype: str | None = None, scale: float = 0.05) -> int:
        """An input of the model."""
        dtype = dtype or self.dtype
        return self.graph.input(self.name(), shape, dtype, **self.scale(dtype, scale))

    def result(self, shape: Shape, dtype: str | None = None, scale: float = 0.05, zero: int = 0) -> int:  # noqa: E501  # fmt: skip
        """An output of the model."""
        dtype = dtype or self.dtype
        fields: dict[str, Any] = dict(self.scale(dtype, scale))
        if zero:
            fields["zero"] = zero
        index = self.graph.tensor(self.name(), shape, dtype, **fields)
        self.results.append(index)
        return index

    def constant(self, values: Any, dtype: str = "int32") -> int:
        """Numbers that the operator reads."""
        return self.graph.constant(self.name(), values, dtype)

    def op(self, name: str, ins: list[int], outs: list[int], options: str | None = None, **fields: Any) -> None:  # noqa: E501  # fmt: skip
        """Append an operator."""
        self.graph.op(name, ins, outs, options, **fields)

    def weights(self, shape: Shape, axis: int, scales: int) -> list[int]:
        """Filter and bias."""
        channels = shape[axis]
        if self.dtype == "float32":
            values = self.rng.normal(0, 0.1, shape).astype(np.float32)
            bias = np.zeros(channels, np.float32)
            return [self.constant(values, "float32"), self.constant(bias, "float32")]
        scale = np.full(scales, 0.01, np.float32)
        values = self.rng.integers(-127, 128, shape)
        bias = self.rng.integers(-500, 500, channels)
        kind = "int64" if self.dtype == "int16" else "int32"
        return [
            self.graph.constant(self.name(), values, "int8", scale=scale, axis=axis),
            self.graph.constant(self.name(), bias, kind, scale=scale * np.float32(0.05)),
        ]

    def image(self, most: int = MOST_ELEMENTS, channels: int | None = None) -> Shape:
        """A shape of rank 4, often of few rows."""
        depth = channels or self.channels()
        height = self.pick(self.between(1, 4), self.between(1, 48), self.between(4, 48))
        width = self.pick(height, self.between(1, 48), self.between(4, 48))
        while height * width * depth > most:
            height, width = (height + 1) // 2, (width + 1) // 2
            if height * width == 1:
                break
        return (1, height, width, depth)


def reach(size: int, kernel: int, stride: int, dilation: int, valid: bool) -> int:
    """Results along an axis of `size`."""
    span = (kernel - 1) * dilation + 1
    return (size - span) // stride + 1 if valid else -(-size // stride)


def window(d: Draw, shape: Shape, kernels: tuple[Shape, ...]) -> tuple[Shape, int, int, int, int, int]:  # noqa: E501  # fmt: skip
    """(kernel, stride, dilation, whether VALID, rows and columns of the result)."""
    kh, kw = d.pick(*kernels)
    kh, kw = min(kh, shape[1]), min(kw, shape[2])
    stride = d.pick(1, 1, 2)
    dilation = 2 if stride == 1 and d.rng.random() < 0.08 else 1
    valid = int(d.rng.random() < 0.4)
    if (kh - 1) * dilation >= shape[1] or (kw - 1) * dilation >= shape[2]:
        dilation = 1
    height = reach(shape[1], kh, stride, dilation, bool(valid))
    width = reach(shape[2], kw, stride, dilation, bool(valid))
    return (kh, kw), stride, dilation, valid, height, width
