"""The decorator of everything that a caller of the Python interface calls with keywords."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import NoneType
from typing import ParamSpec, TypeVar

from tflm_planner.pipeline.interface.keyword_types import Expected, check_types
from tflm_planner.pipeline.interface.python_words import in_python_words
from tflm_planner.pipeline.interface.tile import Tile
from tflm_planner.support.errors import PlannerError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
_TILE = {"tile": Expected((Tile, NoneType), "a Tile, or None for no tiles")}


def takes_keywords(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function so that it refuses arguments of wrong types, and that its errors name
    keywords instead of command-line options."""
    parameters = signature(function)

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        given = parameters.bind(*args, **kwargs).arguments
        check_types(given)
        check_types(given, _TILE)
        try:
            return function(*args, **kwargs)
        except PlannerError as error:
            error.args = (in_python_words(str(error)),)
            raise

    return call
