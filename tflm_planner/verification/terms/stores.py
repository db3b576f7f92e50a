"""Memories that hold the values of tensors while a model runs on terms.

SeparateStore      every tensor separately: what the model means
memory.ArenaStore  every byte of the arena: what the model computes with its plan
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.ops.terms import field, mixing
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import InexpressibleError, Symbols, Values


class Store(ABC):
    """The values of tensors that are not constants. late_copies: whether loops copy tensors in the
    order that TFLM had until July 2026 (see `tflm.control_flow`)."""

    late_copies = False

    def __init__(self, mixer: Mixer, symbols: Symbols) -> None:
        self.mixer, self.symbols = mixer, symbols

    def read(self, tensor: Tensor, op: Op | None = None) -> Values:
        """The values of a tensor as `op` reads them."""
        if tensor.is_constant:
            return self.symbols.of_constant(tensor)
        if tensor.elements == 0:
            return Values(np.zeros(tensor.shape or (), np.int8), True)
        return self._read(tensor, op)

    def holds(self, tensor: Tensor, op: Op, values: Values) -> bool:
        """Whether `op` would read exactly these values from a tensor that is not a constant."""
        return values.is_same_as(self.read(tensor, op))

    @abstractmethod
    def _read(self, tensor: Tensor, op: Op | None) -> Values: ...

    @abstractmethod
    def write(self, tensor: Tensor, values: Values) -> None:
        """Write values to a tensor."""

    @abstractmethod
    def copy(self, source: Tensor, destination: Tensor) -> int:
        """Copy byte by byte, as control flow does. Returns how many bytes are moved."""

    @abstractmethod
    def begin(self, op: Op) -> None:
        """To be called before an operator runs."""

    @abstractmethod
    def end(self, op: Op) -> None:
        """To be called after an operator has run."""

    @property
    @abstractmethod
    def bytes_kept(self) -> int:
        """How many bytes a snapshot copies."""

    @abstractmethod
    def snapshot(self) -> Any:
        """A copy of all values, for `restore` and `merge`."""

    @abstractmethod
    def restore(self, snapshot: Any) -> None:
        """Go back to the values of a snapshot."""

    @abstractmethod
    def merge(self, choice: Residues, other: Any, results: Sequence[Tensor]) -> None:
        """Merge two branches: values become the current ones or those of the snapshot `other`,
        depending on the condition `choice`. results: the tensors that the branches write."""

    def choose(self, choice: Residues, now: Values, other: Values) -> Values:
        """One of two values, depending on the condition `choice`. An element that is equal in both
        stays itself."""
        if now.known and other.known and np.array_equal(now.data, other.data):
            return now
        a, b = (self.symbols.elements(v) for v in (now, other))
        shape = (LANES, *(1 for _ in a.shape[1:]))
        both = field.add(
            self.mixer.mix(a, mixing.key("if not")), self.mixer.mix(b, mixing.key("if so"))
        )
        both = field.add(both, self.mixer.mix(choice.reshape(shape), mixing.key("whether")))
        mixed = self.mixer.mix(both, mixing.key("choice"))
        return Values(np.where((a == b).all(0), a, mixed).astype(np.uint32), False)


class SeparateStore(Store):
    """Holds every tensor separately, as long as an operator may read it."""

    def __init__(self, model: Model, mixer: Mixer, symbols: Symbols) -> None:
        super().__init__(mixer, symbols)
        self._held: dict[Tensor, Values] = {}
        self._last = _last_uses(model)

    def _read(self, tensor: Tensor, op: Op | None) -> Values:
        if tensor not in self._held:
            raise InexpressibleError(f"{tensor.name!r} is read before anything writes it")
        return self._held[tensor]

    def write(self, tensor: Tensor, values: Values) -> None:
        """See `Store`."""
        self._held[tensor] = values.reshape(tensor.shape or ())

    def copy(self, source: Tensor, destination: Tensor) -> int:
        """See `Store`. Values are shared."""
        self.write(destination, self.read(source))
        return 0

    def begin(self, op: Op) -> None:
        """Nothing to do."""

    def end(self, op: Op) -> None:
        """See `Store`. Drops tensors that are not read any more."""
        for tensor in self._last.get(op, ()):
            self._held.pop(tensor, None)

    @property
    def bytes_kept(self) -> int:
        """See `Store`. Values are shared."""
        return 0

    def snapshot(self) -> dict[Tensor, Values]:
        """See `Store`."""
        return dict(self._held)

    def restore(self, snapshot: dict[Tensor, Values]) -> None:
        """See `Store`."""
        self._held = dict(snapshot)

    def merge(
        self, choice: Residues, other: Mapping[Tensor, Values], results: Sequence[Tensor]
    ) -> None:
        """See `Store`."""
        for tensor in results:
            self._held[tensor] = self.choose(choice, self._held[tensor], other[tensor])


def _last_uses(model: Model) -> dict[Op, list[Tensor]]:
    """For each operator, the tensors that are not used after it in their graph."""
    last: dict[Op, list[Tensor]] = {}
    for graph in model.graphs:
        needed = {*graph.outputs, *graph.inputs}
        for op in reversed(graph.ops):
            used = dict.fromkeys((*op.outputs, *op.operands()))
            last[op] = [t for t in used if t not in needed]
            needed.update(used)
    return last
