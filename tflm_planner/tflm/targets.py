"""What a model is planned for: processor core x kernel library x TFLM version, and boards.

    board "nano33ble" -- target --> "cortex-m4/cmsis-nn" -- core, kernels, version --> sizes

A target decides every byte of the arena: sizes of TFLM's own structures (pointer and enum
width), which kernels run and what scratch they request. A board adds SRAM, flash and clock.
The tables are TOML files beside this module; a user's file has the same form
(schema/target.schema.json). This module must not know models or operators.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast, get_args

from tflm_planner.support.errors import UsageError

Kernels = Literal["reference", "cmsis-nn", "any", "unknown"]
"""Kernel library. "any" is all of the known ones: every figure is the largest of theirs.
"unknown" takes the same figures, and trusts no library's order of reads and writes."""
Extension = Literal["none", "dsp", "mve"]
"""Vector instructions of an Arm core, which choose among CMSIS-NN's implementations."""
Version = Literal["current", "arduino-2023"]
"""TFLM: 90b983c of August 2026, or the Arduino library of 2023."""
Optimized = Literal["speed", "size"]
"""How CMSIS-NN kernels were built (KERNELS_OPTIMIZED_FOR_SPEED, TFLM's default, or _SIZE)."""

LEAN_SUFFIX = "+lean"
"""Behind a target's or board's id: with the lean library."""
CONSERVATIVE: tuple[Kernels, ...] = ("any", "unknown")
DEFAULT_TARGET = "cortex-m4/cmsis-nn"
_SHORT = {"any": "cortex-m/any"}


@dataclass(frozen=True)
class Board:
    """A board on which a target sits. sram, flash: bytes. clock: Hz. active_microwatts: power
    while a model runs, for estimates of energy; 0 where nobody stated it (no built-in board has
    one: datasheets give the core's, not the board's)."""

    id: str
    name: str
    target: str
    sram: int
    flash: int
    clock: int
    active_microwatts: int = 0


@dataclass(frozen=True)
class Target:
    """What decides the arena.

    pointer: bytes of a pointer. short_enums: enums take the smallest integer (bare-metal Arm).
    static_memory: built with TF_LITE_STATIC_MEMORY. recording: the allocator that records, as in
    the Python wheel. compression: built with USE_TFLM_COMPRESSION, as the wheel is. lean: with the
    lean library (arduino_runner/src/lean). tflm: the day of its sources, if another one than its
    version's (`history`): what operators it has. board: if a board was named.
    """

    id: str
    name: str
    core: str
    kernels: Kernels
    extension: Extension = "none"
    pointer: int = 4
    short_enums: bool = True
    version: Version = "current"
    optimized: Optimized = "speed"
    static_memory: bool = True
    recording: bool = False
    compression: bool = False
    lean: bool = False
    tflm: str = ""
    board: Board | None = None


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
    return not (target.lean or target.kernels in CONSERVATIVE or target.recording)


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
    "kernels": get_args(Kernels),
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
        if value not in _CHOICES.get(key, (value,)):
            choices = ", ".join(map(str, _CHOICES[key]))
            raise UsageError(f"{file}: {where}.{key}: {value!r} is unknown; choose from {choices}")
        if expected is int and int(value) <= 0:
            raise UsageError(f"{file}: {where}.{key}: {value} is not positive")
    for f in fields(kind):
        if f.name not in values and f.default is MISSING:
            raise UsageError(f"{file}: {where}.{f.name}: missing")
    return kind(**values)
