"""What a caller of the Python interface permits tiles."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from tflm_planner.pipeline.interface.keyword_types import check_names, check_types
from tflm_planner.support import defaults


@dataclass(frozen=True)
class Tile:
    """Permission to compute parts of the model in tiles (and in loops, if operators for them may be
    used).

    max_slowdown: instructions allowed, relative to the model as it was given; 1.10 is 10 % more.
    operators: which operators the result may use in addition to those of the model, so that the
    firmware must register them: "own" for none, "all", or their names. None: those that `firmware`
    permits. portable: whether every TFLite runtime must be able to run the result, not only TFLM.
    objective: whether to lower the bytes of the whole arena, or of its head.

    >>> from tflm_planner import Tile, plan
    >>> fast = Tile(max_slowdown=1.0)
    >>> planned = plan("tests/models/cnn_int8.tflite", tile=fast, budget="90K", verify=False)
    >>> planned.report.fits
    True
    """

    max_slowdown: float = defaults.SLOWDOWN
    operators: Literal["own", "all"] | Collection[str] | None = None
    portable: bool = False
    objective: Literal["arena", "head"] = "arena"

    def __post_init__(self) -> None:
        check_types({"max_slowdown": self.max_slowdown, "portable": self.portable})
        if self.operators is not None:
            words = "'own', 'all', a list of operator names, or None"
            check_names("operators", self.operators, words)
