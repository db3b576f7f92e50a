"""Targets and boards by name, from TOML files.

    board "nano33ble" -- target --> "cortex-m4/cmsis-nn" -- core, kernels, version --> sizes

A target decides every byte of the arena: sizes of TFLM's own structures (pointer and enum
width), which kernels run and what scratch they request. A board adds SRAM, flash and clock.
The tables are TOML files in `data`; a user's file has the same form (schema/target.schema.json).
This module must not know models or operators.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from tflm_planner.support.defaults import TARGET as DEFAULT_TARGET
from tflm_planner.support.errors import UsageError, suggest
from tflm_planner.tflm.kernels import libraries_of_chips, library_names, library_of
from tflm_planner.tflm.target import LEAN_SUFFIX, Board, Target

__all__ = [
    "DEFAULT_TARGET",
    "HOST_RUNTIME",
    "LEAN_SUFFIX",
    "Board",
    "Target",
    "all_boards",
    "all_targets",
    "boards_like",
    "kernel_twin",
    "load_target",
    "with_lean",
]

HOST_RUNTIME = "x86-64/wheel"
"""The target that stands for TFLM on this machine: the tflite-micro Python package."""
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
    if name.endswith(".toml") or _is_file(name):
        return replace(_user_target(Path(name)), file=name)
    names = [*all_targets(), *all_boards()]
    begun = [known for known in names if known.startswith(f"{name.lower()}/")]
    hint = f"did you mean {' or '.join(begun[:4])}?" if begun else None
    hint = hint or suggest(name.lower(), names, likeness=0.4)
    raise UsageError(f"target {name!r} is neither a target, nor a board, nor a TOML file; {hint}")


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # longer than any name of a file
        return False


def with_lean(target: Target) -> Target:
    """The same target with the lean library. Raises UsageError if its arena cannot be predicted."""
    if target.lean:
        return target
    if not can_be_lean(target):
        raise UsageError(
            f"target {target.id!r} cannot be lean: which parameters stay in RAM is known for "
            "CMSIS-NN and the reference kernels; name a target with one of these, or leave the "
            "lean library out: --firmware as-is"
        )
    return replace(target, id=target.id + LEAN_SUFFIX, name=f"{target.name}, lean", lean=True)


def can_be_lean(target: Target) -> bool:
    """Whether a target is not lean yet, and it is known which parameters would stay in RAM with the
    lean library."""
    library = library_of(target)
    return library.is_exact and library.can_be_lean and not (target.lean or target.recording)


def kernel_twin(target: Target) -> Target:
    """The target without its names and its board: if two targets have equal twins, a file runs on
    both in the same bytes. Only the family of the core is kept, because lean firmware depends on
    it."""
    return replace(target, id="", name="", core=target.core_family, board=None)


def boards_like(pattern: str, kernels: str = "") -> tuple[Target, ...]:
    """The built-in boards, each with its target, whose id, name, vendor or target contains or
    matches `pattern` ("" for all). kernels: use this library, as in "esp-nn-1.2.3", instead of the
    board's own; boards whose core has no such target are left out. Raises UsageError if none is
    left."""
    boards = [board for board in all_boards().values() if _is_like(board, pattern)]
    ids = {board.id: f"{board.target.partition('/')[0]}/{kernels}" for board in boards}
    targets = tuple(
        replace(all_targets()[ids[board.id] if kernels else board.target], board=board)
        for board in boards
        if not kernels or ids[board.id] in all_targets()
    )
    if targets:
        return targets
    if boards:
        raise UsageError(
            f"no such board has kernels {kernels!r}; `tflm-plan targets` lists processor cores and "
            "their kernel libraries"
        )
    vendors = sorted({board.vendor for board in all_boards().values()})
    raise UsageError(
        f"no board is like {pattern!r}; give a part of a board's id, name or target, such as "
        f"stm32 or esp32s3, or a vendor: {', '.join(vendors)}"
    )


def _is_like(board: Board, pattern: str) -> bool:
    folded = pattern.casefold()
    words = (board.id, board.name, board.vendor, board.target)
    return any(folded in word.casefold() or fnmatch(word.casefold(), folded) for word in words)


@cache
def all_targets() -> Mapping[str, Target]:
    """The built-in targets by id."""
    tables = _read_packaged_targets("targets.toml")
    listed = {k: Target(**v, id=k) for k, v in tables.items()}
    chips = _read_packaged_targets("chips.toml")
    return listed | {t.id: t for chip, table in chips.items() for t in _of_chip(chip, table)}


def _of_chip(chip: str, table: dict[str, Any]) -> Iterator[Target]:
    """The targets of a chip: one with each library that its family alone runs."""
    keys = dict(table)
    name, family = keys.pop("name"), keys.pop("family")
    for library in libraries_of_chips(family):
        yield Target(
            **keys,
            id=f"{chip}/{library.id_on_chips or library.name}",
            name=f"{name}, {library.title}",
            kernels=library.name,
        )


@cache
def all_boards() -> Mapping[str, Board]:
    """The built-in boards by id."""
    tables = _read_packaged_targets("boards.toml")
    return {k: Board(**v, id=k) for k, v in tables.items()}


def _read_packaged_targets(name: str) -> dict[str, dict[str, Any]]:
    text = resources.files("tflm_planner.tflm").joinpath("data", name).read_text("utf-8")
    (tables,) = tomllib.loads(text).values()
    return tables


def _user_target(path: Path) -> Target:
    from msgspec import UnsetType  # the built-in ones need no checks

    from tflm_planner.support.documents import parse
    from tflm_planner.tflm.target_file import TargetFile, given_keys

    file = parse(_read(path), TargetFile, str(path))
    keys = given_keys(file.target)
    base: str | None = keys.pop("base", None)
    if base is not None and base not in all_targets():
        raise UsageError(f"{path}: target.base: {base!r} is not a built-in target")
    absent = [key for key in ("id", "name", "core", "kernels") if key not in keys]
    if absent and base is None:
        raise UsageError(f"{path}: target.{absent[0]}: missing; give it, or name a base")
    kernels = keys.get("kernels")
    if kernels is not None and kernels not in library_names():
        libraries = ", ".join(library_names())
        raise UsageError(f"{path}: target.kernels: {kernels!r} is unknown; choose from {libraries}")
    target = Target(**keys) if base is None else replace(all_targets()[base], **keys)
    if isinstance(file.board, UnsetType):
        return target
    board: dict[str, Any] = {**given_keys(file.board), "target": target.id}
    return replace(target, board=Board(**board))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"target file {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"target file {path} is not TOML: {error}") from error
