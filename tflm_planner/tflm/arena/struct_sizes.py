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

    builtin_allocator to resource_variable: the structures of these names. planner_buffer: bytes
    that the greedy planner needs for one buffer. dims_end: bytes of TfLiteTensor up to the end of
    `dims`.
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
        """Like `fixed`, but if persistent and other memory have separate arenas: the allocators of
        both, planner and MicroAllocator. No recording variant has two arenas."""
        return (16, 32, 44, 36) if self.pointer == 4 else (32, 56, 72, 72)


_POINTERS_OF_4_BYTES = StructSizes(
    pointer=4, fixed=(36, 44, 36), builtin_allocator=8, subgraph=8, eval_tensor=12, node=32,
    tensor=32, quantization=12, scratch_request=12, allocation_info=24, planner_buffer=40,
    resource_variables=12, resource_variable=20, dims_end=24,
)  # fmt: skip
_POINTERS_OF_8_BYTES = StructSizes(
    pointer=8, fixed=(72, 72, 72), builtin_allocator=16, subgraph=16, eval_tensor=24, node=64,
    tensor=64, quantization=24, scratch_request=16, allocation_info=32, planner_buffer=40,
    resource_variables=16, resource_variable=40, dims_end=40,
)  # fmt: skip


def struct_sizes(target: Target) -> StructSizes:
    """The structures' sizes on `target`."""
    if target.pointer == 8:
        sizes = (
            replace(_POINTERS_OF_8_BYTES, subgraph=24)
            if target.compression
            else _POINTERS_OF_8_BYTES
        )
        recorder = 272 if target.compression else 248
        return replace(sizes, fixed=(104, 72, recorder)) if target.recording else sizes
    sizes = _POINTERS_OF_4_BYTES if target.short_enums else replace(_POINTERS_OF_4_BYTES, tensor=40)
    if not target.static_memory:
        sizes = replace(sizes, node=44, tensor=64, dims_end=12)
    return sizes
