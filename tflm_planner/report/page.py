"""Renders templates of HTML pages so that no text from a model becomes markup.

Jinja2 escapes every value (`autoescape`), a missing value is an error (`StrictUndefined`), and what
is not printable is spelled out (`finalize`). Pages are self-contained: nothing is loaded, and no
script runs but templates/pick.js and page.js as one, which a content security policy names by its
hash; without it all can be read too. Dark and light by `prefers-color-scheme`. It must not know
what the pages show.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tflm_planner.report.text.report import shorten
from tflm_planner.report.text.safe import safe_text

SCRIPTS = ("pick.js", "page.js")
"""What the script of a page consists of; the first is also a part of the page in web/."""

PageKind = Literal["", "n", "op", "head", "code", "meter", "name", "command", "words", "link"]
"""How a cell is shown: as text, a number, an operator's type, a heading of its row, code, a bar of
so many percent, a `Name`, a command, text that needs room, or a `PageLink`."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name as it is shown, and its full form, which appears under the pointer."""

    short: str
    long: str


@dataclass(frozen=True, slots=True)
class PageLink:
    """A name that leads to a page beside this one; to none where `page` is empty. page: the name of
    its file, quoted as URLs are."""

    name: str
    page: str


@dataclass(frozen=True, slots=True)
class Column:
    """Title and kind of a column."""

    title: str
    kind: PageKind = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A cell for each column; style: a class of the style sheet."""

    cells: Sequence[str | Name | PageLink]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; without titles where no column has one. style: classes of the style sheet; `long`
    ones can be sorted and filtered. side: of which map its rows are the operators, if of one."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    style: str = ""
    side: str = ""

    @property
    def is_titled(self) -> bool:
        """Whether it has a row of titles."""
        return any(column.title for column in self.columns)


def pairs(rows: Sequence[tuple[str, str]], kind: PageKind = "") -> Table:
    """Titles with what they are, a row each."""
    columns = Column("", "head"), Column("", kind)
    return Table(columns, [Row((shorten(title, 60), text)) for title, text in rows])


def render(template: str, **values: Any) -> str:
    """A page as a string; write it as UTF-8. Values that are markup already must be of type
    `Markup`."""
    script = _script()
    digest = b64encode(sha256(script.encode()).digest()).decode()
    more = {"script": script, "script_hash": f"sha256-{digest}"}
    return _environment().get_template(template).render(**values, **more)


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


@cache
def _script() -> Markup:
    """The script of all pages."""
    templates = files("tflm_planner.report").joinpath("templates")
    return Markup("".join(templates.joinpath(name).read_text("utf-8") for name in SCRIPTS))


def _printable(value: object) -> object:
    """Text with what is not printable spelled out."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return safe_text(value)
    return value
