"""What an operator means, as far as transforms need it: one entry per operator kind.

An operator without an entry is *unknown*: it is kept, ordered and placed, but never split and
never made to share memory, and its order relative to other unknown operators is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.schema import operator_names


@dataclass(frozen=True, slots=True)
class Sharing:
    """With every kernel library, the result is correct if `result` lies exactly `distance` bytes
    above `operand` (below, if negative) and the operand is not needed afterwards.

    `exclusive`: the result can take the memory of only one such operand (in-place ADD); otherwise
    several sharings can be used together (the parts of a CONCATENATION). `same_bytes`: both tensors
    hold the same bytes wherever they overlap, so the operand may still be needed afterwards.
    """

    operand: Tensor
    result: Tensor
    distance: int
    exclusive: bool
    same_bytes: bool = False


SharingRule = Callable[[Op], Iterator[Sharing]]


@dataclass(frozen=True, slots=True)
class OpSpec:
    """sharing: yields where results may lie in operands. It is called only for operators that have
    at least `operands` inputs (none omitted), one result unless `many_results` is set, and options
    if `needs_options` is set. has_state: the operator reads or writes something that is not among
    its tensors (resource variables), so its order relative to other such operators must be kept."""

    sharing: SharingRule | None = None
    operands: int = 1
    many_results: bool = False
    needs_options: bool = False
    has_state: bool = False

    def fits(self, op: Op) -> bool:
        """Whether `op` has the operands, results and options that the sharing rule relies on."""
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
    """Register `spec` for operators of these kinds."""
    for kind in kinds:
        assert kind not in _SPECS, f"{kind} has two entries"
        _SPECS[kind] = spec


def spec_of(op: Op) -> OpSpec:
    """The entry of an operator. A kind without an entry gets a stateless one without sharing."""
    return _SPECS.get(op.kind, _PLAIN)


def has_side_effects(op: Op) -> bool:
    """Whether the order of `op` relative to other operators with side effects must be kept.

    That holds for operators with state, control flow and calls (their bodies may have state),
    writers of variables, custom operators, and builtins that this schema does not name.
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
    """Where results of `op` may lie in its operands, as far as the operator itself permits it."""
    spec = spec_of(op)
    if spec.sharing is not None and spec.fits(op):
        yield from spec.sharing(op)
