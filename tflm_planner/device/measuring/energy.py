"""Computes the energy of an inference, from a stated power or a current meter's record.

    current  ____|~~~~~|____|~~~~~|____      active: samples above the middle of idle and busy
                  busy       idle

It must not know boards.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tflm_planner.support.errors import UsageError

_SCALES = {"a": 1.0, "ma": 1e-3, "ua": 1e-6, "µa": 1e-6, "na": 1e-9}
FEWEST = 20
"""A record with fewer samples is refused."""


@dataclass(frozen=True, slots=True)
class Power:
    """The power of a board. watts: the power while the model runs. source: where the figure comes
    from, in words. measured: whether a meter measured it; otherwise it is an estimate."""

    watts: float
    source: str
    measured: bool


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of one inference. joules: power times median latency."""

    joules: float
    power: Power


def energy_of(power: Power | None, seconds: float) -> Energy | None:
    """The energy of an inference that takes `seconds` seconds; None if the power is not known."""
    return None if power is None else Energy(power.watts * seconds, power)


def stated_power(milliwatts: float, source: str) -> Power:
    """The power that a board's table or the user states. Raises UsageError unless it is
    positive."""
    if not 0 < milliwatts < 1e6:
        raise UsageError(f"a power of {milliwatts} mW ({source}); give milliwatts, e.g. 42.5")
    return Power(milliwatts / 1000, source, False)


def metered_power(path: Path, volts: float) -> Power:
    """The power while busy, from a current meter's CSV.

    The current is in the column whose name contains "current", or else in the last one. Its unit is
    in brackets in that name, as in "Current(uA)" or "current [mA]", or else amperes. Record it
    while `measure` runs; idle stretches are recognised by their lower level. Raises UsageError if
    the file cannot be read or holds too few samples.
    """
    if not 0 < volts < 100:
        raise UsageError(f"a supply of {volts} V; give the board's supply voltage, e.g. 3.3")
    amperes = sorted(_currents(path))
    if len(amperes) < FEWEST:
        raise UsageError(f"{path} has {len(amperes)} samples of current; {FEWEST} are needed")
    low, high = amperes[len(amperes) // 10], amperes[-1 - len(amperes) // 10]
    busy = [a for a in amperes if a >= (low + high) / 2]
    watts = volts * sum(busy) / len(busy)
    if watts <= 0:
        raise UsageError(f"{path}: the current is not positive; are its wires swapped?")
    return Power(watts, f"{path.name}: {len(busy)} of {len(amperes)} samples, {volts} V", True)


def _currents(path: Path) -> Iterator[float]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = next(rows, list[str]())
            column, scale = _column(header)
            for row in rows:
                if len(row) > column and row[column].strip():
                    yield float(row[column]) * scale
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or '').lower()}") from error
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{path} is no CSV of a current meter: {error}") from error


def _column(header: list[str]) -> tuple[int, float]:
    names = [name.strip().lower() for name in header]
    at = next((i for i, name in enumerate(names) if "current" in name), len(names) - 1)
    if at < 0:
        raise ValueError("it is empty")
    unit = names[at].replace("[", "(").rpartition("(")[2].rstrip(")] ")
    return at, _SCALES.get(unit, 1.0)
