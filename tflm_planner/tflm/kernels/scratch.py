"""Scratch that a target's kernels request from the arena, in the order in which they request it.

Every kernel library has its rules (`KernelLibrary.scratch_requests`). This module adds the rules
common to all libraries: for operators without operands, and for unknown operators. This module must
not know where scratch is placed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache

from tflm_planner.model.ir import Op
from tflm_planner.ops.window import WINDOWS
from tflm_planner.tflm.kernels import custom_ops, library_of
from tflm_planner.tflm.kernels.base import KernelLibrary
from tflm_planner.tflm.kernels.forms import operator_form
from tflm_planner.tflm.kernels.libraries.reference import ReferenceKernels
from tflm_planner.tflm.kernels.operator_allocations import has_entry
from tflm_planner.tflm.target import Target

_REFERENCE = ReferenceKernels()
_HOST = Target(
    id="host",
    name="this machine",
    core="x86-64",
    kernels=_REFERENCE.name,
    pointer=8,
    short_enums=False,
)
ScratchModel = Callable[[Op], tuple[int, ...]]
"""Bytes of each scratch request of an operator, in order."""


def scratch_model(target: Target) -> ScratchModel:
    """The scratch of a target's kernels."""
    return _memo_of(library_of(target), target).requests_of


class _ScratchMemo:
    """A cache of the requests of a target's kernels for windows, by form (`forms`): most of the
    operators with scratch that tiles repeat are windows."""

    def __init__(self, library: KernelLibrary, target: Target) -> None:
        self._library, self._target = library, target
        self._by_form: dict[Hashable, tuple[int, ...]] = {}

    def requests_of(self, op: Op) -> tuple[int, ...]:
        """Bytes of each request of an operator."""
        if op.kind not in WINDOWS:
            return _requests(op, self._library, self._target)
        form = operator_form(op)
        requests = self._by_form.get(form)
        if requests is None:
            requests = self._by_form[form] = _requests(op, self._library, self._target)
        return requests


@lru_cache(maxsize=8)
def _memo_of(library: KernelLibrary, target: Target) -> _ScratchMemo:
    """One cache per target for all plans; only a few targets are kept."""
    return _ScratchMemo(library, target)


def scratch_requests(op: Op, target: Target) -> tuple[int, ...]:
    """Scratch requests of one operator, empty ones included."""
    return _requests(op, library_of(target), target)


def _requests(op: Op, library: KernelLibrary, target: Target) -> tuple[int, ...]:
    if not op.outputs or not op.operands():
        return ()
    return library.scratch_requests(op, target) if has_entry(op) else (assumed_scratch(op),)


def reference_scratch(op: Op) -> tuple[int, ...]:
    """Scratch of TFLM's reference kernels on this machine; empty where none is requested."""
    if not op.outputs or not op.operands() or not custom_ops.readable(op):
        return ()
    return _REFERENCE.scratch_requests(op, _HOST)


def assumed_scratch(op: Op) -> int:
    """Bytes of scratch that are assumed for an operator without an entry: a word for each element
    of its operands and results. Nothing limits what a kernel may request; TFLM's kernels with
    buffers for whole tensors (accumulators, unpacked or transposed filters) stay below this."""
    return sum(4 * t.elements for t in (*op.operands(), *op.outputs))
