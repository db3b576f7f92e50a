"""Random rewrites of random models, proved by terms alone: `python -m tests.fuzz.by_terms`.

    tiles      in a random region, as a portable file, planned, and in the dialect
    loops      random rows a turn, planned
    spellings  random ones
    subsamples values at the pixels that are read; chains of operators that move elements
    streams    front and back, in the memory that they share
    plans      of random models and random WHILEs

Every model that is planned is proved under many more plans (`tests/fuzz/legal_plans`): what the
validator permits must be equal. No runtime starts, so that many cases fit into a second. A seed is
a case of every sort. What is neither equal nor different is told at the end, with its reason.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable

from tests.fuzz.legal_plans import proofs_of_plans
from tests.models.generator import random_model
from tests.models.moves import random_moves
from tests.models.random_loops import random_loops_model
from tests.models.stages import random_stages
from tests.transforms.random_tiles import random_scheme
from tests.transforms.row_loops import planned, random_blocks, random_loops, streamed
from tests.transforms.stream_inputs import cleaned, halves, some_place
from tests.transforms.test_merge_moves import merged
from tests.transforms.test_spelling import random_chain, random_spellings, respelled
from tests.transforms.test_subsample import subsampled
from tests.transforms.tiled import KINDS, RARE_KINDS, dialect_of, rewritten
from tests.verification.terms.proofs import HOST
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.support.errors import UnsoundPlanError
from tflm_planner.transforms.subsample import PICKS
from tflm_planner.verification.terms import (
    Halves,
    TermsProof,
    prove_by_terms,
    prove_pair_by_terms,
)

_SECONDS = 5.0
"""Time limit of a search for a plan, which none reaches: a seed is a case."""
_OF_ONE_MODEL = 768
"""Plans, besides its own: they run step by step, a hundred in the time that makes a model."""
Report = Callable[[TermsProof], None]
"""Told of every proof that must not be different."""


def tiles(seed: int, report: Report) -> None:
    """A random region in tiles; every third one planned, and in the dialect."""
    data = random_model(seed, steps=2 + seed % 12, kinds=RARE_KINDS if seed % 2 else KINDS)
    scheme = random_scheme(data, seed)
    if scheme is None:
        return
    made, (result,) = rewritten(data, scheme)
    if result.refusal:
        return
    report(prove_by_terms(read_model(data), read_model(made)))
    if seed % 3 == 0:
        both = dialect_of(made)
        report(prove_by_terms(read_model(data), read_model(both.dialect, dialect=True), HOST))
        _prove_planned(data, both.portable, seed, report)


def loops(seed: int, report: Report) -> None:
    """One loop or two; every third one planned."""
    data = write_model(cleaned(random_blocks(seed, 2 + seed % 9)))
    made, _ = streamed(data, *random_loops(data, random.Random(seed)))
    report(prove_by_terms(read_model(data), read_model(made)))
    if seed % 3 == 0:
        _prove_planned(data, planned(made, seconds=_SECONDS).data, seed, report)


def spellings(seed: int, report: Report) -> None:
    """Operators that are written otherwise."""
    data = random_chain(seed)
    made, _ = respelled(data, *random_spellings(data, seed))
    report(prove_by_terms(read_model(data), read_model(made)))


def subsamples(seed: int, report: Report) -> None:
    """Values at the pixels that are read, and chains of operators that move elements."""
    stages, moves = random_stages(seed, 1 + seed % 12), random_moves(seed)
    report(prove_by_terms(read_model(stages), read_model(subsampled(stages, PICKS[seed % 3])[0])))
    report(prove_by_terms(read_model(moves), read_model(merged(moves)[0])))


def streams(seed: int, report: Report) -> None:
    """A model in two halves."""
    rng = random.Random(seed)
    data = random_blocks(seed, rng.randint(2, 9))
    where = some_place(cleaned(data), rng)
    if where is None:
        return
    pair = halves(data, where, overlap=seed % 2 == 0, seconds=_SECONDS)
    front, back = (read_model(file, dialect=True) for file in (pair.front, pair.back))
    report(prove_pair_by_terms(read_model(data), Halves(front, back, pair.strips), HOST))


def plans(seed: int, report: Report) -> None:
    """Random models, and random WHILEs, as they are planned."""
    own_loops = seed % 4 == 0
    data = random_loops_model(seed) if own_loops else random_model(seed, steps=1 + seed % 10)
    _prove_planned(data, planned(data, seconds=_SECONDS).data, seed, report, _OF_ONE_MODEL)


def _prove_planned(data: bytes, file: bytes, seed: int, report: Report, more: int = 8) -> None:
    """A file under the plan that it carries, and under so many more."""
    report(prove_by_terms(read_model(data), read_model(file), HOST))
    for proof in proofs_of_plans(read_model(data), read_model(file), HOST, seed, more):
        report(proof)


SORTS = {f.__name__: f for f in (tiles, loops, spellings, subsamples, streams, plans)}


def main() -> int:
    """Prove; exit code 1 when something was different."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=10**9, help="seeds")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--sorts", nargs="*", choices=SORTS, default=[*SORTS])
    given = parser.parse_args()
    seen: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    started, seed = time.monotonic(), given.first
    while seed < given.first + given.count and time.monotonic() - started < given.seconds:
        for sort in given.sorts:
            began = time.monotonic()
            _one(sort, seed, seen)
            spent[sort] += time.monotonic() - began  # type: ignore[assignment]
        seed += 1
    print(f"seeds {given.first} to {seed - 1}, {time.monotonic() - started:.0f} s")
    for sort in given.sorts:
        rate = seen[sort] / max(spent[sort], 1e-9)
        print(f"{seen[sort]:7} {sort}, {rate:.1f} a second")
    for what, times in seen.most_common():
        if what not in SORTS:
            print(f"{times:7} {what}")
    return 1 if seen["WRONG"] else 0


def _one(sort: str, seed: int, seen: Counter[str]) -> None:
    def report(proof: TermsProof) -> None:
        seen[sort] += 1
        if proof.status == "different":
            seen["WRONG"] += 1
            print(f"seed {seed}: {sort}: {proof.detail}", flush=True)
        elif proof.status == "not run":
            seen["not run: " + re.sub(r"'[^']*'|\d[\d,]*", "..", proof.detail)] += 1

    try:
        SORTS[sort](seed, report)
    except UnsoundPlanError:
        seen["refused by a guard"] += 1
    except Exception:
        seen["WRONG"] += 1
        print(f"seed {seed}: {sort}: {traceback.format_exc(limit=-3)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
