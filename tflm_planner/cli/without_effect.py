"""An option that would have no effect is an error, so that nobody believes that it had one.

    tflm-plan in out --search none --ops PAD
    error: --ops does nothing here: it is for tiles; leave out --search none

Each command declares what its options need. It must not know commands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import typer.core

from tflm_planner.support.errors import UsageError

_context: ContextVar[Any] = ContextVar("context", default=None)


class RecordingCommand(typer.core.TyperCommand):
    """A command that records, while it runs, which options were given. Its help shows no
    placeholder for a value after flags, which take none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for parameter in self.params:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""

    def invoke(self, ctx: Any) -> Any:
        """Run the command with its context recorded."""
        before = _context.set(ctx)
        try:
            return super().invoke(ctx)
        finally:
            _context.reset(before)


@dataclass(frozen=True, slots=True)
class Need:
    """A condition under which options have an effect. options: names of the options. met: whether
    the condition holds. why: what the options are for, and what to add or to leave out."""

    options: tuple[str, ...]
    met: bool
    why: str


def refuse_without_effect(needs: Iterable[Need]) -> None:
    """Raise UsageError for the first option that was given although its need is not met."""
    for need in needs:
        for option in need.options:
            if not need.met and was_given(option):
                raise UsageError(f"{option} does nothing here: {need.why}")


def refuse_both(*options: str) -> None:
    """Raise UsageError if more than one of these options was given: they exclude each other."""
    given = [option for option in options if was_given(option)]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other; give one of them")


def was_given(option: str) -> bool:
    """Whether the option is on the command line, even if its value equals the default. False
    outside of a command."""
    context = _context.get()
    if context is None:
        return False
    for parameter in context.command.params:
        if option in parameter.opts:
            source = context.get_parameter_source(parameter.name)
            return source is not None and source.name == "COMMANDLINE"
    raise AssertionError(f"this command has no option {option}")


def given_words(without: Collection[str]) -> tuple[str, ...]:
    """The arguments and options of the running command as they were given, except for the options
    in `without`. Empty outside of a command."""
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
            words += [] if getattr(parameter, "is_flag", False) else [_word(one)]
    return tuple(words)


def _word(value: object) -> str:
    """A value as somebody types it: 240 seconds, not 240.0."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)
