"""Modules that are imported when something of them is first used.

numpy and the generated schema take longer to import than most arenas take to compute, and a browser
has neither. So modules that need them for some of their functions only, say so:

    if TYPE_CHECKING:
        import numpy as np
    else:
        np = defer("numpy")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Deferred:
    """Stands for a module; what was asked for once is an attribute, as fast as the module's own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(import_module(self._name), name)
        setattr(self, name, attribute)
        return attribute


def defer(name: str) -> Any:
    """The module of this name, imported on first use."""
    return _Deferred(name)
