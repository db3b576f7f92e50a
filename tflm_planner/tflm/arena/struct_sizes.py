"""Sizes of TFLM's own structures on a target, in bytes.

Taken with sizeof from tflite-micro 90b983c for bare-metal Arm, 32 bits with long enums, and
x86-64. This module must not know operators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.tflm.targets import Target


@dataclass(frozen=True, slots=True)
class StructSizes:
    """fixed: allocator, planner and MicroAllocator, in the order of their allocation.

    builtin_allocator to resource_variable: the structures of that name. planner_buffer: what the
    greedy planner keeps for one buffer. dims_end: bytes of TfLiteTensor up to the end of `dims`.
    """

    pointer: int
    fixed: tuple[int, int, int]
    builtin_allocator: int
    subgraph: int
    eval_tensor: int
    node: int
    tensor: int
    quantization: int
    scratch_request: int
    allocation_info: int
    planner_buffer: int
    resource_variables: int
    resource_variable: int
    dims_end: int

    @property
    def fixed_apart(self) -> tuple[int, int, int, int]:
        """Like `fixed`, where persistent and other memory have an arena each: the allocators of
        both, planner and MicroAllocator. No recording variant has two arenas."""
        return (16, 32, 44, 36) if self.pointer == 4 else (32, 56, 72, 72)


_ARM = StructSizes(4, (36, 44, 36), 8, 8, 12, 32, 32, 12, 12, 24, 40, 12, 20, 24)
_LONG = StructSizes(8, (72, 72, 72), 16, 16, 24, 64, 64, 24, 16, 32, 40, 16, 40, 40)


def struct_sizes(target: Target) -> StructSizes:
    """The structures' sizes on `target`."""
    if target.pointer == 8:
        sizes = replace(_LONG, subgraph=24) if target.compression else _LONG
        recorder = 272 if target.compression else 248
        return replace(sizes, fixed=(104, 72, recorder)) if target.recording else sizes
    sizes = _ARM if target.short_enums else replace(_ARM, tensor=40)
    if not target.static_memory:
        sizes = replace(sizes, node=44, tensor=64, dims_end=12)
    return sizes
