"""One run of an operator: the arguments from which a rule makes the operator's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.terms import mixing
from tflm_planner.ops.terms.field import Residues, subtract
from tflm_planner.ops.terms.mixing import Mixer, Words
from tflm_planner.ops.terms.parameters import is_float
from tflm_planner.ops.terms.values import (
    InexpressibleError,
    MisdeclaredError,
    Symbols,
    Values,
)


@dataclass(frozen=True, slots=True)
class OpCall:
    """An operator with the values of its operands (None for an operand that is left out).
    loop_cache: a cache of what is the same in every iteration of a loop; None for an operator that
    runs once."""

    op: Op
    operands: tuple[Values | None, ...]
    mixer: Mixer
    symbols: Symbols
    loop_cache: dict[str, Any] | None = None

    @property
    def result(self) -> Tensor:
        """The only result, or the first."""
        return self.op.outputs[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The declared shape of that result."""
        return self.result.shape or ()

    def check_declared(self, shape: Sequence[int]) -> None:
        """Raise MisdeclaredError unless the result is declared with this shape."""
        if tuple(shape) != self.shape:
            raise MisdeclaredError(
                f"{self.op.label} makes {list(shape)}, but its result is declared as "
                f"{list(self.shape)}"
            )

    def tensor(self, operand: int) -> Tensor:
        """The tensor of an operand. Raises InexpressibleError if the operand is left out."""
        tensor = self.op.inputs[operand] if operand < len(self.op.inputs) else None
        if tensor is None:
            raise InexpressibleError(f"{self.op.label} lacks operand {operand}")
        return tensor

    def values(self, operand: int) -> Values:
        """The values of an operand. Raises InexpressibleError if the operand is left out."""
        values = self.operands[operand] if operand < len(self.operands) else None
        if values is None:
            raise InexpressibleError(f"{self.op.label} lacks operand {operand}")
        return values

    def elements(self, operand: int) -> Residues:
        """The values of an operand as field elements."""
        return self.symbols.elements(self.values(operand))

    def centred_elements(self, operand: int) -> Residues:
        """The field elements of an operand minus that of its zero point, so that padding is 0."""
        zero = self.zero(self.tensor(operand))
        values = self.elements(operand)
        return subtract(values, zero.reshape(-1, *(1 for _ in values.shape[1:])))

    def zero(self, tensor: Tensor) -> Residues:
        """The field element of the number that stands for zero: of 0.0, or of the zero point."""
        return self.symbols.of_number(0.0 if is_float(tensor) else tensor.zero)

    def has(self, operand: int) -> bool:
        """Whether an optional operand is present."""
        return operand < len(self.operands) and self.operands[operand] is not None

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        """The value of `make`, cached under a name if all operands after the first are
        constants."""
        constants = (t.is_constant for t in self.op.operands()[1:])
        if self.loop_cache is None or not all(constants):
            return make()
        if name not in self.loop_cache:
            self.loop_cache[name] = make()
        return self.loop_cache[name]

    def mix(self, values: Residues, *name: object) -> Values:
        """Values in which every element is mixed by the same key, made from `name`."""
        return self.mix_by(values, mixing.key(*name))

    def mix_by(self, values: Residues, words: Words) -> Values:
        """Values in which all elements are mixed by the one key in `words`, or each by its own."""
        return Values(self.mixer.mix(values, words), False)


Rule = Callable[[OpCall], list[Values] | None]
"""A rule gives the results in order, or None if it does not cover the operator's options or types;
the operator is then hashed."""
