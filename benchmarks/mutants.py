"""Mutation study: what finds a rewrite or a plan with one thing wrong?

    PYTHONPATH=. python benchmarks/mutants.py study OUT.jsonl --models A.tflite ... [--most 4]
    PYTHONPATH=. python benchmarks/mutants.py table OUT.jsonl

Every model is planned as it is, in tiles, in tiles as TFLM alone understands them, and in loops.
Of each of these files mutants of every kind are made (`mutant_kinds`), at most `--most` of one
kind, chosen by chance, and shown to: eight inputs on LiteRT and on TFLM, the validator of plans,
the terms without memory and in the arena. What terms call equal runs on more inputs, and wrong
plans go through the byte-by-byte replay of the tests as well: nobody may see a difference there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.mutant_kinds import PLAN_KINDS, Mutant, mutated, of_plan, of_rewrite
from tests.models.attention import attention
from tests.models.small import bottleneck
from tests.placed_replay import replay_planned
from tests.transforms.random_tiles import random_scheme
from tests.transforms.row_loops import planned, random_loops, streamed
from tests.transforms.tiled import dialect_of, rewritten
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import PlannerError
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.verification.inputs import input_sets
from tflm_planner.verification.planned import plan_faults
from tflm_planner.verification.terms import prove_by_terms
from tflm_planner.verification.worker import LOADERS, Invoke

HOST = api.kernels_of(api.load_target("x86-64/wheel"))
INPUTS = 8
MORE = 5
"""Times as many inputs for what terms call equal."""
_SECONDS = 60
"""For one mutant on one runtime; one that needs longer hangs."""
_ARENA = 1 << 24
EQUAL, DIFFERENT, FAILS, LATER = "equal", "different", "fails", "later"
_BY_CODE = {0: EQUAL, 1: DIFFERENT, 2: FAILS, 3: LATER}
"""Exit codes of a child. LATER: different, but not on the first eight inputs."""


@dataclass(frozen=True)
class Outcome:
    """What was said of one mutant. "" where nothing can be said; see `Study.judge`."""

    model: str
    file: str
    kind: str
    where: str
    litert: str
    tflm: str
    validator: bool
    terms: str
    apart: str
    replay: str
    seconds: float


# --- files ---


def files_of(data: bytes) -> Iterator[tuple[str, bytes]]:
    """(how it was made, file) of a model."""
    yield "planned", planned(data).data
    made = _in_tiles(data)
    if made is not None:
        both = dialect_of(made)
        yield "tiles", both.portable
        yield "tiles for TFLM", both.dialect
    made = _in_loops(data)
    if made is not None:
        yield "loops", planned(made).data


def _in_tiles(data: bytes) -> bytes | None:
    """The largest of some random tilings."""
    found: list[bytes] = []
    for seed in range(24):
        scheme = random_scheme(data, seed)
        if scheme is None:
            continue
        made, (result,) = rewritten(data, scheme)
        if not result.refusal and _size(made) <= 150:
            found.append(made)
    return max(found, key=_size, default=None)


def _size(data: bytes) -> int:
    return sum(1 for _ in read_model(data).ops())


def _size_when_clean(data: bytes) -> int:
    model = read_model(data)
    run(model, Normalize())
    return len(model.main.ops)


def _in_loops(data: bytes) -> bytes | None:
    """The largest of some random loops."""
    found: list[bytes] = []
    for seed in range(6):
        if any(
            max(loop.ops) >= _size_when_clean(data)
            for loop in random_loops(data, random.Random(seed))
        ):
            continue
        made, _ = streamed(data, *random_loops(data, random.Random(seed)))
        if any(op.kind == "WHILE" for op in read_model(made).ops()):
            found.append(made)
    return max(found, key=_size, default=None)


# --- judges ---


class Study:
    """One original, whose outputs are known."""

    def __init__(self, name: str, data: bytes) -> None:
        self._name, self._original = name, read_model(data)
        graph = self._original.main
        self._count = len(graph.outputs)
        self._inputs = [
            values for seed in range(MORE) for _, values in input_sets(graph, seed, count=INPUTS)
        ]
        self._folder = tempfile.TemporaryDirectory()
        self._wanted = {name: self._run(name, data) for name in LOADERS}

    def _run(self, runtime: str, data: bytes) -> list[list[bytes]]:
        """Outputs of the original; none where the runtime does not run it."""
        path = Path(self._folder.name, "model.tflite")
        path.write_bytes(data)
        with contextlib.suppress(RuntimeError):
            _, invoke = LOADERS[runtime](str(path), _ARENA, self._count)
            return self._outputs(invoke)
        return []

    def _outputs(self, invoke: Invoke) -> list[list[bytes]]:
        return [[out.tobytes() for out in invoke(values)] for values in self._inputs]

    def judge(self, file: str, mutant: Mutant, data: bytes) -> Outcome:
        """What everybody says of a mutant."""
        started = time.monotonic()
        model = _readable(data)
        terms = "not read" if model is None else self._terms(model, in_arena=True)
        seconds = time.monotonic() - started
        for_tflm = file.endswith("TFLM")
        apart = litert = replay = ""
        if model is not None and not for_tflm and not mutant.of_plan:
            apart = self._terms(model, in_arena=False)
            litert = self._on_runtime("LiteRT", data, thorough=apart == EQUAL)
        if model is not None and not for_tflm and mutant.of_plan and terms == EQUAL:
            replay = "fault" if replay_planned(data) else "right"
        return Outcome(
            self._name,
            file,
            mutant.kind,
            mutant.where,
            litert,
            self._on_runtime("TFLM", data, thorough=terms == EQUAL),
            model is None or any(True for _ in plan_faults(model, HOST)),
            terms,
            apart,
            replay,
            round(seconds, 3),
        )

    def _terms(self, model: Model, *, in_arena: bool) -> str:
        return prove_by_terms(self._original, model, HOST if in_arena else None).status

    def _on_runtime(self, runtime: str, data: bytes, *, thorough: bool) -> str:
        """In a child, which may crash, hang or spoil its memory."""
        if not self._wanted[runtime]:
            return ""
        path = Path(self._folder.name, "mutant.tflite")
        path.write_bytes(data)
        count = len(self._inputs) if thorough else INPUTS
        return _in_child(lambda: self._compare(runtime, path, count))

    def _compare(self, runtime: str, path: Path, count: int) -> int:
        _, invoke = LOADERS[runtime](str(path), _ARENA, self._count)
        for i, values in enumerate(self._inputs[:count]):
            if [out.tobytes() for out in invoke(values)] != self._wanted[runtime][i]:
                return 1 if i < INPUTS else 3
        return 0


def _readable(data: bytes) -> Model | None:
    try:
        return read_model(data, dialect=True)
    except PlannerError:
        return None


def _in_child(judge: Callable[[], int]) -> str:
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        signal.alarm(_SECONDS)
        code = 2
        try:
            code = judge()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return _BY_CODE.get(os.waitstatus_to_exitcode(status), FAILS)


def chosen(data: bytes, most: int, seed: int) -> list[Mutant]:
    """At most so many mutants of each kind, by chance."""
    model = read_model(data, dialect=True)
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in (*of_rewrite(model), *of_plan(model, HOST)):
        kinds[mutant.kind].append(mutant)
    rng = random.Random(seed)
    return [m for found in kinds.values() for m in rng.sample(found, min(most, len(found)))]


def study(out: Path, paths: list[Path], most: int, seed: int, seconds: float) -> None:
    """Append the outcome of every mutant to a file, for so long; those that are there are not made
    again."""
    ends = time.monotonic() + seconds
    told = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    known = {(r["model"], r["file"], r["kind"], r["where"]) for r in told}
    with out.open("a") as lines:
        for name, data in _originals(paths):
            judge: Study | None = None
            for file, made in files_of(data):
                for mutant in chosen(made, most, seed):
                    if (name, file, mutant.kind, mutant.where) in known:
                        continue
                    judge = judge or Study(name, data)
                    outcome = judge.judge(file, mutant, mutated(made, mutant))
                    lines.write(json.dumps(asdict(outcome)) + "\n")
                    lines.flush()
                    if time.monotonic() > ends:
                        print("more is left")
                        return
    print("all is done")


def _originals(paths: list[Path]) -> Iterator[tuple[str, bytes]]:
    """Files, and what no file is needed for: floats, and matrices that depend on the input."""
    yield "bottleneck", bottleneck("float32")
    yield "attention", attention()
    for path in paths:
        yield path.stem, path.read_bytes()


# --- table ---


def table(out: Path) -> None:
    """A Markdown table, and what needs a word."""
    outcomes = [Outcome(**json.loads(line)) for line in out.read_text().splitlines()]
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for o in outcomes:
        kinds[o.kind].append(o)
    order = sorted(kinds, key=lambda k: (k in PLAN_KINDS, k))
    print("| mutant | made | LiteRT | TFLM | validator | terms apart | terms in arena | same |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for kind in [*order, "all"]:
        of_kind = kinds.get(kind, outcomes)
        print(f"| {kind} | {' | '.join(_counts(of_kind))} |")
    missed = [o for o in outcomes if o.terms == EQUAL and _shown(o)]
    said = Counter((o.kind, o.terms) for o in outcomes if o.terms not in (EQUAL, DIFFERENT))
    print(f"\nmissed by terms: {len(missed)}; neither equal nor different: {dict(said)}")
    for o in missed:
        print(o)
    alone = [o for o in outcomes if o.terms == DIFFERENT and o.tflm == o.litert == EQUAL]
    print(f"seen by terms and by neither runtime: {len(alone)}")
    print(f"{len(outcomes)} mutants, {sum(o.seconds for o in outcomes):.0f} s of terms")


def _counts(outcomes: list[Outcome]) -> list[str]:
    """Caught of those that could be shown to each, and how many are the same function."""

    def share(said: Callable[[Outcome], str]) -> str:
        shown = [said(o) for o in outcomes if said(o)]
        caught = sum(s in (DIFFERENT, FAILS, "not read") for s in shown)
        if not shown:
            return "-"
        return f"{caught} of {len(shown)}" if len(shown) != len(outcomes) else str(caught)

    return [
        str(len(outcomes)),
        share(lambda o: o.litert),
        share(lambda o: o.tflm),
        str(sum(o.validator for o in outcomes)),
        share(lambda o: o.apart),
        share(lambda o: o.terms),
        str(sum(o.terms == EQUAL and not _shown(o) for o in outcomes)),
    ]


def _shown(outcome: Outcome) -> bool:
    """Whether anything but terms sees another function."""
    wrong = (DIFFERENT, FAILS, LATER)
    return outcome.tflm in wrong or outcome.litert in wrong


def main() -> None:
    """Study, or table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("do", choices=["study", "table"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", nargs="*", type=Path, default=[])
    parser.add_argument("--most", type=int, default=4, help="mutants of one kind and file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="then it can be called again")
    given = parser.parse_args()
    if given.do == "table":
        table(given.out)
    else:
        study(given.out, given.models, given.most, given.seed, given.seconds)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
