"""How many plans are judged in a second: by terms, and by running them on LiteRT and TFLM.

    PYTHONPATH=. python benchmarks/plan_proofs.py [--seeds 24] [--plans 768] [--files 8]
        [--rounds 3]

Random models and random WHILEs, as `tests.fuzz.by_terms --sorts plans` has them, each under so many
legal plans. Terms judge all of them; of each model so many are written to files that the runtimes
judge, on eight inputs. Both in turn, each round. Seconds are those of a processor, of this process
and all that it has started; of terms with what makes the plans, and also with what makes the model
and its first plan; of runtimes without either.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.fuzz.legal_plans import legal_placements, offsets_of, proofs_of_plans
from tests.models.generator import random_model
from tests.models.random_loops import random_loops_model
from tests.transforms.row_loops import planned
from tests.verification.terms.proofs import HOST
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.verdict import Verdict

_TICKS = os.sysconf("SC_CLK_TCK")
_OF_TIMES = slice(11, 15)
"""Fields of /proc/PID/stat behind the name: user and system ticks, own and of ended children."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Case:
    """A random model, and the file with its first plan."""

    seed: int
    data: bytes
    file: bytes

    @property
    def models(self) -> tuple[Model, Model]:
        """Both, read."""
        return read_model(self.data), read_model(self.file)


def cases(seeds: int) -> list[Case]:
    """Of the first seeds."""
    found: list[Case] = []
    for seed in range(seeds):
        own_loops = seed % 4 == 0
        data = random_loops_model(seed) if own_loops else random_model(seed, steps=1 + seed % 10)
        found.append(Case(seed, data, planned(data, seconds=5.0).data))
    return found


def judged_by_terms(made: list[Case], plans: int) -> int:
    """How many plans were proved; each of them must be equal."""
    count = 0
    for case in made:
        for proof in proofs_of_plans(*case.models, HOST, case.seed, plans):
            assert proof.status == "equal", f"seed {case.seed}: {proof.detail}"
            count += 1
    return count


def files(made: list[Case], count: int) -> Iterator[tuple[bytes, bytes]]:
    """(original, file) with some of these plans of each model."""
    for case in made:
        _, model = case.models
        carried = carried_plan(model)
        placements = list(legal_placements(model, carried or {}, HOST, case.seed, count))
        for placement in placements:
            run(model, AttachPlan(offsets_of(placement)))
            yield case.data, write_model(model)


def judged_by_runtimes(pairs: list[tuple[bytes, bytes]]) -> int:
    """How many files were run; none may differ."""
    verdicts: list[Verdict] = [verify(*pair, VerifyOptions()) for pair in pairs]
    assert not any(verdict.differs for verdict in verdicts)
    return len(verdicts)


# --- seconds of a processor ---


def _ticks(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[_OF_TIMES]))


def processor_seconds() -> float:
    """Of this process and of all that it has started, ended or not."""
    started = Path("/proc/self/task").glob("*/children")
    children = [int(child) for path in started for child in path.read_text().split()]
    return sum(map(_ticks, (os.getpid(), *children))) / _TICKS


def timed(work: Callable[[], _T]) -> tuple[_T, float, float]:
    """What comes of work; its seconds of a processor, and by the clock."""
    by_clock, by_processor = time.monotonic(), processor_seconds()
    result = work()
    return result, processor_seconds() - by_processor, time.monotonic() - by_clock


def main() -> None:
    """Print a line for each round and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--plans", type=int, default=768, help="of each model, for terms")
    parser.add_argument("--files", type=int, default=8, help="of each model, for the runtimes")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    pairs = list(files(cases(given.seeds), given.files))
    judged_by_runtimes(pairs[:2])  # starts what they are copies of
    for _ in range(given.rounds):
        made, making, _ = timed(lambda: cases(given.seeds))
        count, proving, clock = timed(lambda made=made: judged_by_terms(made, given.plans))
        runs, running, clock_of_runs = timed(lambda: judged_by_runtimes(pairs))
        whole, rate = count / (making + proving), runs / running
        print(
            f"terms: {count} plans, {proving:.2f} s of a processor ({clock:.2f} by the clock): "
            f"{count / proving:.0f} a second, {whole:.0f} with what makes the models\n"
            f"runtimes: {runs} plans, {running:.2f} s ({clock_of_runs:.2f}): {rate:.1f} a second; "
            f"terms {count / proving / rate:.0f} and {whole / rate:.0f} times as many",
            flush=True,
        )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
