"""Functions of integers, compiled to machine code by numba and cached on disk.

numba takes 0.2 to 0.3 s to import, and seconds to compile, once (`compiling`); what answers at
once (`pipeline.read_only`) must not import this module.
"""

from __future__ import annotations

import atexit
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Indices = np.ndarray[Any, np.dtype[np.uint64]]
"""Integers that are indices. numba puts no code for negative indices where they are unsigned; but
they cannot be added to signed integers, as their sum would be a float."""
int64: Any = np.int64
"""Gives literals the type of array elements; numba treats Python integers as another type."""
uint64: Any = np.uint64
"""The same for indices."""
_F = TypeVar("_F", bound=Callable[..., Any])


def without_references(options: object) -> dict[str, Any]:
    """Options that tell numba not to count references to arrays. They use `_nrt`, an option
    internal to numba; if a numba lacks it, the result is empty and the code is only slower."""
    return {"_nrt": False} if hasattr(options, "_nrt") else {}


def compiled(function: _F) -> _F:
    """`numba.njit` with the machine code kept on disk, and with the function's own type.

    Compiled functions are kept plain: loops over elements, comparisons instead of `min` and `max`,
    no slices, no sorts of numpy, one type for each argument. Each exception would cost numba a
    second or more to compile. Python's lock is released, so that Ctrl-C is handled meanwhile."""
    return _compile(function, counts_references=True)


def compiled_in_place(function: _F) -> _F:
    """`compiled` for functions that neither create nor keep an array and only work on arrays of
    their caller. Numba then counts no references to arrays, which took a quarter of a climb's
    time."""
    return _compile(function, counts_references=False)


def inlined(function: _F) -> _F:
    """`compiled_in_place` for a short function that is called often: its code is put into that of
    its callers. Each array is passed as seven words, which took a sixth of a climb's time."""
    return _compile(function, counts_references=False, forceinline=True)


def _compile(function: _F, *, counts_references: bool, **options: Any) -> _F:
    known = getattr(cast("Any", numba).core.options, "DefaultOptions", None)
    if not counts_references:
        options |= without_references(known)
    try:
        machine_code = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # neither the source's folder nor the user's cache is writable
        _keep_for_now()
        machine_code = numba.njit(cache=True, nogil=True, **options)(function)
    _drop_unreadable(function, folder_of(machine_code))
    return cast(_F, machine_code)


def _drop_unreadable(function: Callable[..., Any], folder: Path) -> None:
    """Remove cache files that other versions of the package left in the folder and that numba
    cannot read: their index names the types of arguments, and an unknown name would end the
    program."""
    stem = Path(function.__code__.co_filename).stem
    for index in folder.glob(f"{stem}.{function.__qualname__}-*.nbi"):
        try:
            with index.open("rb") as file:
                pickle.load(file)  # numba's version
                pickle.load(file)
        except (pickle.PickleError, AttributeError, ImportError, EOFError):
            with suppress(OSError):
                index.unlink()
        except OSError:
            continue


def _keep_for_now() -> None:
    """Keep machine code in a temporary folder, for this process and its children."""
    folder = tempfile.mkdtemp(prefix="tflm_planner")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
    cast("Any", numba).config.CACHE_DIR = folder


def folder_of(function: Callable[..., Any]) -> Path:
    """Where the machine code of a function is kept."""
    return Path(cast("Any", function).stats.cache_path)
