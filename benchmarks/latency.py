"""How well predicted instructions match executed ones, and the fit itself.

    python benchmarks/latency.py [--truth arena.json --models FOLDER] [--leave-out] [--fit]

Measurements: latency_measured.jsonl.gz (random operators of latency_operators.py, run on stock TFLM
90b983c under QEMU 7.2 with -icount, GCC 12.2.1, release build: executed instructions, not cycles).
A fifth of them never takes part in the fit: "held out". The real models of --truth never do
either: every one of them is a model left out. --leave-out does the opposite test: constants fitted
to all real models but one (and nothing else), asked about that one. --fit writes the constants.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tflm_planner.cost.case import Case, case_of, from_row
from tflm_planner.cost.fit import fit_path
from tflm_planner.cost.model import instructions, key_of
from tflm_planner.cost.moves import other
from tflm_planner.cost.profiles import DISPATCH, Profile, all_profiles
from tflm_planner.model.serde import read_model

HERE = Path(__file__).parent
MEASURED = HERE / "latency_measured.jsonl.gz"
CONSTANTS = HERE.parent / "tflm_planner/cost/data/instructions.toml"
SHARED = HERE.parents[1] / "shared"
_WHILE = {"loop": 2620, "turn_variable": 645, "turn_byte": 1.573}
DISPATCHED: dict[str, dict[str, float]] = {
    "m4-cmsis": {"operator": 89, "graph": 82, **_WHILE},
    "m4-ref": {"operator": 89, "graph": 82, **_WHILE},
    "m3-cmsis": {
        "operator": 88,
        "graph": 82,
        "loop": 2610,
        "turn_variable": 649,
        "turn_byte": 1.665,
    },
    "m55-cmsis": {
        "operator": 92,
        "graph": 90,
        "loop": 3140,
        "turn_variable": 641,
        "turn_byte": 1.665,
    },
}
"""operator: the interpreter's loop around an operator; graph: once a run. loop, turn_variable,
turn_byte: a WHILE at its start, for every variable at every turn, for every byte copied. Read off
the totals of real models, and of five loops with and without a plan (on all four)."""
HEADER = """# Instructions per piece of kernel code: [core-library], "path.type" = {count = cost}.
# `family`: which loops the kernels run (tflm_planner/cost/families). `core`: that was measured.
#
# Source: fitted (non-negative least squares of relative errors, benchmarks/latency.py --fit) to
# instructions executed by stock TFLM 90b983c with CMSIS-NN 4ab83cc, GCC 12.2.1, kernels at -O2,
# on QEMU 7.2 (mps2-an386: m4-*; mps2-an385: m3-cmsis; mps3-an547: m55-cmsis). QEMU counts
# instructions, not cycles. What the counts mean: tflm_planner/cost/families and moves.py.
# `dispatch`: what the interpreter adds to an operator, to a run of a graph, to a turn of a WHILE.
"""

Row = tuple[Case, int]


def fit(rows: list[Row], name: str) -> Profile:
    """A profile from measurements of one target."""
    family, core = all_profiles()[name].family, all_profiles()[name].core
    by_path: dict[str, list[tuple[Mapping[str, int], int]]] = defaultdict(list)
    for case, executed in rows:
        work = family.work_of(case)
        by_path[key_of(case, work)].append((work.counts, executed))
        if work.macs == 0:
            counts = other(case).counts
            by_path[f"other.{case.data.type}"].append((counts, executed))
    paths = {key: fit_path(found) for key, found in sorted(by_path.items())}
    paths[DISPATCH] = DISPATCHED[name]
    return Profile(name, family, paths, core)


def measured(name: str) -> tuple[list[Row], list[Row]]:
    """Measurements of a target: for the fit, and held out (a fifth, by a hash of the operator)."""
    kept: list[Row] = []
    held: list[Row] = []
    for line in gzip.decompress(MEASURED.read_bytes()).decode().splitlines():
        row = json.loads(line)
        if name in row["n"]:
            chosen = held if zlib.crc32(json.dumps(row["op"]).encode()) % 5 == 0 else kept
            chosen.append((from_row(row["op"]), row["n"][name]))
    return kept, held


def real(truth: Path, models: Path) -> dict[str, dict[str, list[Row]]]:
    """Target -> model -> its operators with executed instructions."""
    files = {f.name: f for f in models.rglob("*.tflite")}
    found: dict[str, dict[str, list[Row]]] = defaultdict(dict)
    for record in json.loads(truth.read_text()):
        if "instructions" in record and record["model"] in files:
            model = read_model(files[record["model"]].read_bytes())
            cases = [case_of(op) for op in model.main.ops]
            pairs = list(zip(cases, record["instructions"], strict=True))
            found[record["target"]][record["model"]] = pairs
    return found


def predicted(case: Case, profile: Profile) -> float:
    """Instructions of the kernel alone, without the interpreter's share."""
    work = profile.family.work_of(case)
    return instructions(case, work, profile)[0] - profile.paths[DISPATCH]["operator"]


