"""Fuzzes the tool with damaged files: `python -m tests.fuzz.mutated_files --count 20000`.

Every file goes through every verb that needs no runtime in a child process with a limit
on memory, watched from outside. Whatever is not success or one clear `PlannerError` is a finding.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path

SECONDS = 5.0
"""Processor time that one file may take."""
WALL_SECONDS = 60.0
"""A child silent for this long is hung."""
MEMORY = 6 << 30
"""Address space of a child, in bytes; compiled code and libraries take the first of it."""
LONGEST_MESSAGE = 2000


@dataclass(frozen=True)
class Outcome:
    """What became of one file: `status` "planned", "refused" or "finding"."""

    seed: int
    made: str
    status: str
    detail: str
    seconds: float


def examine(seed: int) -> Outcome:
    """Make the file of `seed` and try everything on it."""
    from tests.fuzz.mutations import mutated

    made, data = mutated(seed)
    load_exact_search()
    started = time.process_time()
    status, detail = try_all(data)
    seconds = time.process_time() - started
    if seconds > SECONDS and status != "finding":
        status, detail = "finding", f"took {seconds:.1f} s"
    return Outcome(seed, made, status, detail, seconds)


@cache
def load_exact_search() -> None:
    """Compiling it takes seconds, once on a machine; that is not the file's doing."""
    from tflm_planner.memory.allocators import exact

    exact.warm_up()


def try_all(data: bytes) -> tuple[str, str]:
    """(status, detail) of planning the model in `data`, or of what went wrong with another verb."""
    from tflm_planner.device.cpp.export import export
    from tflm_planner.model import text as ir_text
    from tflm_planner.model.serde import read_model
    from tflm_planner.pipeline import api
    from tflm_planner.pipeline.options import MemoryOptions
    from tflm_planner.report.text.axes import axes_text
    from tflm_planner.support import defaults
    from tflm_planner.tflm.targets import load_target
    from tflm_planner.verification.terms import prove_by_terms

    memory = MemoryOptions(time_limit=1.0)
    found: list[api.PlanResult] = []

    def plan() -> None:
        found.append(api.plan(data, None, api.PlanOptions(memory, verify=None)))

    def inspect() -> None:
        model = api.inspect(data, memory.kernels).model
        ir_text.to_text(model).encode("utf-8", "surrogateescape")
        axes_text(model.main)

    def lean() -> None:
        kernels = api.kernels_of(load_target(defaults.TARGET, lean=True))
        options = MemoryOptions(time_limit=1.0, kernels=kernels)
        api.plan(data, None, api.PlanOptions(options, verify=None))

    def by_hand(region: object) -> Callable[[], object]:
        tiles = api.TilePermission(
            operators=api.AllowedOperators.ALL, by_hand=(region,), inexact=True
        )
        return lambda: api.plan(data, None, api.PlanOptions(memory, tiles, verify=None))

    others: list[Callable[[], object]] = [
        inspect,
        lean,
        *map(by_hand, _regions(data)),
        lambda: prove_by_terms(read_model(data), read_model(data)),
        lambda: api.arena(data),
        lambda: api.split_arena(data),
        lambda: api.common_arena([data, data]),
        lambda: api.problem(data, memory),
        lambda: export(data, "model", load_target(defaults.TARGET)),
        lambda: api.stream_input(data, None, api.StreamOptions(memory, verify=None)),
    ]
    outcomes = [attempt(plan), *map(attempt, others)]
    if found:
        outcomes[0] = attempt(lambda: _again(found[0]))
    for outcome in outcomes:
        if outcome[0] == "finding":
            return outcome
    return outcomes[0]


def _regions(data: bytes) -> list[object]:
    """What --patch, --split and --loop may say of a file: drawn by its bytes."""
    from tflm_planner.pipeline.planning.by_hand import parse_regions

    rng = random.Random(zlib.crc32(data))
    first = rng.choice((0, 0, 0, 1, 2))
    ops = f"{first}-{first + rng.randrange(4)}"
    axis, parts = rng.choice(("rows", "columns", "channels", "axis0", "sum")), rng.randrange(2, 5)
    halo = rng.choice(("", ",halo=blocks", ",halo=merge", ",order=backward", ",order=eager"))
    border = rng.choice(("", ",border=reverse", ",border=masked", ",border=peeled"))
    return [
        *parse_regions(f"{rng.randrange(1, 4)},{rng.randrange(1, 4)}", ()),
        *parse_regions(None, (f"{ops}:{axis}={parts}{halo}",)),
        *parse_regions(None, (), (f"{ops}:rows={rng.randrange(1, 4)}{border}",)),
    ]


def _again(result: object) -> None:
    """The planned file reads, keeps its plan, and planning it once more does no harm."""
    from tflm_planner.model.serde import read_model
    from tflm_planner.pipeline import api
    from tflm_planner.report.json.document import to_json
    from tflm_planner.report.text.report import render_report

    assert isinstance(result, api.PlanResult)
    before, after = result.report.before.head, result.report.after.head
    # A plan that was there may have been bad; and stock TFLM lays graphs that only a signature
    # offers over the main graph's outputs.
    excused = any("already carried" in note for note in result.report.notes)
    excused = excused or len({s.graph for s in read_model(result.data).signatures}) > 1
    assert after <= before or excused, f"head grew from {before} to {after}"
    to_json(result.report)
    render_report(result.report, encoding="utf-8")
    seen = api.inspect(result.data)
    assert seen.map.head == after, f"inspection says {seen.map.head}, the report {after}"
    assert not any("beyond" in note for note in seen.notes), seen.notes


