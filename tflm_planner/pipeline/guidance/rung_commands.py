"""The command lines of the ladder, and the search that they ask for.

    given command - what the rung sets itself + --io, --firmware or --ops of the rung

A given command (`PlanOptions.command`) lacks --io, --firmware, --ops, --search and --force. It must
not know what the rungs reach.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from tflm_planner.pipeline.guidance.point_commands import given_command, without
from tflm_planner.pipeline.options import PlanOptions, TilePermission
from tflm_planner.tflm.allowed_operators import AllowedOperators

FIRMWARE_OPTION = "--firmware"
_BY_HAND_OPTIONS = ("--patch", "--split", "--loop")
_SEARCH_OPTIONS = ("--max-slowdown", "--objective")
"""The options of a given command that `default_search` may replace by the defaults."""


def default_search(options: PlanOptions, given: TilePermission | None) -> TilePermission:
    """What the default search may do with the firmware of `options`: what was given, but with no
    method left out, no fewer instructions allowed, and the arena made small. It equals `given` if
    that is no less than the default search."""
    default = TilePermission()
    if given is None:
        firmware = AllowedOperators.ALL if options.target.lean else AllowedOperators.NONE
        return replace(default, operators=firmware)
    return replace(
        given,
        spellings_only=False,
        method=default.method,
        max_slowdown=max(given.max_slowdown, default.max_slowdown),
        objective=default.objective,
    )


def rung_command(options: PlanOptions, source: str, *words: str) -> str:
    """The given command line with further options, for the default search."""
    given = given_command(options, source)
    if options.tiles is not None and default_search(options, options.tiles) != options.tiles:
        given = without(given, _SEARCH_OPTIONS)
        more = options.tiles.max_slowdown
        if more > TilePermission().max_slowdown:
            words = ("--max-slowdown", f"{more:g}", *words)
    return shlex.join((*given, *words))


def searching_command(options: PlanOptions, source: str) -> str:
    """The command line for the default search in place of tiles by hand."""
    by_hand = without(given_command(options, source), _BY_HAND_OPTIONS)
    kept = (word for word in by_hand if word != "--allow-inexact")
    firmware = firmware_words(options, default_search(options, None))
    return shlex.join((*kept, *words_for_ends(options), *firmware))


def same_command(options: PlanOptions, source: str, *words: str) -> str:
    """The command line that makes the same file, with further options."""
    same = (*words_for_ends(options), *_words_of_search(options))
    return shlex.join((*given_command(options, source), *same, *words))


def stream_command(options: PlanOptions, source: str) -> str:
    """The command line that splits the model for rows from a camera."""
    words = ["tflm-plan", "stream-input", source, "front.tflite", "back.tflite"]
    given = options.command
    of_firmware = given[given.index("--tflm") :][:2] if "--tflm" in given else ()
    return shlex.join([*words, "--target", options.target.word, *of_firmware])


def words_for_ends(options: PlanOptions) -> tuple[str, ...]:
    """The options that give inputs and outputs their types."""
    return () if options.io == "keep" else ("--io", options.io)


def firmware_words(options: PlanOptions, permission: TilePermission) -> tuple[str, ...]:
    """The options that grant the permission's operators and the target's library."""
    if permission.operators.every:
        return (FIRMWARE_OPTION, "lean" if options.target.lean else "more-ops")
    names = permission.operators.names
    return ("--ops", ",".join(sorted(names))) if names else ()


def _words_of_search(options: PlanOptions) -> Iterator[str]:
    """Yield the options that grant what was granted, and search as was searched."""
    permission = options.tiles
    if permission is None:
        yield from (FIRMWARE_OPTION, "lean") if options.target.lean else ()
        yield from ("--search", "none")
        return
    yield from firmware_words(options, permission)
    if permission.spellings_only or permission.method != TilePermission().method:
        yield from ("--search", "spellings" if permission.spellings_only else permission.method)
