"""Constants of the latency model: instructions that each piece of a kernel's code takes.

    target -- profiles_of --> profiles -- data/instructions.toml --> path.type -> {count: cost}

They were fitted to instructions executed by stock TFLM on emulated cores; how well they fit, and
how they are fitted again, is in benchmarks/latency.py. Cores that were not measured take the
profile of the nearest that was, and what they predict is marked as an estimate.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from tflm_planner.cost.kinds import Family
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.target import Target

DISPATCH = "dispatch"
"""Entry for what the interpreter adds to every operator, and once to every run of a graph."""
CALL = "call"
"""Every kernel's fixed part."""


@dataclass(frozen=True)
class Profile:
    """Constants of one core and kernel library. family: which loops its kernels run. paths:
    instructions per count, by `path.type`. core: on which they were measured."""

    id: str
    family: Family
    paths: Mapping[str, Mapping[str, float]]
    core: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """Profiles that stand for a target; the dearest counts. measured: whether it is that target's
    own profile, not a relative's."""

    profiles: tuple[Profile, ...]
    measured: bool


@cache
def all_profiles() -> Mapping[str, Profile]:
    """The measured profiles by name."""
    folder = resources.files("tflm_planner.cost").joinpath("data")
    tables = tomllib.loads(folder.joinpath("instructions.toml").read_text("utf-8"))
    return {
        name: Profile(name, table.pop("family"), table, table.pop("core"))
        for name, table in tables.items()
    }


@cache
def profiles_of(target: Target) -> Choice:
    """The profiles that stand for `target`: its own, its relative's, or several for a target
    whose kernel library is any or unknown."""
    names = library_of(target).latency_profiles(target)
    current = target.version == "current" and len(names) == 1 and target.optimized == "speed"
    profiles = tuple(all_profiles()[name] for name in names)
    return Choice(profiles, measured=current and profiles[0].core == target.core)