def attempt(action: Callable[[], object]) -> tuple[str, str]:
    """Run one action; only PlannerErrors of one line that can be printed are allowed."""
    from tflm_planner.support.errors import PlannerError

    try:
        action()
    except PlannerError as error:
        message = str(error)
        if not message or not message.isprintable() or len(message) > LONGEST_MESSAGE:
            return "finding", f"message of {len(message)} characters: {message[:200]!r}"
        return "refused", f"{type(error).__name__}: {message}"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "tflm_planner" in f.filename] or frames
        at = f"{Path(ours[-1].filename).name}:{ours[-1].name}"
        return "finding", f"{type(error).__name__} at {at}: {str(error)[:160]}"
    return "planned", ""


# --- children ---------------------------------------------------------------------------------


def _serve(pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while True:
        seed = pipe.recv()
        if seed is None:
            return
        pipe.send(examine(seed))


class _Child:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.seed = -1
        self.since = 0.0

    def give(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.pipe.send(seed)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def watch(seeds: Iterator[int], workers: int) -> Iterator[Outcome]:
    """Outcomes of all seeds, in the order in which they come; dead and hung children count."""
    children: list[_Child] = []
    for _ in range(workers):
        seed = next(seeds, None)
        if seed is not None:
            children.append(_Child())
            children[-1].give(seed)
    while children:
        ready = set(wait([c.pipe for c in children], timeout=1.0))
        for child in list(children):
            outcome: Outcome | None = None
            if child.pipe in ready:
                try:
                    outcome = child.pipe.recv()
                except (EOFError, OSError):
                    child.process.join()
                    detail = f"the process died with exit code {child.process.exitcode}"
                    outcome = Outcome(child.seed, "", "finding", detail, 0.0)
            elif time.monotonic() - child.since > WALL_SECONDS:
                outcome = Outcome(child.seed, "", "finding", "hung", WALL_SECONDS)
            if outcome is None:
                continue
            yield outcome
            healthy = child.process.is_alive() and outcome.detail != "hung"
            if not healthy:
                child.end()
                children.remove(child)
                child = _Child()
                children.append(child)
            seed = next(seeds, None)
            if seed is None:
                child.end()
                children.remove(child)
            else:
                child.give(seed)


def command_line(seed: int) -> str | None:
    """Plan and inspect the file of `seed` by the real command; what is wrong, or None."""
    from tests.fuzz.mutations import mutated
    from tests.fuzz.shell import check_call

    made, data = mutated(seed)
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "in.tflite", Path(folder) / "out.tflite"
        path.write_bytes(data)
        wrong = check_call([str(path), str(out), "--inputs", "2", "--search", "none"], out)
        wrong = wrong or check_call(["inspect", str(path), "--text"])
        wrong = wrong or check_call(["inspect", str(path), "--json"], json_wanted=True)
        left = {p.name for p in Path(folder).iterdir()} - {"in.tflite", "out.tflite"}
    if left:
        wrong = wrong or f"left behind {left}"
    return None if wrong is None else f"seed {seed} ({made}): {wrong}"


def main() -> int:
    """Run the fuzzer; exit code 1 when there are findings."""
    import tests.fuzz.mutations  # noqa: F401 (fails here rather than in every child)

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cli", type=int, default=0, help="files through the real command too")
    arguments = parser.parse_args()
    first, count = arguments.first, arguments.count
    statuses: collections.Counter[str] = collections.Counter()
    refusals: collections.Counter[str] = collections.Counter()
    findings: dict[str, list[Outcome]] = {}
    slowest = 0.0
    started = time.monotonic()
    for outcome in watch(iter(range(first, first + count)), arguments.workers):
        statuses[outcome.status] += 1
        slowest = max(slowest, outcome.seconds)
        if outcome.status == "finding":
            key = outcome.detail.split(": ")[0]
            if key not in findings:
                print(f"FINDING seed {outcome.seed} {outcome.made}: {outcome.detail}", flush=True)
            findings.setdefault(key, []).append(outcome)
        elif outcome.status == "refused":
            refusals[" ".join(outcome.detail.split()[:4])] += 1
        if sum(statuses.values()) % 1000 == 0:
            print(dict(statuses), f"{time.monotonic() - started:.0f} s", flush=True)
    print(f"{count} files, {time.monotonic() - started:.0f} s: {dict(statuses)}")
    print(f"slowest {slowest:.2f} s of processor time")
    for reason, times in refusals.most_common(12):
        print(f"  refused {times:6d}  {reason}")
    for key, outcomes in findings.items():
        print(f"  FINDING {len(outcomes):5d}  {key}; seeds {[o.seed for o in outcomes[:8]]}")
    wrong = [w for s in range(first, first + arguments.cli) if (w := command_line(s))]
    for line in wrong:
        print("  COMMAND LINE", line)
    print(f"{arguments.cli} files through the command line: {len(wrong)} findings")
    return 1 if findings or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
