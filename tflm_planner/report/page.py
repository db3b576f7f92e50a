"""Renders templates of HTML pages such that no text from a model becomes markup.

Jinja2 escapes every value (`autoescape`), a missing value is an error (`StrictUndefined`), and
characters that are not printable are escaped (`finalize`). Pages are self-contained: they load
nothing. Their only script is templates/pick.js and page.js in one, which a content security policy
allows by its hash; pages can also be read without it. Pages are dark or light by
`prefers-color-scheme`. It must not know what the pages show.
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

from tflm_planner.report.text.safe import safe_text
from tflm_planner.report.text.words import shorten

SCRIPTS = ("pick.js", "page.js")
"""The parts of a page's script. The first is also used by the page in web/."""

PageKind = Literal["", "n", "op", "head", "code", "meter", "name", "command", "words", "link"]
"""How a cell is shown: as text, a number (n), an operator's type, a heading of its row, code, a bar
(meter, in percent), a `Name`, a command, long text (words), or a `PageLink`."""


@dataclass(frozen=True, slots=True)
class Name:
    """A shortened name, and the full name, which appears under the pointer."""

    short: str
    long: str


@dataclass(frozen=True, slots=True)
class PageLink:
    """A name with a link to a page in the same folder. page: the name of its file, quoted for a
    URL; empty for no link."""

    name: str
    page: str


@dataclass(frozen=True, slots=True)
class Column:
    """Title and kind of a column."""

    title: str
    kind: PageKind = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, with a cell for each column. style: a class of the style sheet."""

    cells: Sequence[str | Name | PageLink]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. It has a row of titles if any column has a title. style: classes of the style sheet;
    a `long` table can be sorted and filtered. side: the map ("before" or "after") whose operators
    are the rows; else empty."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    style: str = ""
    side: str = ""

    @property
    def is_titled(self) -> bool:
        """Whether it has a row of titles."""
        return any(column.title for column in self.columns)


def pairs(rows: Sequence[tuple[str, str]], kind: PageKind = "") -> Table:
    """A table with a title and a text in each row."""
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
    """The script that all pages have."""
    templates = files("tflm_planner.report").joinpath("templates")
    return Markup("".join(templates.joinpath(name).read_text("utf-8") for name in SCRIPTS))


def _printable(value: object) -> object:
    """Text with characters that are not printable escaped; other values unchanged."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return safe_text(value)
    return value
