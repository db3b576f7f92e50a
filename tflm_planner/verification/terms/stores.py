"""Where values are kept while a model runs as terms.

`SeparateStore`       every tensor by itself: what a model means
`memory.ArenaStore`   every byte of the arena: what its plan makes of it
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
    """The values of tensors that are no constants. late_copies: whether loops are copied as TFLM
    copied them until July 2026 (see `tflm.control_flow`)."""

    late_copies = False

    def __init__(self, mixer: Mixer, symbols: Symbols) -> None:
        self.mixer, self.symbols = mixer, symbols

    def read(self, tensor: Tensor, op: Op | None = None) -> Values:
        """What a tensor holds as `op` reads it."""
        if tensor.is_constant:
            return self.symbols.of_constant(tensor)
        if tensor.elements == 0:
            return Values(np.zeros(tensor.shape or (), np.int8), True)
        return self._read(tensor, op)

    def holds(self, tensor: Tensor, op: Op, values: Values) -> bool:
        """Whether `op` would read just these values of a tensor that is no constant."""
        return values.is_same_as(self.read(tensor, op))

    @abstractmethod
    def _read(self, tensor: Tensor, op: Op | None) -> Values: ...

    @abstractmethod
    def write(self, tensor: Tensor, values: Values) -> None:
        """Let a tensor hold values."""

    @abstractmethod
    def copy(self, source: Tensor, destination: Tensor) -> int:
        """Copy byte by byte, as control flow does. Returns how many bytes are moved."""

    @abstractmethod
    def begin(self, op: Op) -> None:
        """An operator is about to run."""

    @abstractmethod
    def end(self, op: Op) -> None:
        """It has run."""

    @property
    @abstractmethod
    def bytes_kept(self) -> int:
        """How many bytes a snapshot copies."""

    @abstractmethod
    def snapshot(self) -> Any:
        """All that is kept, for `restore` and `merge`."""

    @abstractmethod
    def restore(self, snapshot: Any) -> None:
        """Keep what was kept then."""

    @abstractmethod
    def merge(self, choice: Residues, other: Any, results: Sequence[Tensor]) -> None:
        """Keep what depends on an element: what is kept now, or what a snapshot has."""

    def choose(self, choice: Residues, now: Values, other: Values) -> Values:
        """One of two values, as an element says; itself where both are equal."""
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
    """Every tensor by itself, as long as something may read it."""

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
        """Forget what nothing reads any more."""
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
    """The tensors that nothing reads after an operator of their graph."""
    last: dict[Op, list[Tensor]] = {}
    for graph in model.graphs:
        needed = {*graph.outputs, *graph.inputs}
        for op in reversed(graph.ops):
            used = dict.fromkeys((*op.outputs, *op.operands()))
            last[op] = [t for t in used if t not in needed]
            needed.update(used)
    return last
