"""Modules that are imported when one of their attributes is first used.

Importing numpy and the generated schema takes longer than computing most arenas, and a browser has
neither. A module that needs one of them for only some of its functions writes:

    if TYPE_CHECKING:
        import numpy as np
    else:
        np = defer("numpy")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Deferred:
    """Stands for a module. An attribute is cached after its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(import_module(self._name), name)
        setattr(self, name, attribute)
        return attribute


def defer(name: str) -> Any:
    """The module of this name, imported on first use."""
    return _Deferred(name)
