"""The random model under construction: draws choices, appends values and operators.

Knows scales and shapes, no particular operator; those are in `tests.models.operators`. Each value
carries a guess of its mean and deviation, from which its scale follows, so that outputs neither
saturate nor freeze: a planner that corrupts a byte shall be seen.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.models.build import Graph, Net

Shape = tuple[int, ...]
MAX_ELEMENTS = 4000
NO_ACTIVATION, RELU, RELU6 = 0, 1, 3


@dataclass(frozen=True)
class Value:
    """A tensor so far: real mean and deviation are guesses, scale 0 stands for float."""

    index: int
    shape: Shape
    mean: float
    std: float
    scale: float
    zero: int


class Maker:
    """One graph that grows, and the generator it draws from."""

    def __init__(self, rng: np.random.Generator, dtype: str) -> None:
        self.rng, self.dtype = rng, dtype
        self.net = Net("random test model")
        self.graph: Graph = self.net.graph()
        self.values: list[Value] = []
        self.used: set[int] = set()

    # --- choices ---------------------------------------------------------------------------

    def integer(self, low: int, high: int) -> int:
        """Draw from low..high, both included."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        """Draw True with this probability."""
        return bool(self.rng.random() < probability)

    def pick(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """Draw a value, preferring those nobody has used yet; None when none is acceptable."""
        choices = [value for value in self.values if accept(value)]
        if not choices:
            return None
        weights = np.array([1.0 if value.index in self.used else 4.0 for value in choices])
        return choices[int(self.rng.choice(len(choices), p=weights / weights.sum()))]

    # --- values and operators --------------------------------------------------------------

    def quantisation(self, mean: float, std: float) -> tuple[float, int]:
        """Return a scale and zero point under which most values fit."""
        if self.dtype == "float32":
            return 0.0, 0
        if self.dtype == "int16":
            return float((abs(mean) + std) / self.rng.uniform(5000, 9000)), 0
        scale = std / self.rng.uniform(25, 45)
        return float(scale), int(np.clip(round(-mean / scale), -128, 127))

    def value(self, shape: Shape, mean: float, std: float, like: Value | None = None) -> Value:
        """Append an output tensor, quantised for mean and deviation, or `like` another."""
        std = max(std, 1e-3)
        scale, zero = (like.scale, like.zero) if like else self.quantisation(mean, std)
        return self.fixed(shape, mean, std, scale, zero)

    def fixed(self, shape: Shape, mean: float, std: float, scale: float, zero: int) -> Value:
        """Append an output tensor with this very scale and zero point."""
        name = f"value_{len(self.graph.table.tensors)}"
        quantised = {} if self.dtype == "float32" else {"scale": scale, "zero": zero}
        index = self.graph.tensor(name, shape, self.dtype, **quantised)
        return Value(index, tuple(shape), mean, std, float(quantised.get("scale", 0.0)), zero)

    def constant(self, values: Any) -> int:
        """Append an int32 constant."""
        return self.graph.constant(f"constant_{len(self.graph.table.tensors)}", values)

    def emit(
        self,
        name: str,
        inputs: list[Value | int],
        outputs: list[Value],
        options: str | None = None,
        **fields: Any,
    ) -> bool:
        """Append the operator; an int among the inputs is a constant's tensor index."""
        indices = [item.index if isinstance(item, Value) else item for item in inputs]
        self.graph.op(name, indices, [item.index for item in outputs], options, **fields)
        self.used.update(indices)
        self.values.extend(outputs)
        return True

    def weights(self, shape: Shape, axis: int, x: Value, fan_in: int, std: float) -> list[int]:
        """Append filter and bias that give outputs of deviation `std`; return their tensors."""
        rng, channels = self.rng, shape[axis]
        size = std / math.sqrt(fan_in * (x.std**2 + x.mean**2))
        tag = len(self.graph.table.tensors)
        if self.dtype == "float32":
            kernel, bias = rng.normal(0, size, shape), rng.normal(0, std / 2, channels)
            return [
                self.graph.constant(f"filter_{tag}", kernel, "float32"),
                self.graph.constant(f"bias_{tag}", bias, "float32"),
            ]
        per_channel = len(shape) == 4 and self.chance(0.8)
        # Uniform in -127..127 deviates by 73.
        scales = size / 73 * rng.uniform(0.6, 1.4, channels if per_channel else 1)
        kernel = rng.integers(-127, 128, shape)
        bias = np.round(rng.normal(0, std / 2, channels) / (x.scale * scales))
        kind = "int64" if self.dtype == "int16" else "int32"
        return [
            self.graph.constant(f"filter_{tag}", kernel, "int8", scale=scales, axis=axis),
            self.graph.constant(f"bias_{tag}", bias, kind, scale=x.scale * scales),
        ]

    def activated(self, shape: Shape, std: float) -> tuple[Value, int]:
        """Append an output with a fused activation; return it and the activation's code."""
        code = int(self.rng.choice([NO_ACTIVATION, NO_ACTIVATION, RELU, RELU6]))
        if code == NO_ACTIVATION:
            return self.value(shape, 0.0, std), code
        return self.value(shape, 0.4 * std, 0.6 * std), code

    def window(self, x: Value, largest: int) -> tuple[int, list[int], list[int], list[int]] | None:
        """Draw padding, kernel, stride and output size of a sliding window; None: no room."""
        kernel, stride, size = [], [], []
        padding = self.integer(0, 1)
        for length in x.shape[1:3]:
            kernel.append(self.integer(1, min(largest, length)))
            stride.append(int(self.rng.choice([1, 1, 1, 2, 2, 3, 4])))
            covered = length if padding == 0 else length - kernel[-1] + 1
            size.append(-(-covered // stride[-1]))
        return padding, kernel, stride, size
