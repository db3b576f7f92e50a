"""Machine code: what other sources of the package left on disk, and options that numba knows."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numba
import pytest

from tflm_planner.memory.allocators.machine_code import (
    compiled,
    folder_of,
    without_references,
)


def test_an_index_that_names_what_is_gone_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba reads the index before it looks whether the source is another one."""
    (tmp_path / "doubling.py").write_text("def twice(a):\n    return a + a\n")
    monkeypatch.syspath_prepend(tmp_path)
    twice = import_module("doubling").twice
    first = compiled(twice)
    assert first(21) == 42
    (index,) = folder_of(first).glob("doubling.twice-*.nbi")
    with index.open("rb") as file:
        version = pickle.load(file)
    index.write_bytes(pickle.dumps(version) + b"ctflm_planner.memory.problem\nGone\n.")
    assert compiled(twice)(21) == 42
    del sys.modules["doubling"]


def test_a_numba_without_the_option_is_told_nothing() -> None:
    known: Any = cast(Any, numba).core.options.DefaultOptions
    assert without_references(known) == {"_nrt": False}, "of the numba that is here"
    assert without_references(object()) == without_references(None) == {}
