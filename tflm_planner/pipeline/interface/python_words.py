"""Rewrites error messages for the Python interface.

Error messages of the pipeline name options of the command line, which most users use. The public
functions replace them by their own keywords:

    "... --no-verify writes it unproved"    ->    "... `verify=False` writes it unproved"

An option without a keyword stays an option of the command. It must not know what is refused, nor
why.
"""

from __future__ import annotations

import re

KEYWORDS = {
    "--budget": "budget",
    "--end": "end",
    "--firmware": "firmware",
    "--force": "force=True",
    "--inputs": "inputs",
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
"""Option of the command -> what to write instead in a call of the public functions. The version of
TFLM is a part of a target (`tflm_planner.load_target`, or a TOML file)."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def in_python_words(message: str) -> str:
    """The message with options replaced by keywords."""
    return _OPTION.sub(lambda m: f"`{KEYWORDS.get(m[0], f'tflm-plan {m[0]}')}`", message)
