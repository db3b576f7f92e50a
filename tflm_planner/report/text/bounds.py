"""Words for figures that may not be known to the byte: "at least 55,068 B", and then never "fits".

    exact       82,280 B            fits          the smallest that works
    enough      82,280 B            fits          enough for every build of these kernels
    at least    at least 82,280 B   may not fit   a board may need more
    about       about 82,280 B      may not fit   a board may need more, or less

It must not know why a figure is in doubt: `tflm.arena.uncertainty` does.
"""

from __future__ import annotations

from tflm_planner.support.units import human_size
from tflm_planner.tflm.arena.uncertainty import BoundKind, may_need_more

_MEANING: dict[BoundKind, str] = {
    "exact": "the smallest that works",
    "enough": "enough for each of these kernel libraries",
    "at least": "how much more the board needs is not known",
    "about": "the board may need more, or less",
}


def figure(size: int, bound: BoundKind) -> str:
    """A size in words, with "at least" or "about" if it is not known."""
    return f"{hedge(bound)}{size:,} B"


def long_figure(size: int, bound: BoundKind) -> str:
    """A size in words, also in KiB, with "at least" or "about" if it is not known."""
    return f"{hedge(bound)}{human_size(size)}"


def meaning(bound: BoundKind) -> str:
    """What the size of an arena with this bound means: the smallest that works, enough, or perhaps
    too little."""
    return _MEANING[bound]


def fits_words(size: int, room: int, bound: BoundKind) -> str:
    """Whether an arena fits the SRAM of a board. "fits" is said only if the size is known. room:
    bytes of SRAM."""
    if bound == "about" or (size <= room and may_need_more(bound)):
        return "not known to fit"
    return "DOES NOT FIT" if size > room else "fits"


def hedge(bound: BoundKind) -> str:
    """What stands before a figure that is not known: "at least " or "about "; else nothing."""
    return f"{bound} " if may_need_more(bound) else ""


def sign(bound: BoundKind) -> str:
    """The same as a sign, for tables."""
    return {"at least": ">=", "about": "~"}.get(bound, "")
