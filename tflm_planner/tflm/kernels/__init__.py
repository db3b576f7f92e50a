"""What TFLM's kernels do with memory: sizes of their structures, what Prepare allocates and
fetches, scratch, the order in which they read and write, and where they are known to be wrong.

    base          the interface: what the rest of the tool asks of a kernel library
    reference/    TFLM's own kernels, the default for every question
    cmsis_nn/     CMSIS-NN: only where it differs from the reference
    esp_nn/       ESP-NN, likewise, release by release
    conservative  any of the known libraries, and one that nobody has read
    contracts/    from orders of reads and writes to distances at which tensors may overlap

This module is the only place where the name in a target file becomes a library; how to add one is
in docs/kernel-libraries.md.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels.base import KernelBuild, KernelLibrary
from tflm_planner.tflm.kernels.cmsis_nn import CmsisNn
from tflm_planner.tflm.kernels.conservative import AnyKernels, UnknownKernels
from tflm_planner.tflm.kernels.esp_nn import PLAIN as PLAIN_ESP_NN
from tflm_planner.tflm.kernels.esp_nn import libraries as esp_nn_libraries
from tflm_planner.tflm.kernels.reference import ReferenceKernels
from tflm_planner.tflm.target import Target

__all__ = [
    "LIBRARIES",
    "KernelBuild",
    "KernelLibrary",
    "computes_single_row",
    "known_builds",
    "known_libraries",
    "library_names",
    "library_of",
    "register",
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
    exact = (k for k in LIBRARIES.values() if k.is_exact and k.counts_as_any)
    return tuple(sorted(exact, key=lambda library: library.name == ReferenceKernels.name))


def known_builds() -> tuple[KernelBuild, ...]:
    """All builds of all known libraries: a plan that respects them runs on each."""
    return tuple(dict.fromkeys(b for library in known_libraries() for b in library.all_builds()))


def computes_single_row(op: Op, width: int, out: int, pad: int) -> bool:
    """Whether every known library computes the right bits of `op` on an image of one row (see
    `KernelLibrary.computes_single_row`)."""
    return all(k.computes_single_row(op, width, out, pad) for k in known_libraries())


register(ReferenceKernels())
register(CmsisNn())
register(AnyKernels(known_libraries))
register(UnknownKernels(known_libraries))
for _library in (PLAIN_ESP_NN, *esp_nn_libraries()):
    register(_library)
