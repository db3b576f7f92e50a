"""Options that would do nothing are errors: nobody is left to think that they did.

    tflm-plan in out --search none --ops PAD
    error: --ops does nothing here: it is for tiles; leave out --search none

What an option needs is said by the command that has it. It must not know commands.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import typer.core

from tflm_planner.support.errors import UsageError

_context: ContextVar[Any] = ContextVar("context", default=None)


class RecordingCommand(typer.core.TyperCommand):
    """A command that remembers what was given, and what was not, while it runs. Its help shows
    nothing behind flags, which take no value."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for parameter in self.params:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""

    def invoke(self, ctx: Any) -> Any:
        """See the class."""
        before = _context.set(ctx)
        try:
            return super().invoke(ctx)
        finally:
            _context.reset(before)


@dataclass(frozen=True, slots=True)
class Need:
    """options: what was perhaps given. met: whether they do something here. why: what they are
    for, and what to add or to leave out."""

    options: tuple[str, ...]
    met: bool
    why: str


def refuse_idle(needs: Iterable[Need]) -> None:
    """UsageError for the first option that was given and would do nothing."""
    for need in needs:
        for option in need.options:
            if not need.met and was_given(option):
                raise UsageError(f"{option} does nothing here: {need.why}")


def refuse_both(*options: str) -> None:
    """UsageError where more than one of these was given: each would undo the others."""
    given = [option for option in options if was_given(option)]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other; give one of them")


def was_given(option: str) -> bool:
    """Whether the command line says it, be it with the value that it has anyway. False outside of
    a command."""
    context = _context.get()
    if context is None:
        return False
    for parameter in context.command.params:
        if option in parameter.opts:
            source = context.get_parameter_source(parameter.name)
            return source is not None and source.name == "COMMANDLINE"
    raise AssertionError(f"this command has no option {option}")


def given_words(without: Collection[str]) -> tuple[str, ...]:
    """The arguments and options of the running command as they were given, but for some options;
    nothing outside of a command."""
    context = _context.get()
    if context is None:
        return ()
    words: list[str] = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source is None or source.name != "COMMANDLINE" or {*parameter.opts} & {*without}:
            continue
        value: Any = context.params[parameter.name]
        values: tuple[Any, ...] = tuple(value) if parameter.multiple else (value,)
        is_option = parameter.param_type_name == "option"
        for one in values:
            words += [parameter.opts[0]] * is_option
            words += [] if getattr(parameter, "is_flag", False) else [str(one)]
    return tuple(words)


def suggest(word: str, known: Collection[str]) -> str:
    """A hint behind an unknown word: what is near, or what there is."""
    near = difflib.get_close_matches(word, sorted(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(sorted(known))}"
