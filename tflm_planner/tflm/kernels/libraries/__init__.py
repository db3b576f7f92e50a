"""The kernel libraries that were read. Each module or package in this folder is one: it lists its
`KernelLibrary` objects in LIBRARIES, and is found here without being named anywhere.

    reference/    TFLM's own kernels, the answer to everything
    cmsis_nn/     CMSIS-NN: where it is not like the reference
    esp_nn/       ESP-NN, likewise, release by release

How to add one is in docs/kernel-libraries.md. This module must not know any library by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from tflm_planner.tflm.kernels.base import KernelLibrary


def found_libraries() -> Iterator[KernelLibrary]:
    """Every library of the modules in this folder, by the name of the module."""
    for name in sorted(module.name for module in iter_modules(__path__)):
        libraries: tuple[KernelLibrary, ...] = import_module(f"{__name__}.{name}").LIBRARIES
        yield from libraries
