"""Operators from one type to another, for random models: QUANTIZE, DEQUANTIZE and CAST in chains.

    value int8 --DEQUANTIZE--> float32 --CAST--> int16 --...--> QUANTIZE --> value int8
                                  |
                                  output, at times

Not in the usual draw: `random_model(kinds=...)` names "retype". Only changes of type that LiteRT's
reference kernels and TFLM both compute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.models.maker import Shape, Value
from tests.models.more_operators import MoreOperators

STEPS = {
    "float32": (("QUANTIZE", "int8"), ("QUANTIZE", "int16"), ("CAST", "int32"), ("CAST", "int8")),
    "int8": (("QUANTIZE", "uint8"), ("DEQUANTIZE", "float32"), ("CAST", "int16"),
             ("CAST", "int32"), ("CAST", "float32")),
    "uint8": (("QUANTIZE", "int8"), ("DEQUANTIZE", "float32")),
    "int16": (("QUANTIZE", "int8"), ("QUANTIZE", "int32"), ("DEQUANTIZE", "float32"),
              ("CAST", "int8"), ("CAST", "int32"), ("CAST", "float32")),
    "int32": (("QUANTIZE", "int8"), ("QUANTIZE", "int16"), ("CAST", "int8"), ("CAST", "int16"),
              ("CAST", "float32")),
    "bool": (("CAST", "int8"), ("CAST", "float32")),
}  # fmt: skip
_LIMITS = {"int8": 127, "uint8": 127, "int16": 32767, "int32": 1 << 30}
"""How far values go from the middle of a type."""


@dataclass(frozen=True)
class Typed:
    """A tensor of any type so far; mean and deviation are guesses of what it stands for."""

    index: int
    shape: Shape
    dtype: str
    mean: float
    std: float
    scale: float = 1.0
    zero: int = 0


class Retyping(MoreOperators):
    """One method an operator, as in `Operators`; `ends` are outputs that nobody goes on from."""

    def __init__(self, rng: np.random.Generator, dtype: str) -> None:
        super().__init__(rng, dtype)
        self.ends: list[int] = []

    def retype(self) -> bool:
        """A chain of changes of type, which comes back or ends as an output."""
        x = self.pick()
        assert x is not None
        at = Typed(x.index, x.shape, self.dtype, x.mean, x.std, x.scale or 1.0, x.zero)
        for _ in range(self.integer(1, 4)):
            choices = STEPS[at.dtype]
            kind, to = choices[self.integer(0, len(choices) - 1)]
            at = self._step(at, kind, to)
            if self.chance(0.1):
                self.ends.append(at.index)
        if self.chance(0.25):
            self.ends.append(at.index)
            return True
        self._back(at)
        return True

    def foreign_input(self, shape: Shape) -> None:
        """An input of another type, changed into the model's."""
        others = [t for t, steps in STEPS.items() if any(to == self.dtype for _, to in steps)]
        usual = [t for t in ("float32", "uint8") if t in others]
        dtype = str(self.rng.choice([*others, *usual]))
        at = self._tensor(shape, dtype, 0.5 if dtype == "bool" else 0.0, 1.0)
        self.graph.table.inputs.append(at.index)
        self._back(at)

    def _back(self, at: Typed) -> None:
        """Make a value of it, by way of float where there is no other."""
        while at.dtype != self.dtype:
            direct = [(k, to) for k, to in STEPS[at.dtype] if to == self.dtype]
            ways = direct or [(k, to) for k, to in STEPS[at.dtype] if to == "float32"]
            at = self._step(at, *ways[self.integer(0, len(ways) - 1)])
        scale = 0.0 if self.dtype == "float32" else at.scale
        self.values.append(Value(at.index, at.shape, at.mean, at.std, scale, at.zero))

    def _step(self, at: Typed, kind: str, to: str) -> Typed:
        if kind == "CAST":  # a result of eight bits shall not be cut off
            mean, std = at.mean / at.scale + at.zero, at.std / at.scale
            made = self._tensor(at.shape, to, mean, std, cast=True)
        else:
            made = self._tensor(at.shape, to, at.mean, at.std)
        self.graph.op(kind, [at.index], [made.index], f"{kind.capitalize()}Options")
        self.used.add(at.index)
        return made

    def _tensor(
        self, shape: Shape, dtype: str, mean: float, std: float, *, cast: bool = False
    ) -> Typed:
        """Append a tensor, quantised for mean and deviation unless it is of a CAST."""
        std = max(std, 1e-3)
        found = Typed(-1, shape, dtype, mean, std)
        if dtype in _LIMITS and not cast:
            scale = float((std + abs(mean) * (dtype != "uint8")) * 3 / _LIMITS[dtype])
            middle = 128 if dtype == "uint8" else 0
            shift = round(-mean / scale) if dtype == "uint8" else 0
            found = replace(found, scale=scale, zero=int(np.clip(middle + shift, 0, 255 * middle)))
        quantised = {"scale": found.scale, "zero": found.zero} if dtype in _LIMITS else {}
        name = f"typed_{len(self.graph.table.tensors)}"
        return replace(found, index=self.graph.tensor(name, shape, dtype, **quantised))
