"""What TFLM could do on a given day: its operators, and the behaviour that a plan may rely on.

    --tflm 2025-06  ->  day of the target  ->  has this operator? plans of several sub-graphs?

The days are listed in data/history.toml, each with its commit. Sizes of structures do not depend on
the day but on the target's `version`. This module must not know models.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from importlib import resources
from typing import Any, Literal

from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.target import Target

Behaviour = Literal[
    "int32_bias_of_cmsis_nn_conv", "int32_bias_of_rows", "plans_of_subgraphs",
    "refuses_empty_results", "refuses_scales_of_channels",
    "scales_of_channels_esp_nn", "scales_of_channels_int16", "scales_of_channels_int8",
    "shapes_of_six_axes", "skips_copies",
]  # fmt: skip
FIRST_KNOWN = date(2023, 1, 1)
"""The first day that the table covers."""


def with_tflm(target: Target, version: str) -> Target:
    """The target with TFLM of a day ("2025-06-30"), of the first day of a month ("2025-06"), or
    "current". Raises UsageError for anything else, and for days before FIRST_KNOWN."""
    with_version = replace(target, tflm=version)
    day_of(with_version)
    return with_version


def day_of(target: Target) -> date:
    """The day of the target's TFLM. Raises UsageError if a file gives something else."""
    version = target.tflm
    if not version or version == "current":
        return day_of_version(version or target.version)
    try:
        day = date.fromisoformat(f"{version}-01" if version.count("-") == 1 else version)
    except ValueError:
        raise UsageError(
            f"TFLM version {version!r} is not understood; give a month or a day of its sources, "
            "such as 2025-06, or current"
        ) from None
    if day < FIRST_KNOWN:
        raise UsageError(f"TFLM of {day} is not known; what is known begins on {FIRST_KNOWN}")
    return day


def day_of_version(version: str) -> date:
    """The day of the sources for which a version stands."""
    return _table("version")[version]


def has_operator(kind: str, target: Target) -> bool:
    """Whether the target's TFLM can register an operator that today's TFLM can register."""
    return day_of(target) >= _table("operator").get(kind, date.min)


def since(kind: str) -> date:
    """The day on which TFLM got an operator."""
    return _table("operator").get(kind, date.min)


def since_behaviour(behaviour: Behaviour) -> date:
    """The day from which TFLM behaves so."""
    return _table("behaviour")[behaviour]


def can(target: Target, behaviour: Behaviour) -> bool:
    """Whether the target's TFLM behaves so."""
    return day_of(target) >= _table("behaviour")[behaviour]


@cache
def _table(name: str) -> Mapping[str, date]:
    text = resources.files("tflm_planner.tflm").joinpath("data", "history.toml").read_text("utf-8")
    table: dict[str, dict[str, Any]] = tomllib.loads(text)[name]
    return {key: entry["since"] for key, entry in table.items()}
