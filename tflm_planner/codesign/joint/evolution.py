"""Searches the most accurate networks that fit, by evolution or by random drawing.

    draw children of the best --judge--> those that fit --score--> scored networks
          ^                                                             |
          +----------------------- the best `parents` ------------------+

Lin et al. 2021, appendix B: half of the children come from crossover, half from mutation. Children
that do not fit count as drawn, and further ones are drawn. The same seed gives the same search with
any engine, so an interrupted search can be resumed with the verdicts that a store has kept. It must
not know networks' weights.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field

import numpy as np

from tflm_planner.codesign.joint.memory import (
    BoardLimits,
    FitQuestion,
    MemoryVerdict,
    judge,
)
from tflm_planner.codesign.joint.space import Genes, SearchSpace
from tflm_planner.jobs.engine import JobEngine, JobFailure
from tflm_planner.jobs.store import ResultStore
from tflm_planner.support.progress import Progress
from tflm_planner.support.version import __version__

Score = Callable[[Genes], float]
"""Genes of a network -> its accuracy."""
_TRIES = 20
"""How often a child is drawn again if it was drawn before; after that the duplicate is taken."""


@dataclass(frozen=True)
class EvolutionOptions:
    """How many networks are examined, and how they are made."""

    drawn: int = 2000
    """The largest number of networks to draw."""
    scored: int | None = None
    """The largest number of networks to score. None: not limited."""
    batch: int = 100
    """Networks drawn at a time."""
    parents: int = 20
    """How many of the best networks so far have children."""
    rate: float = 0.1
    """Probability that a mutation redraws a gene."""
    seed: int = 0
    """Seed of all random choices."""
    evolves: bool = True
    """Whether networks are children of the best ones. If not, all are drawn at random."""


@dataclass(frozen=True)
class DrawnNetwork:
    """A network that was drawn. accuracy: None if it does not fit."""

    genes: Genes
    verdict: MemoryVerdict
    accuracy: float | None = None


@dataclass
class SearchHistory:
    """All networks drawn, in order. duplicates: how many of them had been drawn before."""

    candidates: list[DrawnNetwork] = field(default_factory=list[DrawnNetwork])
    duplicates: int = 0

    @property
    def scored(self) -> list[DrawnNetwork]:
        """The networks that fit, the most accurate first. Of equally accurate ones, the one with
        fewer multiplications comes first."""
        fitting = (c for c in self.candidates if c.accuracy is not None)
        return sorted(fitting, key=lambda c: (-(c.accuracy or 0), c.verdict.macs, c.genes))

    def tests(self) -> Counter[tuple[bool, str]]:
        """How many networks each test accepted (True) or rejected (False)."""
        return Counter((c.verdict.fits, c.verdict.by) for c in self.candidates)


@dataclass
class Judge:
    """Decides with an engine whether networks fit. Verdicts are kept in a store, if there is
    one."""

    space: SearchSpace
    limits: BoardLimits
    engine: JobEngine
    store: ResultStore | None = None

    def verdicts(self, genes: Sequence[Genes]) -> list[MemoryVerdict]:
        """The verdict on each network. Raises RuntimeError if the engine failed to give one."""
        questions = [FitQuestion(self.space.decode(g).chain(), self.limits) for g in genes]
        keys = [_key(q) for q in questions]
        answers = {key: kept for key in keys if (kept := self._kept(key)) is not None}
        missing = {k: q for k, q in zip(keys, questions, strict=True) if k not in answers}
        names = list(missing)
        with closing(self.engine.results(judge, list(missing.values()))) as results:
            for place, verdict in results:
                if isinstance(verdict, JobFailure):
                    raise RuntimeError(f"a network could not be judged: {verdict.reason}")
                answers[names[place]] = verdict
                if self.store is not None:
                    self.store.put(names[place], json.dumps(asdict(verdict)))
        return [answers[key] for key in keys]

    def _kept(self, key: str) -> MemoryVerdict | None:
        text = None if self.store is None else self.store.get(key)
        return None if text is None else MemoryVerdict(**json.loads(text))


def search(
    judging: Judge, score: Score, options: EvolutionOptions, on_progress: Progress
) -> SearchHistory:
    """Draw, judge and score networks until as many were drawn, or scored, as `options` allows."""
    random = np.random.default_rng(options.seed)
    history, first_drawn = SearchHistory(), dict[Genes, DrawnNetwork]()
    while len(history.candidates) < options.drawn:
        number = min(options.batch, options.drawn - len(history.candidates))
        parents = [c.genes for c in _distinct(history)][: options.parents]
        children = list(_children(judging.space, parents, first_drawn, number, options, random))
        for genes, verdict in zip(children, judging.verdicts(children), strict=True):
            known = first_drawn.get(genes)
            history.duplicates += known is not None
            accuracy = known.accuracy if known is not None else None
            if known is None and verdict.fits:
                accuracy = score(genes)
            candidate = DrawnNetwork(genes, verdict, accuracy)
            history.candidates.append(candidate)
            first_drawn.setdefault(genes, candidate)
            scored = sum(c.accuracy is not None for c in first_drawn.values())
            if options.scored is not None and scored >= options.scored:
                return history
        on_progress(_line_of(history, options.drawn))
    return history


def _line_of(history: SearchHistory, drawn: int) -> str:
    """A line of progress: how many networks were drawn and fit, the best accuracy, and how many
    each test rejected. drawn: how many are to be drawn."""
    tests, scored = history.tests(), history.scored
    fitting = sum(number for (fits, _), number in tests.items() if fits)
    parts = [f"{len(history.candidates)} of {drawn} networks drawn, {fitting} fit"]
    if scored:
        parts.append(f"best {scored[0].accuracy:.3f}")
    rejected = [f"{n} by {test}" for (fits, test), n in sorted(tests.items()) if not fits]
    if rejected:
        parts.append(f"rejected {', '.join(rejected)}")
    return "; ".join(parts)


def _distinct(history: SearchHistory) -> Iterator[DrawnNetwork]:
    seen: set[Genes] = set()
    for candidate in history.scored:
        if candidate.genes not in seen:
            seen.add(candidate.genes)
            yield candidate


def _children(
    space: SearchSpace,
    parents: Sequence[Genes],
    known: dict[Genes, DrawnNetwork],
    number: int,
    options: EvolutionOptions,
    random: np.random.Generator,
) -> Iterator[Genes]:
    """Yield the networks to try next. They are random until there are enough parents. Duplicates
    are avoided where possible."""
    drawn: set[Genes] = set()
    for place in range(number):
        child = space.smallest
        for _ in range(_TRIES):
            child = _child(space, parents, place, options, random)
            if child not in known and child not in drawn:
                break
        drawn.add(child)
        yield child


def _child(
    space: SearchSpace,
    parents: Sequence[Genes],
    place: int,
    options: EvolutionOptions,
    random: np.random.Generator,
) -> Genes:
    if not options.evolves or len(parents) < options.parents:
        return space.random(random)
    one = parents[int(random.integers(len(parents)))]
    if place % 2:
        return space.mutate(one, options.rate, random)
    return space.cross(one, parents[int(random.integers(len(parents)))], random)


def _key(question: FitQuestion) -> str:
    """A key made from everything that a verdict depends on, the planner included."""
    return f"memory {__version__} {hashlib.sha256(repr(question).encode()).hexdigest()}"
