"""What searches of networks drew, as a file and as tables ([docs/joint-search.md]
(../docs/joint-search.md)); `joint_search` makes such files.

    about the run              {"arena": 65536, "instructions": ..., ...}
    each network that was      {"search": "evolution", "genes": [...], "fits": true, "by": "tiles",
    drawn, in order             "arena": ..., "counted": ..., "accuracy": ...}
    random networks, planned   {"search": "sample", ...}
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tflm_planner.codesign.joint.evolution import DrawnNetwork, SearchHistory
from tflm_planner.codesign.joint.memory import MemoryVerdict, Test
from tflm_planner.codesign.joint.space import Genes

TESTS: tuple[tuple[bool, Test], ...] = (
    (False, "flash"), (False, "floor"), (False, "time"), (True, "stock"), (True, "plan"),
    (True, "tiles"), (False, "plan"), (False, "tiles"),
)  # fmt: skip
"""Whether networks fit, and what decided."""


@dataclass(frozen=True)
class SearchRecord:
    """What a run of searches drew. about: limits. sample: verdicts of random networks,
    each with its exact arena, planned whole."""

    about: Mapping[str, Any]
    histories: Mapping[str, SearchHistory]
    sample: Sequence[MemoryVerdict]

    def write(self, path: Path) -> None:
        """A line for what it is about, then one for each network."""
        rows: list[Mapping[str, Any]] = [dict(self.about)]
        for name, history in self.histories.items():
            rows += [
                {"search": name, "genes": c.genes, "accuracy": c.accuracy, **asdict(c.verdict)}
                for c in history.candidates
            ]
        rows += [{"search": "sample", **asdict(verdict)} for verdict in self.sample]
        with gzip.GzipFile(path, "wb", mtime=0) as file:
            file.writelines(json.dumps(row).encode() + b"\n" for row in rows)

    @staticmethod
    def read(path: Path) -> SearchRecord:
        """What `write` wrote."""
        with gzip.open(path, "rt") as file:
            about, *rows = map(json.loads, file)
        histories: dict[str, SearchHistory] = {}
        sample: list[MemoryVerdict] = []
        for row in rows:
            name = row.pop("search")
            if name == "sample":
                sample.append(MemoryVerdict(**row))
                continue
            genes, accuracy = tuple(row.pop("genes")), row.pop("accuracy")
            drawn = DrawnNetwork(genes, MemoryVerdict(**row), accuracy)
            histories.setdefault(name, SearchHistory()).candidates.append(drawn)
        return SearchRecord(about, histories, sample)

    def show(self) -> Iterator[str]:
        """All tables."""
        yield from (f"{name}: {value}" for name, value in self.about.items())
        yield tests_table(self.histories)
        yield progress_table(self.histories)
        budget = self.about["arena"]
        budgets = (budget // 2, budget * 3 // 4, budget, budget * 3 // 2)
        yield count_table(self.sample, budgets)
        yield schedule_table(self.histories, budget)


def tests_table(histories: Mapping[str, SearchHistory]) -> str:
    """How many networks each test decided on."""
    heads = [f"{name} {'fits' if fits else 'rejects'}" for fits, name in TESTS]
    lines = [f"| search | drawn | {' | '.join(heads)} | scored | best |",
             "|---|" + "--:|" * (3 + len(heads))]  # fmt: skip
    for name, history in histories.items():
        tests, scored = history.tests(), len({c.genes for c in history.scored})
        cells = [f"{tests[column]:,}" for column in TESTS]
        best = max((c.accuracy or 0 for c in history.scored), default=None)
        shown = "-" if best is None else f"{100 * best:.1f} %"
        drawn = len(history.candidates)
        lines.append(f"| {name} | {drawn:,} | {' | '.join(cells)} | {scored:,} | {shown} |")
    return "\n".join(lines)


def count_table(sample: Sequence[MemoryVerdict], budgets: Sequence[int]) -> str:
    """How often the count of activations says otherwise than the exact arena of the plan."""
    lines = ["| budget | fit | count accepts | of these too large | count refuses what fits |",
             "|--:|--:|--:|--:|--:|"]  # fmt: skip
    for budget in budgets:
        pairs = [(v.counted <= budget, (v.arena or 0) <= budget) for v in sample]
        lines.append(f"| {budget:,} | {_pairs(pairs)} |")
    return "\n".join(lines)


def progress_table(histories: Mapping[str, SearchHistory]) -> str:
    """The best accuracy after so many networks were scored."""
    curves = {name: list(_best_so_far(history)) for name, history in histories.items()}
    most = min(map(len, curves.values()))
    marks = [n for n in (10, 20, 50, 100, 200, 500, 1000, 2000) if n < most] + [most]
    lines = [f"| search | {' | '.join(f'{n:,}' for n in marks)} |", "|---|" + "--:|" * len(marks)]
    for name, curve in curves.items():
        cells = (f"{100 * curve[n - 1]:.1f} %" for n in marks)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _best_so_far(history: SearchHistory) -> Iterator[float]:
    """After each network that was scored for the first time."""
    best, seen = 0.0, set[Genes]()
    for candidate in history.candidates:
        if candidate.accuracy is not None and candidate.genes not in seen:
            seen.add(candidate.genes)
            best = max(best, candidate.accuracy)
            yield best


def schedule_table(histories: Mapping[str, SearchHistory], budget: int) -> str:
    """The same of the networks that the searches drew and no other limit refused: may they be
    tiled, then the count refuses more of what fits."""
    lines = ["| search | in time | fit | count accepts | of these too large | count refuses what "
             "fits |", "|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for name, history in histories.items():
        verdicts = {c.genes: c.verdict for c in history.candidates}.values()
        judged = [v for v in verdicts if v.by in ("stock", "plan", "tiles")]
        pairs = [(v.counted <= budget, v.fits) for v in judged]
        lines.append(f"| {name} | {len(judged):,} | {_pairs(pairs)} |")
    return "\n".join(lines)


def _pairs(pairs: Sequence[tuple[bool, bool]]) -> str:
    """Cells of pairs: whether the count accepts a network, whether it fits."""
    fitting = sum(fits for _, fits in pairs)
    accepted = sum(counted for counted, _ in pairs)
    wrong = sum(counted and not fits for counted, fits in pairs)
    lost = sum(fits and not counted for counted, fits in pairs)
    return f"{fitting:,} | {accepted:,} | {wrong:,} | {lost:,}"
