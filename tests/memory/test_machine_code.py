"""Machine code that other sources of the package left on disk."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tflm_planner.memory.allocators.machine_code import compiled, folder_of


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
