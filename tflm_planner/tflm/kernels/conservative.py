"""Libraries that stand for others: any of the known ones, and one that nobody has read.

Their figures are the largest of all known libraries, so that an arena that is large enough for them
is large enough for each of those. This module must not know any library by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.window import Window
from tflm_planner.support.units import align_up
from tflm_planner.tflm.kernels.access_order import AccessOrder
from tflm_planner.tflm.kernels.base import KernelBuild, KernelLibrary
from tflm_planner.tflm.kernels.movement import Movement
from tflm_planner.tflm.kernels.prepare import Keeps
from tflm_planner.tflm.target import Target


class AnyKernels(KernelLibrary):
    """Any of the known libraries, in any build. `known` returns them, the reference kernels last;
    among equally large answers the first one is used."""

    name = "any"
    is_exact = False

    def __init__(self, known: Callable[[], Sequence[KernelLibrary]]) -> None:
        self._known = known

    def op_data_bytes(self, op: Op, target: Target) -> int:
        """The maximum over all libraries."""
        return max(library.op_data_bytes(op, target) for library in self._known())

    def op_data_key(self, op: Op, target: Target) -> Hashable | None:
        """None, which equals no other: its contents are not known."""
        return None

    def persistent_allocations(self, op: Op, target: Target) -> list[int]:
        """The allocations of the known library whose sum is the largest."""
        candidates = (
            library.persistent_allocations(op, variant)
            for library in self._known()
            for variant in _variants_of_same_version(library, target)
        )
        return max(candidates, key=lambda sizes: sum(map(align_up, sizes)))

    def temp_tensors(self, op: Op, target: Target) -> list[Tensor]:
        """The longest sequence of all libraries."""
        return max((library.temp_tensors(op, target) for library in self._known()), key=len)

    def kept_after_last_fetch(self, op: Op) -> Keeps | None:
        """What all libraries keep, if they keep the same; else None."""
        answers: set[Keeps | None] = {k.kept_after_last_fetch(op) for k in self._known()}
        return answers.pop() if len(answers) == 1 else None

    def scratch_requests(self, op: Op, target: Target) -> tuple[int, ...]:
        """The largest requests of all builds, then the second largest, and so on."""
        return _largest(
            library.scratch_requests(op, variant)
            for library in self._known()
            for variant in _variants(library, target)
        )

    def builds(self, target: Target) -> tuple[KernelBuild, ...]:
        """The builds of all known libraries."""
        return self.all_builds()

    def all_builds(self) -> tuple[KernelBuild, ...]:
        """The builds of all known libraries, each once."""
        return tuple(dict.fromkeys(b for library in self._known() for b in library.all_builds()))

    def variants(self, target: Target) -> tuple[Target, ...]:
        """The target alone: the variants of the known libraries are in its figures."""
        return (target,)

    def fault_of(self, op: Op, target: Target) -> str | None:
        """None: which library runs is unknown, and so are its faults."""
        return None

    def computes_single_row(self, op: Op, width: int, out: int, pad: int) -> bool:
        """Whether the kernels of all known libraries compute it right."""
        return all(k.computes_single_row(op, width, out, pad) for k in self._known())

    def adds_pixels_alike(self, op: Op) -> bool:
        """Whether the kernels of all known libraries do."""
        return all(k.adds_pixels_alike(op) for k in self._known())

    def computes_part(self, op: Op, batch: int, channels: int) -> bool:
        """Whether the kernels of all known libraries compute it right."""
        return all(k.computes_part(op, batch, channels) for k in self._known())

    def latency_profiles(self, target: Target) -> tuple[str, ...]:
        """The profiles of all known libraries."""
        names = (name for k in self._known() for name in k.latency_profiles(target))
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class _UnreadBuild(KernelBuild):
    def access_orders(self, op: Op, window: Window) -> tuple[AccessOrder, ...] | None:
        return None

    def movements_of(self, op: Op) -> Sequence[Movement]:
        return ()


UNKNOWN = _UnreadBuild("unknown")


class UnknownKernels(AnyKernels):
    """A library whose kernels nobody has read: its figures are those of `any`, but no order of
    reads and writes is trusted, so results may overlap operands only where every kernel permits
    it."""

    name = "unknown"
    is_read = False

    def builds(self, target: Target) -> tuple[KernelBuild, ...]:
        """A single build of which nothing is known."""
        return (UNKNOWN,)

    def all_builds(self) -> tuple[KernelBuild, ...]:
        """No builds: nobody has read these kernels."""
        return ()


@lru_cache(maxsize=256)
def _variants(library: KernelLibrary, target: Target) -> tuple[Target, ...]:
    return library.variants(target)


@lru_cache(maxsize=256)
def _variants_of_same_version(library: KernelLibrary, target: Target) -> tuple[Target, ...]:
    """The variants with the target's own version of TFLM and optimisation, without duplicates."""
    same = {"version": target.version, "optimized": target.optimized}
    variants = (replace(variant, **same) for variant in library.variants(target))
    return tuple(dict.fromkeys(variants))


def _largest(requests: Iterable[Sequence[int]]) -> tuple[int, ...]:
    columns = zip_longest(*(sorted(c, reverse=True) for c in requests), fillvalue=0)
    return tuple(max(column) for column in columns)
