"""Latencies measured on a device, instead of counted instructions.

    case measured -> its cycles
    case not measured -> constants of its kernel path: fitted, or the built-in ones scaled,
                         whichever predicts held-out shapes better

A target with such a source is a `ProfiledTarget`; all costs are then cycles of the device. MOTES
(section 4.5) keeps the same cache "based on its type and shape". It must not know devices or
databases.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import median

from tflm_planner.cost.case import Case, canonical, case_of
from tflm_planner.cost.families import KernelFamily
from tflm_planner.cost.fit import fit_path
from tflm_planner.cost.kinds import Counts
from tflm_planner.cost.moves import other
from tflm_planner.cost.profiles import CALL, DISPATCH, Profile
from tflm_planner.model.ir import Model, Op
from tflm_planner.tflm.targets import Target

FOLDS = 5
_ENOUGH = 4
"""The constants of a path with at least this many measurements may be fitted to them alone."""
Rows = Sequence[tuple[Case, float]]
Counted = Callable[[Case, KernelFamily], tuple[str, Counts]]
"""Gives the key of a case's kernel path, and how often each piece of its code runs."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Relative errors on shapes that were not used in the fit. count: their number."""

    count: int
    median: float
    most: float
    """Nine of ten errors are at most this."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The latencies of a device. hertz: cycles per second. exact: cycles of the measured cases, in
    canonical form. fitted: constants for all other cases. name: for people. target: id of the
    target that the device is."""

    name: str
    target: str
    hertz: int
    exact: Mapping[Case, float]
    fitted: Profile
    held_out: HeldOut | None

    def cycles(self, case: Case) -> float | None:
        """The measured cycles of a case; None if it was not measured."""
        return self.exact.get(canonical(case))


@dataclass(frozen=True, eq=False)
class Watch:
    """Is called with every operator whose cost is requested, to collect the shapes that a search
    would try."""

    heard: Callable[[Op], None]


@dataclass(frozen=True)
class ProfiledTarget(Target):
    """A target whose costs come from a device, or whose requests for costs are watched."""

    source: Measured | Watch | None = None


def with_source(target: Target, source: Measured | Watch) -> ProfiledTarget:
    """The target with costs from `source`."""
    fields_of_target = {f.name: getattr(target, f.name) for f in fields(Target)}
    return ProfiledTarget(**fields_of_target, source=source)


def measured_of(target: Target) -> Measured | None:
    """The device's latencies that a target carries; None if it has none."""
    source = target.source if isinstance(target, ProfiledTarget) else None
    return source if isinstance(source, Measured) else None


def fit(rows: Rows, base: Profile, counts_of: Counted) -> tuple[Profile, HeldOut | None]:
    """Constants for all paths, fitted to measured cases, and their error on held-out cases.

    Deterministic: a hash of the case chooses its fold. `base`: built-in constants of the nearest
    core.
    """
    profile = _fit(rows, base, counts_of)
    errors: list[float] = []
    if len(rows) >= FOLDS:
        for fold in range(FOLDS):
            training = [row for row in rows if _fold(row[0]) != fold]
            if training and len(training) < len(rows):
                trained = _fit(training, base, counts_of)
                errors += [_error(trained, row, counts_of) for row in rows if _fold(row[0]) == fold]
    if not errors:
        return profile, None
    errors.sort()
    return profile, HeldOut(len(errors), median(errors), errors[int(0.9 * (len(errors) - 1))])


def _fold(case: Case) -> int:
    return zlib.crc32(repr((case.kind, case.inputs, case.outputs, case.options)).encode()) % FOLDS


def _fit(rows: Rows, base: Profile, counts_of: Counted) -> Profile:
    by_path: dict[str, list[tuple[Counts, float]]] = defaultdict(list)
    ratios: dict[str, list[float]] = defaultdict(list)
    for case, cycles in rows:
        key, counts = counts_of(case, base.family)
        if key not in base.paths:  # as `model.instructions` does
            key, counts = f"other.{case.data.type}", other(case).counts
        by_path[key].append((counts, cycles))
        constants = base.paths.get(key, base.paths["other.int8"])
        ratios[key].append(cycles / max(1.0, predict(constants, counts)))
    usual = median([r for of_path in ratios.values() for r in of_path]) if ratios else 1.0
    paths: dict[str, Mapping[str, float]] = {}
    for key, table in base.paths.items():
        factor = median(ratios[key]) if key in ratios else usual
        paths[key] = _scale(table, factor)
        of_path = by_path.get(key, [])
        if len(of_path) >= _ENOUGH and _spread(of_path, fit_path) < _spread(
            of_path, lambda part, t=table: _scale(t, _ratio(part, t))
        ):
            paths[key] = fit_path(of_path)
    # The measured cycles of an operator include its dispatch.
    paths[DISPATCH] = {**_scale(base.paths[DISPATCH], usual), "operator": 0.0}
    return Profile(f"measured like {base.id}", base.family, paths)


def _spread(
    rows: Sequence[tuple[Counts, float]],
    train: Callable[[Sequence[tuple[Counts, float]]], Mapping[str, float]],
) -> float:
    """Median relative error when each row is predicted from all other rows."""
    errors: list[float] = []
    for left_out, (counts, cycles) in enumerate(rows):
        table = train([row for i, row in enumerate(rows) if i != left_out])
        errors.append(abs(predict(table, counts) / max(1.0, cycles) - 1))
    return median(errors)


def _ratio(rows: Sequence[tuple[Counts, float]], table: Mapping[str, float]) -> float:
    return median(cycles / max(1.0, predict(table, counts)) for counts, cycles in rows)


def _scale(table: Mapping[str, float], factor: float) -> dict[str, float]:
    return {name: value * factor for name, value in table.items()}


def predict(table: Mapping[str, float], counts: Counts) -> float:
    """The cost that the constants of a path predict for these counts."""
    return table.get(CALL, 0.0) + sum(
        table[name] * count for name, count in counts.items() if name in table
    )


def _error(profile: Profile, row: tuple[Case, float], counts_of: Counted) -> float:
    case, cycles = row
    key, counts = counts_of(case, profile.family)
    if key not in profile.paths:
        key, counts = f"other.{case.data.type}", other(case).counts
    table = profile.paths.get(key, profile.paths["other.int8"])
    return abs(predict(table, counts) / max(1.0, cycles) - 1)


def profile_notes(target: Target, model: Model) -> tuple[str, ...]:
    """What a report says about the latencies that a search used."""
    device = measured_of(target)
    if device is None:
        return ()
    cases = [case_of(op) for op in model.ops()]
    measured_count = sum(device.cycles(case) is not None for case in cases)
    whose = "" if device.target == target.id else f", which is {device.target or 'no known target'}"
    return (
        f"latency by the profile of {device.name}{whose}: {measured_count} of "
        f"{len(cases)} operators measured, the others by a model fitted to "
        f"{len(device.exact)} shapes{held_out_text(device.held_out)}",
    )


def held_out_text(held_out: HeldOut | None) -> str:
    """The error of the fitted model, for people."""
    if held_out is None:
        return " (too few to tell its error)"
    return (
        f" (error on shapes held out: median {100 * held_out.median:.1f} %, nine of ten within "
        f"{100 * held_out.most:.1f} %)"
    )
