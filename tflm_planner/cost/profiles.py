"""Constants of the latency model: instructions that each piece of a kernel's code takes.

    target -- profiles_of --> profiles -- data/instructions.toml --> path.type -> {count: cost}

They were fitted to instructions that stock TFLM executed on emulated cores; benchmarks/latency.py
says how well they fit, and fits them again. Those of the ESP32-S3 were counted in the sources of
its kernels (data/instructions_read.toml). A core that was not measured uses the profile of the
nearest measured one. Its predictions, and those from counted sources, are marked as estimates.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from tflm_planner.cost.families import FAMILIES, KernelFamily
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.target import Target

DISPATCH = "dispatch"
"""Entry for the cost that the interpreter adds to every operator, and once to every run of a
graph."""
CALL = "call"
"""The fixed cost of a kernel's call."""


@dataclass(frozen=True)
class Profile:
    """Constants of one core and kernel library. family: which loops its kernels run. paths:
    instructions per count, by `path.type`. core: the core on which they were measured; "" if they
    were counted in sources."""

    id: str
    family: KernelFamily
    paths: Mapping[str, Mapping[str, float]]
    core: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Profiles that stand for a target; the most expensive one counts. measured: whether the
    profile is the target's own, not that of a similar one."""

    profiles: tuple[Profile, ...]
    measured: bool


@cache
def all_profiles() -> Mapping[str, Profile]:
    """The measured profiles by name."""
    return {
        name: Profile(name, FAMILIES[table.pop("family")], table, table.pop("core"))
        for name, table in _tables("instructions.toml").items()
    }


@cache
def read_profiles() -> Mapping[str, Profile]:
    """Profiles by name whose constants were counted in sources; measured ones fill the gaps."""
    profiles: dict[str, Profile] = {}
    for name, table in _tables("instructions_read.toml").items():
        family, others = FAMILIES[table.pop("family")], all_profiles()[table.pop("others")]
        profiles[name] = Profile(name, family, {**others.paths, **table})
    return profiles


def _tables(file: str) -> dict[str, Any]:
    folder = resources.files("tflm_planner.cost").joinpath("data")
    return tomllib.loads(folder.joinpath(file).read_text("utf-8"))


@cache
def profiles_of(target: Target) -> Choice:
    """The profiles that stand for `target`: its own, that of a similar one, or several if its
    kernel library is any or unknown."""
    names = library_of(target).latency_profiles(target)
    current = target.version == "current" and len(names) == 1 and target.optimized == "speed"
    known = {**all_profiles(), **read_profiles()}
    profiles = tuple(known[name] for name in names)
    return Choice(profiles, measured=current and profiles[0].core == target.core)
