"""Console blocks of Markdown documents, run: what they show must be what the tool prints.

    ```console
    $ tflm-plan arena net.tflite
    net.tflite on cortex-m4/cmsis-nn (Cortex-M4, CMSIS-NN)
    ...
    ```

Lines must be equal; a line of dots stands for any lines, dots inside of a line for any text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY = "..."


@dataclass(frozen=True)
class Example:
    """A command of a document, and the lines that it is said to print."""

    words: tuple[str, ...]
    shown: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.words)

    @property
    def models(self) -> list[str]:
        """The models that it reads: those named before anything was written."""
        names = [word for word in self.words if word.endswith(".tflite")]
        return names[:1]


def examples(document: Path) -> Iterator[Example]:
    """The commands of a document's console blocks, in order."""
    for block in _BLOCK.findall(document.read_text()):
        for command in block.split("$ ")[1:]:
            first, *shown = command.rstrip("\n").split("\n")
            yield Example(tuple(shlex.split(first)), tuple(shown))


_FENCED = re.compile(r"^```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|&& |\$ )(?:\.venv/bin/)?(tflm-plan [^#&\n]*)", re.MULTILINE)


def commands(document: Path) -> Iterator[tuple[str, ...]]:
    """Every command line that a document's blocks show, run or not: the words behind tflm-plan."""
    for block in _FENCED.findall(document.read_text()):
        for line in _COMMAND.findall(block):
            yield tuple(shlex.split(line))[1:]


def first_unlike(shown: tuple[str, ...], printed: list[str]) -> str | None:
    """The first line that is shown and not printed there; None where all are."""
    at, skipping = 0, False
    for line in shown:
        if line.strip() == ANY:
            skipping = True
            continue
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split(ANY))))
        while skipping and at < len(printed) and not pattern.fullmatch(printed[at].rstrip()):
            at += 1
        if at >= len(printed) or not pattern.fullmatch(printed[at].rstrip()):
            return line
        at, skipping = at + 1, False
    return None if skipping or at == len(printed) else f"(end), where {printed[at]!r} is printed"