def errors(rows: Iterable[Row], profile: Profile) -> np.ndarray:
    """Relative errors, signed."""
    return np.array([predicted(c, profile) / max(1, n) - 1 for c, n in rows])


def _line(name: str, rows: list[Row], profile: Profile) -> str:
    found = np.abs(errors(rows, profile)) * 100
    total = sum(predicted(c, profile) for c, _ in rows) / sum(n for _, n in rows) * 100 - 100
    q = [float(np.quantile(found, x)) for x in (0.5, 0.9, 1.0)]
    return f"{name:34}{len(rows):6} {total:+8.2f} {q[0]:8.2f} {q[1]:8.2f} {q[2]:9.1f}"


TITLE = f"{'':34}{'ops':>6} {'total %':>8} {'median %':>8} {'90 % in':>8} {'worst %':>9}"


def report(name: str, models: Mapping[str, list[Row]], by_path: bool) -> None:
    """Print the errors of the constants in the package on one target."""
    profile = all_profiles()[name]
    kept, held = measured(name)
    print(f"\n{name}\n{TITLE}")
    print(_line("random operators, fitted", kept, profile))
    print(_line("random operators, held out", held, profile))
    if by_path:
        groups: dict[str, list[Row]] = defaultdict(list)
        for case, executed in held:
            groups[key_of(case, profile.family.work_of(case))].append((case, executed))
        for key, rows in sorted(groups.items()):
            print(_line("  " + key, rows, profile))
    for model, rows in sorted(models.items()):
        print(_line(model, rows, profile))


def leave_out(name: str, models: Mapping[str, list[Row]]) -> None:
    """Constants from all real models but one; the totals of that one."""
    print(f"\n{name}: fitted to the other real models only; error of the total")
    for model, rows in sorted(models.items()):
        rest = [row for other_model, more in models.items() if other_model != model for row in more]
        profile = fit(rest, name)
        known = [(c, n) for c, n in rows if key_of(c, profile.family.work_of(c)) in profile.paths]
        if not known:
            print(f"{model:34} no other model has its operators")
            continue
        print(_line(model, known, profile), f"{len(rows) - len(known)} operators unknown")


def write(profiles: Iterable[Profile]) -> None:
    """Write the constants."""
    lines = [HEADER]
    for profile in profiles:
        lines += [
            f"[{profile.id}]",
            f'family = "{profile.family.name}"',
            f'core = "{profile.core}"',
        ]
        for key, table in sorted(profile.paths.items()):
            inner = ", ".join(f"{n} = {v:g}" for n, v in table.items())
            lines.append(f'"{key}" = {{ {inner} }}')
        lines.append("")
    CONSTANTS.write_text("\n".join(lines), "utf-8")


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)  # noqa: E501  # fmt: skip
    parser.add_argument("--truth", type=Path, default=SHARED / "truth/arena.json")
    parser.add_argument("--models", type=Path, default=SHARED / "models")
    parser.add_argument("--leave-out", action="store_true")
    parser.add_argument("--paths", action="store_true", help="held-out errors by kernel path")
    parser.add_argument("--fit", action="store_true", help="fit again and write the constants")
    options = parser.parse_args()
    if options.fit:
        write(fit(measured(name)[0], name) for name in all_profiles() if measured(name)[0])
        all_profiles.cache_clear()
    models: dict[str, Any] = real(options.truth, options.models) if options.truth.exists() else {}
    for name in all_profiles():
        report(name, models.get(name, {}), options.paths)
        if options.leave_out and name in models:
            leave_out(name, models[name])


if __name__ == "__main__":
    main()
