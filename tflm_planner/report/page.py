"""Renders templates of HTML pages so that no text from a model becomes markup.

Jinja2 escapes every value (`autoescape`), a missing value is an error (`StrictUndefined`), and what
is not printable is spelled out (`finalize`). Pages are self-contained: no script, nothing loaded (a
content security policy forbids both), dark and light by `prefers-color-scheme`. It must not know
what the pages show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tflm_planner.report.safe import safe_text
from tflm_planner.report.text import shorten

Kind = Literal["", "n", "op", "head", "code", "meter", "name", "command"]
"""How a cell is shown: as text, a number, an operator's type, a heading of its row, code, a bar of
so many percent, or a `Name`."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it is shown, and its full form, which appears under the pointer."""

    short: str
    long: str


@dataclass(frozen=True, slots=True)
class Column:
    """Title and kind of a column."""

    title: str
    kind: Kind = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A cell for each column; style: a class of the style sheet."""

    cells: Sequence[str | Name]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; without titles where no column has one."""

    columns: Sequence[Column]
    rows: Sequence[Row]

    @property
    def is_titled(self) -> bool:
        """Whether it has a row of titles."""
        return any(column.title for column in self.columns)


def pairs(rows: Sequence[tuple[str, str]], kind: Kind = "") -> Table:
    """Titles with what they are, a row each."""
    columns = Column("", "head"), Column("", kind)
    return Table(columns, [Row((shorten(title, 60), text)) for title, text in rows])


def render(template: str, **values: Any) -> str:
    """A page as a string; write it as UTF-8. Values that are markup already must be of type
    `Markup`."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("tflm_planner.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _printable(value: object) -> object:
    """Text with what is not printable spelled out."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return safe_text(value)
    return value
