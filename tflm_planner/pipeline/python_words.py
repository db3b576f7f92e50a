"""Errors in the words of the Python interface.

What the pipeline says when it refuses names options of the command line, most of whose users come
from there. The public functions name their own keywords in the same places:

    "... --no-verify writes it unproved"    ->    "... `verify=False` writes it unproved"

An option that no function has stays one of the command. It must not know what is refused, nor why.
"""

from __future__ import annotations

import re

KEYWORDS = {
    "--budget": "budget",
    "--end": "end",
    "--firmware": "firmware",
    "--io": "io",
    "--max-slowdown": "max_slowdown",
    "--no-verify": "verify=False",
    "--ops": "tile=Tile(operators=...)",
    "--portable": "tile=Tile(portable=True)",
    "--rows": "rows",
    "--seed": "seed",
    "--strip": "strip=True",
    "--target": "target",
    "--tflm": "target",
    "--time-limit": "time_limit",
    "--workers": "workers",
}
"""Option of the command -> what a call of the public functions has in its place. A target is of one
version of TFLM (`tflm_planner.load_target`, or a TOML file)."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def in_python_words(message: str) -> str:
    """The message with keywords in place of options."""
    return _OPTION.sub(lambda m: f"`{KEYWORDS.get(m[0], f'tflm-plan {m[0]}')}`", message)
