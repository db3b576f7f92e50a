"""The kernel libraries that were read, found without being named anywhere.

Each module or package in this folder lists its `KernelLibrary` objects in LIBRARIES.

    reference/    TFLM's own kernels, the answer to everything
    cmsis_nn/     CMSIS-NN: where it is not like the reference
    esp_nn/       ESP-NN, likewise, release by release

How to add one is in docs/kernel-libraries.md. This module must not know any by name.
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
