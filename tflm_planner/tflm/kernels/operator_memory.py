"""What an operator takes in the arena besides its tensors, as one record.

    parse    parameters      what TFLM reads from the file, packed at its own alignment
    Init     op_data         the kernel's own structure
    Prepare  fetches         TfLiteTensor structures, temporary, on top of the head
             persistent      multipliers, tables, copies of shapes, which stay
             scratch         memory for Eval, planned together with tensors

A kernel library has a table of them (`libraries.reference.operators`). This module must not know
any operator, nor addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.kernels.prepare import Keeps
from tflm_planner.tflm.target import Target

Sizes = tuple[int, int]
"""Bytes on 32 bits, on 64 bits."""
Fetches = Callable[[Op], list[Tensor]]
"""From an operator to the tensors that Prepare fetches, in order; one that is fetched twice is
there twice."""
PersistentRule = Callable[[Op, Target], list[int]]
"""From an operator to the bytes of each persistent allocation of Prepare, in order."""
ScratchRule = Callable[[Op, Target], Iterator[int]]
"""From an operator to the bytes of each scratch request, in order, empty ones included."""


class BuiltinParameters(NamedTuple):
    """The structure that TFLM parses from the file, whatever the kernel is.

    arm, long_enums, x86_64: bytes on bare-metal Arm (short enums), on 32 bits with long enums
    (Xtensa, RISC-V), on x86-64. made_of: what decides its alignment: words of 32 bits, enums and
    booleans, booleans alone, or pointers. in_2023: bytes in the Arduino library of 2023, recording:
    those of the Python package, with a pointer; where they are others.
    """

    arm: int
    long_enums: int
    x86_64: int
    made_of: Literal["words", "enums", "flags", "pointers"] = "words"
    in_2023: int | None = None
    recording: int | None = None

    def size_on(self, target: Target) -> int:
        """Bytes on a target."""
        if target.recording and self.recording is not None:
            return self.recording
        if target.is_arduino_2023 and self.in_2023 is not None:
            return self.in_2023
        if target.pointer == 8:
            return self.x86_64
        return self.arm if target.short_enums else self.long_enums

    def alignment_on(self, target: Target) -> int:
        """Bytes to whose multiple its address is rounded."""
        has_short_enums = target.short_enums and target.pointer == 4
        if self.made_of == "flags" or (self.made_of == "enums" and has_short_enums):
            return 1
        points = self.made_of == "pointers" or (target.recording and self.recording is not None)
        return 8 if points and target.pointer == 8 else 4


@dataclass(frozen=True, slots=True)
class OperatorMemory:
    """What an operator takes in the arena besides its tensors.

    parameters: None without. op_data: bytes of OpData. fetches: names of tensors, as in "i0 i1 o0"
    (see `named_tensors`), or a rule. keeps: if Prepare allocates after its last fetch, which part
    of the last tensor it still uses then; None where it fetches once more after it allocated, or is
    assumed to, which never predicts too little. decompressing: OpData of kernels that can
    decompress, and op_data_2023 of the Arduino library of 2023; where they are others.
    """

    parameters: BuiltinParameters | None = None
    op_data: Sizes = (0, 0)
    fetches: str | Fetches = ""
    keeps: Keeps | None = None
    persistent: PersistentRule | None = None
    scratch: ScratchRule | None = None
    decompressing: Sizes | None = None
    op_data_2023: Sizes | None = None

    def op_data_bytes(self, target: Target) -> int:
        """Bytes of OpData on a target, 0 without."""
        sizes = self.op_data
        if target.compression and self.decompressing is not None:
            sizes = self.decompressing
        if target.is_arduino_2023 and self.op_data_2023 is not None:
            sizes = self.op_data_2023
        return sizes[target.pointer == 8]

    def temp_tensors(self, op: Op) -> list[Tensor]:
        """The tensors that Prepare fetches, in order."""
        return (
            named_tensors(op, self.fetches) if isinstance(self.fetches, str) else self.fetches(op)
        )

    def persistent_allocations(self, op: Op, target: Target) -> list[int]:
        """Bytes of each persistent allocation of Prepare, in order.

        The operator has operands and results.
        """
        return [] if self.persistent is None else self.persistent(op, target)

    def scratch_requests(self, op: Op, target: Target) -> tuple[int, ...]:
        """Bytes of each scratch request, in order.

        The operator has operands and results, and its parameters can be read.
        """
        return () if self.scratch is None else tuple(self.scratch(op, target))


def named_tensors(op: Op, names: str) -> list[Tensor]:
    """The tensors that words such as "i0 i1 o0" name, without those that are omitted.

    iN is an input, oN an output, q0 the first output of an int8 operator.
    """
    present: list[Tensor] = []
    for word in names.split():
        index = int(word[1:])
        if word[0] == "q" and element_type(op) != "int8":
            continue
        tensors = op.inputs if word[0] == "i" else op.outputs
        tensor = tensors[index] if index < len(tensors) else None
        if tensor is not None:
            present.append(tensor)
    return present
