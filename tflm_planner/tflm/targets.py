"""Targets and boards by name, from TOML files.

    board "nano33ble" -- target --> "cortex-m4/cmsis-nn" -- core, kernels, version --> sizes

A target decides every byte of the arena: sizes of TFLM's own structures (pointer and enum
width), which kernels run and what scratch they request. A board adds SRAM, flash and clock.
The tables are TOML files in `data`; a user's file has the same form (schema/target.schema.json).
This module must not know models or operators.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, cast, get_args

from tflm_planner.support.defaults import TARGET as DEFAULT_TARGET
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.kernels import library_names, library_of
from tflm_planner.tflm.target import Board, Extension, Optimized, Target, Version

__all__ = [
    "DEFAULT_TARGET",
    "HOST_RUNTIME",
    "LEAN_SUFFIX",
    "Board",
    "Target",
    "all_boards",
    "all_targets",
    "load_target",
    "with_lean",
]

LEAN_SUFFIX = "+lean"
"""Behind a target's or board's id: with the lean library."""
HOST_RUNTIME = "x86-64/wheel"
"""The target that TFLM on this machine is: the tflite-micro Python package."""
_SHORT = {"any": "cortex-m/any"}


def load_target(name_or_path: str | Path, *, lean: bool = False) -> Target:
    """A target by its id, by the id of a board, or from a user's TOML file.

    A file has a table `target` as in data/targets.toml (with its `id`), or a key `base` in it
    that names a built-in target of which it changes some keys, and may have a table `board`.
    Any of them may be followed by "+lean", which is what `lean` says too. Raises UsageError for
    unknown ids and wrong files.
    """
    if lean or str(name_or_path).endswith(LEAN_SUFFIX):
        return with_lean(load_target(str(name_or_path).removesuffix(LEAN_SUFFIX)))
    name = _SHORT.get(str(name_or_path), str(name_or_path))
    if name in all_targets():
        return all_targets()[name]
    if name in all_boards():
        board = all_boards()[name]
        return replace(all_targets()[board.target], board=board)
    if name.endswith(".toml") or Path(name).is_file():
        return _user_target(Path(name))
    known = [*all_targets(), *all_boards()]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"known are {', '.join(known)}"
    raise UsageError(f"target {name!r} is neither a target, nor a board, nor a TOML file; {hint}")


def with_lean(target: Target) -> Target:
    """The same target with the lean library. Raises UsageError where that cannot be predicted."""
    if target.lean:
        return target
    if not can_be_lean(target):
        raise UsageError(
            f"target {target.id!r} cannot be lean: which parameters stay in RAM is known for "
            "CMSIS-NN and the reference kernels; name a target with one of these"
        )
    return replace(target, id=target.id + LEAN_SUFFIX, name=f"{target.name}, lean", lean=True)


def can_be_lean(target: Target) -> bool:
    """Whether it is known which parameters stay in RAM with the lean library, and not lean yet."""
    return library_of(target).is_exact and not (target.lean or target.recording)


@cache
def all_targets() -> Mapping[str, Target]:
    """The built-in targets by id."""
    tables = _packaged("targets.toml")
    return {k: _record(Target, v, "targets.toml", f"target.{k}", id=k) for k, v in tables.items()}


@cache
def all_boards() -> Mapping[str, Board]:
    """The built-in boards by id."""
    tables = _packaged("boards.toml")
    return {k: _record(Board, v, "boards.toml", f"board.{k}", id=k) for k, v in tables.items()}


def _packaged(name: str) -> dict[str, dict[str, Any]]:
    text = resources.files("tflm_planner.tflm").joinpath("data", name).read_text("utf-8")
    (tables,) = tomllib.loads(text).values()
    return tables


def _user_target(path: Path) -> Target:
    document = _read(path)
    _known_keys(document, {"target", "board"}, str(path), "")
    table = _table(document, "target", str(path))
    if table is None:
        raise UsageError(f"{path}: no table [target]; see schema/target.schema.json")
    base = table.pop("base", None)
    if base is None:
        target = _record(Target, table, str(path), "target")
    elif isinstance(base, str) and base in all_targets():
        inherited = {f.name: getattr(all_targets()[base], f.name) for f in fields(Target)}
        inherited.pop("board")
        target = _record(Target, {**inherited, **table}, str(path), "target")
    else:
        raise UsageError(f"{path}: target.base: {base!r} is not a built-in target")
    described = _table(document, "board", str(path))
    if described is None:
        return target
    return replace(target, board=_record(Board, described, str(path), "board", target=target.id))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"target file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"target file {path} is not TOML: {error}") from error


def _table(document: dict[str, Any], key: str, file: str) -> dict[str, Any] | None:
    found = document.get(key)
    if found is not None and not isinstance(found, dict):
        raise UsageError(f"{file}: {key}: a table is expected")
    return cast("dict[str, Any] | None", found)


def _known_keys(table: dict[str, Any], known: set[str], file: str, where: str) -> None:
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise UsageError(f"{file}: {where}{'.' if where else ''}{key}: unknown key; {hint}")


_CHOICES: dict[str, tuple[Any, ...]] = {
    "extension": get_args(Extension),
    "version": get_args(Version),
    "optimized": get_args(Optimized),
    "pointer": (4, 8),
}


def _record(kind: Any, table: dict[str, Any], file: str, where: str, **given: str) -> Any:
    """An instance of a dataclass from a TOML table, every key checked."""
    values: dict[str, Any] = {**table, **given}
    types = {f.name: str(f.type) for f in fields(kind) if f.name != "board"}
    _known_keys(values, set(types), file, where)
    for key, value in values.items():
        expected = {"int": int, "bool": bool}.get(types[key], int if key == "pointer" else str)
        if type(value) is not expected:
            raise UsageError(f"{file}: {where}.{key}: {value!r} is not of type {expected.__name__}")
        choices = library_names() if key == "kernels" else _CHOICES.get(key, (value,))
        if value not in choices:
            named = ", ".join(map(str, choices))
            raise UsageError(f"{file}: {where}.{key}: {value!r} is unknown; choose from {named}")
        if expected is int and int(value) <= 0:
            raise UsageError(f"{file}: {where}.{key}: {value} is not positive")
    for f in fields(kind):
        if f.name not in values and f.default is MISSING:
            raise UsageError(f"{file}: {where}.{f.name}: missing")
    return kind(**values)
