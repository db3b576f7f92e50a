"""Checks the types of what the functions of the Python interface are given, so that a wrong one is
refused in words instead of failing somewhere inside, or passing for something else:

    tp.plan(model, budget=True)    ->    UsageError: `budget` is True: give bytes as an int, or ...

Ranges are checked where the values are used.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from os import PathLike
from types import NoneType
from typing import NamedTuple, cast

from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.targets import Target


class Expected(NamedTuple):
    """What a keyword takes: its types, and the same in words."""

    types: tuple[type, ...]
    words: str


_MODEL = Expected((str, PathLike, bytes), "the path of a .tflite file, or its bytes")
_FILE = Expected((str, PathLike), "a path")
_SWITCH = Expected((bool,), "True or False")
_COUNT = Expected((Integral,), "an int")
_COUNT_OR_NONE = Expected((Integral, NoneType), "an int or None")
KEYWORDS: Mapping[str, Expected] = {
    "model": _MODEL,
    "original": _MODEL,
    "result": _MODEL,
    "target": Expected(
        (str, PathLike, Target), "the id of a target or board, the path of a TOML file, or a Target"
    ),
    "budget": Expected(
        (Integral, str, NoneType), 'bytes as an int, or a size such as "256K", or None'
    ),
    "inputs": _COUNT,
    "seed": _COUNT,
    "workers": _COUNT,
    "rows": _COUNT_OR_NONE,
    "end": _COUNT_OR_NONE,
    "time_limit": Expected((Real, NoneType), "seconds as a number, or None"),
    "max_slowdown": Expected((Real,), "a number, such as 1.10"),
    "on_progress": Expected((cast("type", Callable),), "a function that takes a message"),
    "verify": _SWITCH,
    "strip": _SWITCH,
    "force": _SWITCH,
    "portable": _SWITCH,
    "path": _FILE,
    "front": _FILE,
    "back": _FILE,
    "header": Expected((*_FILE.types, NoneType), "a path or None"),
}
"""Keywords that are checked wherever they occur."""


def check_types(values: Mapping[str, object], expected: Mapping[str, Expected] = KEYWORDS) -> None:
    """Raise UsageError for the first value, by keyword, that has none of the types expected for it.
    A bool is never taken for a number, nor a number for a bool. Keywords that are not in `expected`
    are not checked."""
    for keyword, value in values.items():
        if keyword not in expected:
            continue
        types, words = expected[keyword]
        known = bool in types if isinstance(value, bool) else isinstance(value, types)
        if not known:
            raise UsageError(f"`{keyword}` is {reprlib.repr(value)}: give {words}")


def check_names(keyword: str, names: object, words: str) -> None:
    """Raise UsageError unless `names` is a collection of strings; a string is one, too."""
    shown = reprlib.repr(names)
    elements = cast("Collection[object]", names) if isinstance(names, Collection) else (None,)
    if not all(isinstance(element, str) for element in elements):
        raise UsageError(f"`{keyword}` is {shown}: give {words}")
