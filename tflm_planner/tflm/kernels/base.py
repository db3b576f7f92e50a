"""The interface of a kernel library: what the rest of the tool asks, implemented once for each.

    target.kernels --library_of--> KernelLibrary --builds--> KernelBuild

A library knows which memory its kernels take (OpData, persistent and temporary memory, scratch),
which operators they compute wrongly, and which measured kernels stand for their speed. A build is
the library as compiled for one kind of core: it knows in which order its kernels read and write.
`reference.ReferenceKernels` answers everything for TFLM's own kernels; other libraries inherit
from it and override only what differs (docs/kernel-libraries.md). This module must not know any
library.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.window import WINDOWS, Window
from tflm_planner.tflm.kernels.access_order import AccessOrder
from tflm_planner.tflm.kernels.movement import Movement
from tflm_planner.tflm.kernels.parts import part_of
from tflm_planner.tflm.kernels.prepare import Keeps, PersistentAllocation, PrepareStep
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.versions import Behaviour


@dataclass(frozen=True, slots=True)
class KernelBuild(ABC):
    """A kernel library as compiled for one kind of core. Builds of equal names and classes are
    equal. name: for messages."""

    name: str

    @abstractmethod
    def access_orders(self, op: Op, window: Window) -> tuple[AccessOrder, ...] | None:
        """The orders that the kernel of `op` may follow (more than one if the compiler decides);
        None if its order is not known. `window` is the window that the kernel slides."""

    @abstractmethod
    def movements_of(self, op: Op) -> Sequence[Movement]:
        """How the kernel of `op` moves the data of each operand; empty for other operators and
        unknown orders."""


class TransposeLimit(NamedTuple):
    """axes: of int8 tensors that the TRANSPOSE of a library turns. library: its title."""

    axes: int
    library: str


class KernelLibrary(ABC):
    """The kernels that a target runs. Methods that take an operator are called only for operators
    that TFLM registers and whose parameters can be read."""

    name: str
    """Its name in target files."""
    title: str = ""
    """What people call it."""
    chips: ClassVar[str] = ""
    """The family of chips (of tflm/data/chips.toml) that alone runs it: each of them is a target
    with it, and `any` and `unknown` do not stand for it. Empty where other cores run it too."""
    id_on_chips: ClassVar[str] = ""
    """What ids of those targets call it, if not by its name."""
    is_exact: ClassVar[bool] = True
    """Whether its figures are those of kernels that were read; if not, they are upper bounds."""
    is_read: ClassVar[bool] = True
    """Whether its kernels were read at all; if not, a board may need more than any bound."""
    can_be_lean: ClassVar[bool] = True
    """Whether it is known which of its parameters would stay in RAM with the lean library."""
    most_transposed_axes: ClassVar[int | None] = None
    """How many axes of int8 tensors its TRANSPOSE turns, if it leaves the result of more unwritten
    and says nothing; None where it does not."""
    channel_scales: ClassVar[Mapping[str, Behaviour]] = {}
    """Types of data of FULLY_CONNECTED -> since when weights of int8 beside them may have a scale
    for each channel; never, where a type is missing (`tflm/channel_scales`)."""
    narrow_biases: ClassVar[Mapping[str, Behaviour | None]] = {}
    """Products of int16 whose kernels read a bias of int32 -> since when; None: always. Those that
    are missing read it as int64 (`tflm/narrow_biases`)."""
    doubt: str = ""
    """Why a board may need more than its figures; empty if they hold."""

    # --- memory -----------------------------------------------------------------------------

    @abstractmethod
    def op_data_bytes(self, op: Op, target: Target) -> int:
        """Bytes of OpData, allocated in Init; 0 if there is none."""

    @abstractmethod
    def op_data_key(self, op: Op, target: Target) -> Hashable | None:
        """What OpData of a FULLY_CONNECTED is computed from, besides types, quantisation and
        activation: lean firmware keeps equal OpData only once. None if it never equals another's,
        because it refers to memory of its own."""

    @abstractmethod
    def persistent_allocations(self, op: Op, target: Target) -> list[int]:
        """Bytes of each persistent allocation of Prepare, in order."""

    @abstractmethod
    def temp_tensors(self, op: Op, target: Target) -> list[Tensor]:
        """The tensors that Prepare fetches, in order; a tensor fetched twice appears twice."""

    @abstractmethod
    def kept_after_last_fetch(self, op: Op) -> Keeps | None:
        """If Prepare allocates after its last fetch: which part of the last tensor it still uses
        then. None if it does not, which is always a safe answer."""

    @abstractmethod
    def scratch_requests(self, op: Op, target: Target) -> tuple[int, ...]:
        """Bytes of each scratch request, in order, empty ones included."""

    def part_scratch(self, op: Op, target: Target, axis: int, size: int) -> tuple[int, ...] | None:
        """`scratch_requests` for a part of `op` that computes `size` elements of its result along
        an axis. None if parts request as much as the whole: so do bands of an image over which a
        window slides, because their scratch is mainly columns under the window."""
        is_band = op.kind in WINDOWS and axis in (1, 2)
        part = None if is_band else part_of(op, axis, size)
        return None if part is None else self.scratch_requests(part, target)

    def prepare_steps(self, op: Op, target: Target) -> tuple[PrepareStep, ...]:
        """What Prepare does with memory, in order."""
        fetched = self.temp_tensors(op, target)
        sizes = self.persistent_allocations(op, target) if op.inputs and op.outputs else []
        keeps = self.kept_after_last_fetch(op)
        if keeps is None:
            return (*(PersistentAllocation(size) for size in sizes), *fetched)
        in_use = 2 if op.kind == "ADD_N" else None  # it frees all further inputs at once
        return (*fetched, *(PersistentAllocation(size, keeps, in_use) for size in sizes))

    # --- builds -----------------------------------------------------------------------------

    @abstractmethod
    def builds(self, target: Target) -> tuple[KernelBuild, ...]:
        """The builds that may run on the target: a plan must respect the order of reads and writes
        of each."""

    @abstractmethod
    def all_builds(self) -> tuple[KernelBuild, ...]:
        """Every build of the library whose kernels were read, whatever the target."""

    @abstractmethod
    def variants(self, target: Target) -> tuple[Target, ...]:
        """Targets like this one, one for each build of the library that uses memory differently.
        Their largest figures bound a target on which any build may run."""

    # --- faults -----------------------------------------------------------------------------

    @abstractmethod
    def fault_of(self, op: Op, target: Target) -> str | None:
        """Why the kernel of `op` computes wrong bits even in an unplanned model, and what to do;
        None if it is right."""

    def doubt_of(self, op: Op, target: Target) -> str | None:
        """Why the scratch of `op` is not known; None if it is."""
        return None

    @abstractmethod
    def computes_single_row(self, op: Op, width: int, out: int, pad: int) -> bool:
        """Whether every build computes the right bits of `op` on an image of one row: `width`
        columns, with `pad` columns of padding before them, and `out` results. Tiles are cut
        only into rows for which it does."""

    def adds_pixels_alike(self, op: Op) -> bool:
        """Whether every build computes each pixel of the result of `op` with the same bits,
        whichever other pixels are computed with it. Only then may its pixels be computed in
        parts, or fewer of them."""
        return True

    def computes_part(self, op: Op, batch: int, channels: int) -> bool:
        """Whether every build computes a part of `op` right that has `batch` images and `channels`
        input channels, and padding only if `op` has. An operator is cut only if that is so for
        the whole of it and for each part."""
        return True

    # --- latency ----------------------------------------------------------------------------

    @abstractmethod
    def latency_profiles(self, target: Target) -> tuple[str, ...]:
        """The measured profiles (tables of cost/data/instructions.toml) that stand for the target;
        if there are several, the slowest one counts."""
