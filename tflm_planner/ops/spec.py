"""What an operator means, as far as passes need it. One entry an operator.

An operator without an entry is *unknown*: it is carried, ordered and packed, never split and
never made to share memory, and its order against other unknown operators is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.schema import operator_names


@dataclass(frozen=True, slots=True)
class Sharing:
    """Every kernel library computes the right bits when `result` lies exactly `distance` bytes
    above `operand` (below, when negative) and the operand is not needed afterwards.

    `exclusive`: the result can use the memory of one such operand only (in-place ADD); otherwise
    several hold at once (the parts of a CONCATENATION). `same_bytes`: the two then hold the same
    bytes wherever they overlap, so that the operand may also be needed afterwards.
    """

    operand: Tensor
    result: Tensor
    distance: int
    exclusive: bool
    same_bytes: bool = False


SharingRule = Callable[[Op], Iterator[Sharing]]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """sharing: where results may lie in operands; asked only of operators with at least
    `operands` inputs (none omitted), one result unless `many_results`, and options if
    `needs_options`. has_state: reads or writes something that is not among its tensors
    (resource variables), so its order against its like must be kept."""

    sharing: SharingRule | None = None
    operands: int = 1
    many_results: bool = False
    needs_options: bool = False
    has_state: bool = False

    def fits(self, op: Op) -> bool:
        """Whether `op` has the operands, results and options that its rule counts on."""
        return (
            len(op.inputs) >= self.operands
            and None not in op.inputs
            and len(op.outputs) >= 1
            and (self.many_results or len(op.outputs) == 1)
            and not (self.needs_options and op.options.is_absent)
        )


_SPECS: dict[str, OpSpec] = {}
_PLAIN = OpSpec()


def register(spec: OpSpec, *kinds: str) -> None:
    """Enter `spec` for operators of these kinds."""
    for kind in kinds:
        assert kind not in _SPECS, f"{kind} has two entries"
        _SPECS[kind] = spec


def spec_of(op: Op) -> OpSpec:
    """The entry of an operator; a stateless one without sharing for builtins not entered."""
    return _SPECS.get(op.kind, _PLAIN)


def has_side_effects(op: Op) -> bool:
    """Whether its order against other operators with side effects must be kept.

    So for operators with state, control flow and calls (their bodies may have state), writers
    of variables, custom operators and builtins this schema does not name.
    """
    return (
        spec_of(op).has_state
        or bool(op.graphs)
        or op.code.builtin not in operator_names()
        or operator_names()[op.code.builtin] == "CUSTOM"
        or any(t.is_variable for t in op.operands() + op.outputs)
        or not op.outputs
    )


def sharings(op: Op) -> Iterator[Sharing]:
    """Where results of `op` may lie in its operands, as far as the operator itself goes."""
    spec = spec_of(op)
    if spec.sharing is not None and spec.fits(op):
        yield from spec.sharing(op)
