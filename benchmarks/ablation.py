"""What each tuning constant of the search buys: halved, doubled and off, on several networks.

    python benchmarks/ablation.py MODELS... --results FILE [--only FIELDS]
    python benchmarks/ablation.py --results FILE --table          # of the results that there are

Every row is a search with one field of `SearchBudget` changed, beside the search as it is:

    arena      of the best tiling, by the plan that the search made; nothing is run on a runtime
    front      bytes of the best tiling within a slowdown, on average over those that are allowed
    operators  that evaluations planned, as budgets count them, but without what another interval
               with an equal evaluation made unnecessary
    seconds    of processor time, in one process

Searches of one network ask for mostly the same evaluations. Each is made once; another search that
asks for it is charged the seconds that it took. So a row costs little, and its seconds do not
depend on how busy the machine was meanwhile. A field that the default search of a network never
reads is left out for that network. FILE (one JSON object a line) is continued where it ends.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any
from unittest import mock

from tflm_planner.memory.allocators import compiling
from tflm_planner.support.errors import PlannerError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.tiling import anticipation, permissions
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.evaluate.evaluator import Evaluator, RequestFamily
from tflm_planner.tiling.evaluate.job_queue import Job
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segments import added_work
from tflm_planner.tiling.tilings import TilingResult, best_tiling, mean_bytes

TARGET = "cortex-m4/cmsis-nn"
MODES = ("tiles", "loops")
"""Without new operators; with all."""
Change = tuple[str, str]
"""A field, and what it is changed to."""
AS_IT_IS: Change = ("", "as it is")
NEVER = 1 << 40

OFF: dict[str, dict[str, Any]] = {
    "branches": {"no branches": 0},
    "patch_stages": {"no patch stages": 0},
    "backward_part_counts": {"no backward tiles": ()},
    "unbound_retries": {"no retries": 0},
    "neighboured_models": {"no neighbours": 0},
    "hotspot_orders": {"no hotspots": 0},
    "spelled_models": {"tiled models as they are": 0},
    "finalists": {"no careful planning": 0},
    "large_model": {"every model is small": NEVER, "every model is large": 0},
    "segmentation_share": {"0": 0.0, "1": 1.0},
    "several_orders_model": {"one order": 0},
    "variants_segment": {"one way": 0},
    "segmentations_without_gain": {"never": NEVER},
    "hotspot_finer_tiles": {"none": NEVER},
    "resizing_work": {"parts as they are": 0},
    "promising_change": {"all in both orders": 1},
    "anticipating_operators": {"no second search": NEVER},
}  # fmt: skip
"""Field -> what it is called -> the value that turns a step off, or a rule."""
LETTERS = {
    "ds_cnn": "S", "squeezenet_11": "Q", "mcunet_in3_176": "U", "mobilenet_v2_035_144": "L",
    "mobilenet_v2_100_224": "G",
}  # fmt: skip
"""Network -> its letter, where that is not the first of its name."""
NOT_SHOWN = frozenset({"jobs_before_processes", "child_poll_seconds", "same_firmware_time_share"})
"""Fields that change nothing in one process without a time limit."""


def variants(name: str, value: Any) -> dict[str, Any]:
    """What a field is changed to, by names for the table."""
    changed: dict[str, Any] = {}
    if isinstance(value, tuple):
        changed = _of_tuple(value)
    elif isinstance(value, float):
        limit = 1.0 if value < 1 else math.inf
        changed = {"halved": value / 2, "doubled": min(value * 2, limit)}
    else:
        changed = {"halved": value // 2, "doubled": value * 2}
    changed |= OFF.get(name, {})
    return {text: new for text, new in changed.items() if new != value}


def _of_tuple(value: tuple[Any, ...]) -> dict[str, Any]:
    """Shares of modes are halved and doubled, but for the last, which is 1; of counts to try some
    are left out."""
    if isinstance(value[-1], tuple) and isinstance(value[-1][-1], float):
        return {
            text: tuple((*(min(factor * v, 1.0) for v in s[:-1]), *s[-1:]) for s in value)
            for text, factor in (("halved", 0.5), ("doubled", 2.0))
        }
    half = len(value) // 2 or 1
    return {
        "every second": value[::2],
        "first half": value[:half],
        "second half": value[half:],
    }


@dataclass
class Memory:
    """What searches of one network worked out, with the seconds that it took."""

    known: dict[Hashable, tuple[Any, float]] = field(default_factory=dict[Hashable, Any])
    plain_seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Of the default search, by modes."""
    charged: float = 0.0
    """Seconds of what this search did not work out again."""
    operators: int = 0
    """Operators that the evaluations of this search planned."""

    def recall(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What is known for this key; worked out where nothing is."""
        if key in self.known:
            result, seconds = self.known[key]
            self.charged += seconds
            return result
        started = time.process_time()
        result = make()
        self.known[key] = result, time.process_time() - started
        return result


class RecallingWorkers(Workers):
    """Workers that share what they work out with other searches of the same network, where these
    plan the same operators with the same overlaps."""

    def __init__(self, data: bytes, options: TilingOptions, memory: Memory) -> None:
        super().__init__(data, options)
        self._memory, budget = memory, options.search_budget
        self._kind = data, options.subsampling, type(options.input_overlaps_of)
        # Read by what is estimated for intervals and hotspots. Not noted as read by the search.
        values = {f.name: object.__getattribute__(budget, f.name) for f in fields(SearchBudget)}
        parts = ("part", "interval", "narrow", "loop_rows", "large", "hotspot", "contracted")
        self._estimate_key = tuple(
            repr(value) for name, value in values.items() if any(part in name for part in parts)
        )
        self.evaluator.order = memory.recall(
            ("order", self._kind), lambda: Evaluator(data, options).order
        )

    def run(self, jobs: Sequence[Job[Any]], kinds: Sequence[Hashable] = ()) -> list[Any]:
        """The result of each job."""
        return [self._memory.recall(self._key(job), lambda job=job: self._run(job)) for job in jobs]

    def _run(self, job: Job[Any]) -> Any:
        return job.run(self.evaluator)

    def _key(self, job: Job[Any]) -> Hashable:
        if not isinstance(job, RequestFamily):
            return job, self._kind, self._estimate_key
        for request in job.requests:
            count = len(self.evaluator.model.main.ops)
            first, end = request.part.interval if request.part else (0, count)
            self._memory.operators += end - first + sum(map(added_work, request.candidate.regions))
        return self._kind, *map(self.key, job.requests)


class ObservedBudget(SearchBudget):
    """A budget that notes which of its fields are read."""

    def __getattribute__(self, name: str) -> Any:
        """The value of a field, or a method."""
        READ.add(name)
        return super().__getattribute__(name)


READ: set[str] = set()
"""Fields that a search with an `ObservedBudget` has read."""


@dataclass(frozen=True)
class Row:
    """One search."""

    model: str
    mode: str
    change: Change
    arena: int
    front: int
    """`mean_bytes` of what the search offers."""
    slower: float
    evaluated: int
    operators: int
    seconds: float
    plain_seconds: float
    """Of the default search, in the same process."""

    @staticmethod
    def read(line: str) -> Row:
        """A row of a file."""
        values: dict[str, Any] = json.loads(line)
        values["change"] = tuple(values["change"])
        return Row(**values)

    def line(self) -> str:
        """The row as a line of a file."""
        return json.dumps(vars(self))


def searched(path: Path, change: Change, budget: SearchBudget, memory: Memory) -> Iterator[Row]:
    """The rows of one search with all operators, which begins with those without new ones: the
    first one, and where it is made the one that anticipates spellings."""
    kernels = kernels_of(load_target(TARGET))
    options = TilingOptions(kernels, kernels.input_overlaps_of, operators=AllowedOperators.ALL)
    options = replace(options, search_budget=budget)
    memory.charged, memory.operators = 0.0, 0
    started = time.process_time()
    own: list[TilingResult] = []
    spent: list[tuple[int, float]] = []
    search, again = permissions.search_tiles, permissions.search_anticipating

    def searching(*given: Any) -> TilingResult:
        if not own:
            own.append(search(*given))
            return own[0]
        if not spent:
            spent.append(so_far())
        return search(*given)

    def anticipating(*given: Any) -> TilingResult:
        result = again(*given)
        if not spent:
            own.append(result)
        return result

    def so_far() -> tuple[int, float]:
        return memory.operators, round(time.process_time() - started + memory.charged, 2)

    workers = partial(RecallingWorkers, memory=memory)
    with (
        mock.patch.object(permissions, "Workers", workers),
        mock.patch.object(anticipation, "Workers", workers),
        mock.patch.object(permissions, "search_tiles", searching),
        mock.patch.object(permissions, "search_anticipating", anticipating),
    ):
        both = permissions.search_by_permission(path.read_bytes(), options).result
    spent.append(so_far())
    for mode, results, (operators, seconds) in zip(MODES, (own, [both]), spent, strict=True):
        tilings = [t for result in results for t in (result.best, *result.front)]
        best = best_tiling(tilings, options.arena_limit)
        yield Row(
            path.stem, mode, change, best.arena, mean_bytes(tilings, options.max_slowdown),
            round(best.slowdown - 1, 4), sum(r.evaluated for r in results), operators, seconds,
            memory.plain_seconds.setdefault(mode, seconds),
        )  # fmt: skip


def rows_of(
    path: Path, wanted: Callable[[Change], bool], done: set[tuple[str, Change]]
) -> Iterator[Row]:
    """The rows of one network that are wanted and not done, the default search's first."""
    plain, memory = SearchBudget(), Memory()
    READ.clear()
    rows = list(searched(path, AS_IT_IS, ObservedBudget(), memory))
    read = {*READ}
    yield from rows if (path.stem, AS_IT_IS) not in done else ()
    for f in fields(SearchBudget):
        if f.name not in read or f.name in NOT_SHOWN:
            continue
        for text, value in variants(f.name, getattr(plain, f.name)).items():
            change = f.name, text
            if wanted(change) and (path.stem, change) not in done:
                yield from searched(path, change, replace(plain, **{f.name: value}), memory)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown: changes with which an arena or a front differs from the default's, with operators
    and seconds beside the default's; then those that change neither."""
    plain = {(r.model, r.mode): r for r in rows if r.change == AS_IT_IS}
    rows = [r for r in rows if r.change != AS_IT_IS and (r.model, r.mode) in plain]
    yield (
        "| constant | changed | mode | networks | arena, mean | front, mean | arena | operators "
        "| seconds |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    without: dict[str, list[str]] = {}
    order = [f.name for f in fields(SearchBudget)]
    changes = dict.fromkeys(r.change for r in rows)
    for change in sorted(changes, key=lambda c: order.index(c[0]) if c[0] in order else -1):
        own = [r for r in rows if r.change == change]
        if all(
            (r.arena, r.front) == (plain[r.model, r.mode].arena, plain[r.model, r.mode].front)
            for r in own
        ):
            told = f"{change[1]} ({_initials(own)}, x {_seconds(own):.2f})"
            without.setdefault(change[0], []).append(told)
            continue
        for mode in MODES:
            of_mode = [r for r in own if r.mode == mode]
            yield _table_row(change, mode, of_mode, [plain[r.model, mode] for r in of_mode])
    yield "\nNo arena and no front differs, with these networks and seconds:\n"
    for name, told in without.items():
        yield f"- `{name}`: {', '.join(told)}"


def _initials(rows: Sequence[Row]) -> str:
    """The networks by letters."""
    return "".join(dict.fromkeys(LETTERS.get(r.model, r.model[0].upper()) for r in rows))


def _seconds(rows: Sequence[Row]) -> float:
    return sum(r.seconds for r in rows) / max(sum(r.plain_seconds for r in rows), 0.01)


def _table_row(change: Change, mode: str, own: Sequence[Row], before: Sequence[Row]) -> str:
    ratios = [r.arena / p.arena for r, p in zip(own, before, strict=True)]
    fronts = [r.front / p.front for r, p in zip(own, before, strict=True)]
    moved = sorted(zip(ratios, own, strict=True), key=lambda pair: -abs(pair[0] - 1))
    told = ", ".join(f"{r.model} {_per_cent(ratio)}" for ratio, r in moved if ratio != 1)
    operators = sum(r.operators for r in own) / max(sum(p.operators for p in before), 1)
    name, text = change
    return (
        f"| `{name}` | {text} | {mode} | {_initials(own)} | {_per_cent(geometric_mean(ratios))} "
        f"| {_per_cent(geometric_mean(fronts))} | {told or '='} "
        f"| x {operators:.2f} | x {_seconds(own):.2f} |"
    )


def _per_cent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+z.2f} %"


def main() -> None:
    """Search, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], metavar="FIELD")
    parser.add_argument("--skip", nargs="*", default=[], metavar="CHANGE", help="say: doubled")
    parser.add_argument("--table", action="store_true", help="search nothing")
    given = parser.parse_args()
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    rows = [Row.read(line) for line in lines]
    done = {(r.model, r.change) for r in rows}

    def wanted(change: Change) -> bool:
        return (not given.only or change[0] in given.only) and change[1] not in given.skip

    compiling.start(permissions.COMPILED)
    compiling.ready(permissions.COMPILED, permissions.Stop(), print)
    for path in () if given.table else given.models:
        started = time.monotonic()
        try:
            for row in rows_of(path, wanted, done):
                rows.append(row)
                with given.results.open("a") as file:
                    file.write(row.line() + "\n")
        except PlannerError as error:
            print(f"{path}: {error}", flush=True)
        print(f"{path}: {time.monotonic() - started:.0f} s", flush=True)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
