"""The proof by terms: chance of an error, seconds and memory.

    PYTHONPATH=. python benchmarks/proof_seconds.py MODEL.tflite[=PLANNED.tflite]... [--runtimes]
    PYTHONPATH=. python benchmarks/proof_seconds.py --operators 1000 3000 10000

A model without a planned file beside it is planned here, without tiles. The second form proves
chains of so many operators (`benchmarks.chain`). Each file is proved in a process of its own, on
the kernels of --target, from bytes that are in memory: `seconds` is processor time of the first
proof there, with all that it imports by then loaded, and of the best of --rounds. `memory` is what
the process held at its highest, and how much of that came with the proofs. `runtimes`: what the
run on LiteRT and TFLM takes beside it, by the clock.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chain import chain
from tflm_planner.model.serde import read_model
from tflm_planner.ops.macs import macs
from tflm_planner.pipeline import api
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.terms import prove_by_terms

_HEAD = "| model | operators | million MACs | chance of error | seconds, first | best | memory |"
_RULE = "|---|--:|--:|--:|--:|--:|--:|"
_TARGET = "cortex-m4/cmsis-nn"


@dataclass(frozen=True)
class Measured:
    """One file. seconds: of each round. memory: megabytes, (at the highest, of which the proof)."""

    operators: int
    millions: float
    verdict: str
    seconds: list[float]
    memory: tuple[int, int]
    runtimes: float | None


def planned(data: bytes, target: str) -> bytes:
    """The model with a plan, and no tiles."""
    memory = api.MemoryOptions(kernels=api.kernels_of(api.load_target(target)))
    return api.plan(data, options=api.PlanOptions(memory, verify=None)).data


def measure(original: bytes, result: bytes, target: str, rounds: int, runs: bool) -> Measured:
    """In this process, which should be a fresh one."""
    kernels = api.kernels_of(api.load_target(target))
    models = read_model(original), read_model(result, dialect=True)
    before, seconds, verdict = _megabytes(), list[float](), ""
    for _ in range(rounds):
        started = time.process_time()
        proof = prove_by_terms(*models, kernels)
        seconds.append(time.process_time() - started)
        verdict = proof.detail or proof.status
        if proof.error_log2 is not None:
            verdict = f"2^{proof.error_log2:.1f}"
    memory = _megabytes(), _megabytes() - before
    started = time.perf_counter()
    if runs:
        verify(original, result, VerifyOptions())
    return Measured(
        sum(1 for _ in models[1].ops()),
        sum(map(macs, models[0].ops())) / 1e6,
        verdict,
        seconds,
        memory,
        time.perf_counter() - started if runs else None,
    )


def _megabytes() -> int:
    """What this process held at its highest, as Linux has it. (`getrusage` counts what the parent
    held when this process was started.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


def row(name: str, m: Measured) -> str:
    """A row of the table."""
    cells = [
        name, f"{m.operators:,}", f"{m.millions:,.1f}", m.verdict, f"{m.seconds[0]:.2f}",
        f"{min(m.seconds):.2f}", f"{m.memory[0]} MB (proof {m.memory[1]})",
    ]  # fmt: skip
    if m.runtimes is not None:
        cells.append(f"{m.runtimes:.2f}")
    return f"| {' | '.join(cells)} |"


def pairs(given: argparse.Namespace) -> Iterator[tuple[str, bytes, bytes]]:
    """(name, original, result) of what the command line names."""
    for words in given.models:
        original, _, result = words.partition("=")
        data = Path(original).read_bytes()
        name = Path(result or original).stem
        yield name, data, Path(result).read_bytes() if result else planned(data, given.target)
    for count in given.operators:
        data = chain(count)
        yield f"a chain of {count:,}", data, planned(data, given.target)


def main() -> int:
    """Print the table; 1 if anything was not proved equal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--operators", nargs="*", type=int, default=[])
    parser.add_argument("--target", default=_TARGET)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runtimes", action="store_true")
    given = parser.parse_args()
    print(_HEAD + (" runtimes |" if given.runtimes else ""))
    print(_RULE + ("--:|" if given.runtimes else ""))
    fresh = multiprocessing.get_context("spawn")
    failed = False
    for name, original, result in pairs(given):
        with fresh.Pool(1) as pool:
            arguments = original, result, given.target, given.rounds, given.runtimes
            measured = pool.apply(measure, arguments)
        print(row(name, measured), flush=True)
        failed = failed or not measured.verdict.startswith("2^")
    return failed


if __name__ == "__main__":
    sys.exit(main())
