"""The names of a model in C++ and in exported files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tflm_planner.support.errors import UsageError

_WORDS = """
alignas alignof and asm auto bool break case catch char class const constexpr continue default
delete do double else enum explicit export extern false float for friend goto if inline int long
mutable namespace new not operator or private protected public register return short signed
sizeof static struct switch template this throw true try typedef typename union unsigned using
virtual void volatile while xor
"""
_RESERVED = frozenset(_WORDS.split())


@dataclass(frozen=True, slots=True)
class CppNames:
    """A model's name in C++. snake: as in `vww_a1`. camel: as in `VwwA1`."""

    snake: str
    camel: str

    def file(self, kind: str) -> str:
        """The name of a file: `vww_a1_arena.h`."""
        return f"{self.snake}_{kind}"

    def guard(self, kind: str) -> str:
        """The macro that guards a header."""
        return f"TFLM_PLAN_{self.file(kind)}_".upper().replace(".", "_")


def cpp_names(name: str) -> CppNames:
    """Identifiers made from any name. Raises UsageError if the name has no letter and no digit."""
    words = re.findall(r"[A-Za-z0-9]+", name)
    if not words:
        raise UsageError(f"no C++ identifier can be made of {name!r}; give one with --name")
    snake = "_".join(word.lower() for word in words)
    if snake[0].isdigit() or snake in _RESERVED:
        snake = f"model_{snake}"
    return CppNames(snake, "".join(map(_capital, snake.split("_"))))


def _capital(word: str) -> str:
    """A word as a part of a CamelCase name. A word that begins with a digit gets an underscore
    instead of a capital, so that "a_1" and "a1" stay different."""
    return f"_{word}" if word[0].isdigit() else word[0].upper() + word[1:]
