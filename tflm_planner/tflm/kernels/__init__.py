"""What TFLM's kernels do with memory: sizes of their structures, what Prepare allocates and
fetches, scratch, the order in which they read and write, and where they are known to be wrong.

    base          the interface: what the rest of the tool asks of a kernel library
    libraries/    those that were read: one folder each, found without being named
    conservative  any of the known libraries, and one that nobody has read
    contracts/    from orders of reads and writes to distances at which tensors may overlap

This module is the only place where the name in a target file becomes a library; how to add one is
in docs/kernel-libraries.md.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels.base import KernelBuild, KernelLibrary, TransposeLimit
from tflm_planner.tflm.kernels.conservative import AnyKernels, UnknownKernels
from tflm_planner.tflm.kernels.libraries import found_libraries
from tflm_planner.tflm.kernels.libraries.reference import ReferenceKernels
from tflm_planner.tflm.target import Target

__all__ = [
    "LIBRARIES",
    "KernelBuild",
    "KernelLibrary",
    "adds_pixels_alike",
    "computes_part",
    "computes_single_row",
    "known_builds",
    "known_libraries",
    "libraries_of_chips",
    "library_names",
    "library_of",
    "register",
    "transpose_limit",
]

LIBRARIES: dict[str, KernelLibrary] = {}
"""By name; `register` adds to it."""


def register(library: KernelLibrary) -> None:
    """Register a library under its name: target files may then say `kernels = "NAME"`. Raises
    ValueError if the name is taken."""
    if library.name in LIBRARIES:
        raise ValueError(f"a kernel library called {library.name!r} is registered already")
    LIBRARIES[library.name] = library


def library_of(target: Target) -> KernelLibrary:
    """The kernel library of a target."""
    return LIBRARIES[target.kernels]


def library_names() -> tuple[str, ...]:
    """The names of all libraries."""
    return tuple(LIBRARIES)


def known_libraries() -> tuple[KernelLibrary, ...]:
    """The libraries that `any` stands for: those whose kernels were read, and that more than one
    family of chips runs; the reference kernels last."""
    exact = (k for k in LIBRARIES.values() if k.is_exact and not k.chips)
    return tuple(sorted(exact, key=lambda library: library.name == ReferenceKernels.name))


def libraries_of_chips(family: str) -> tuple[KernelLibrary, ...]:
    """The libraries that a family of chips alone runs."""
    return tuple(k for k in LIBRARIES.values() if k.chips == family)


def known_builds() -> tuple[KernelBuild, ...]:
    """All builds of all known libraries: a plan that respects them runs on each."""
    return tuple(dict.fromkeys(b for library in known_libraries() for b in library.all_builds()))


def computes_single_row(op: Op, width: int, out: int, pad: int) -> bool:
    """Whether every known library computes the right bits of `op` on an image of one row (see
    `KernelLibrary.computes_single_row`)."""
    return all(k.computes_single_row(op, width, out, pad) for k in known_libraries())


def adds_pixels_alike(op: Op) -> bool:
    """Whether every known library computes each pixel of `op` with the same bits, whichever other
    pixels are computed with it (see `KernelLibrary.adds_pixels_alike`)."""
    return all(k.adds_pixels_alike(op) for k in known_libraries())


def computes_part(op: Op, batch: int, channels: int) -> bool:
    """Whether every known library computes a part of `op` right (see
    `KernelLibrary.computes_part`)."""
    return all(k.computes_part(op, batch, channels) for k in known_libraries())


def transpose_limit() -> TransposeLimit | None:
    """The strictest of all known libraries (see `KernelLibrary.most_transposed_axes`)."""
    limits = ((k.most_transposed_axes, k.title) for k in known_libraries())
    known = (TransposeLimit(axes, title) for axes, title in limits if axes is not None)
    return min(known, default=None)


for _library in found_libraries():
    register(_library)
register(AnyKernels(known_libraries))
register(UnknownKernels(known_libraries))
