"""Replays a planned model byte by byte, with tokens in place of values.

Each operator must find, at the moment it reads, every byte of every operand as it was produced.
Written from the meaning of the operators and of TFLM's kernels for control flow; it shares no
code with the planner. Where a kernel's order of reads and writes could matter, an overlap of a
result with an operand is an error unless both hold the same bytes there, or the operator computes
element by element and both lie exactly upon each other, or makes other types of elements, one by
one, and none is written over one that is still to be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tests.byte_moves import moved_bytes
from tests.models.build import schema
from tests.replay_memory import ClobberedError, Place, TokenMemory, Tokens, integers_of

Ranges = Mapping[Place, Sequence[tuple[int, int]]]
"""Operator -> (offset, size) of each of its scratch buffers."""

PLAN = b"OfflineMemoryAllocation"
_KINDS = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
_ELEMENT_WISE = {
    "ADD", "SUB", "MUL", "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU",
    "QUANTIZE", "SOFTMAX",
}  # fmt: skip

_RETYPING = {"QUANTIZE", "DEQUANTIZE", "CAST"}
"""They read an element and write it, one after the other."""
_CHARACTERS = {schema.TensorType.INT8, schema.TensorType.UINT8}
"""Compilers keep the order of reads and writes only where one of the two is such."""


@dataclass(frozen=True)
class Choice:
    """What control flow does in one run. late: as TFLM's WHILE before 20 July 2026 (#3633), which
    reads its operands once more when the condition has run."""

    take_then: bool
    rounds: int
    late: bool = False


CHOICES = (
    Choice(True, 0), Choice(False, 1), Choice(True, 2),
    Choice(True, 0, True), Choice(False, 1, True), Choice(True, 2, True),
)  # fmt: skip


def replay(
    data: bytes,
    offsets: Mapping[Place, int] | None = None,
    scratch: Ranges | None = None,
    dropped: Collection[int] = (),
) -> list[str]:
    """What goes wrong when the model in `data` runs with its plan (or with `offsets`: tensor ->
    bytes). Empty when every reader finds what it needs.

    `dropped`: operators of the first graph that do not run. What they would write must be there
    already, byte by byte: so is the TFLM dialect replayed, by the portable model it came from."""
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    offsets = offsets if offsets is not None else plan_in(model)
    roots = [0, *(s.subgraphIndex for s in model.signatureDefs or [] if s.subgraphIndex)]
    found: list[str] = []
    for root in dict.fromkeys(roots):
        for choice in CHOICES:
            try:
                memory = TokenMemory(model, offsets)
                _Run(memory, scratch or {}, choice, frozenset(dropped)).start(root)
            except ClobberedError as error:
                found.append(str(error))
    return found


def plan_in(model: Any) -> dict[Place, int]:
    """The offline plan that a `ModelT` carries."""
    entries = [m for m in model.metadata or [] if m.name == PLAN]
    assert entries, "the model carries no plan"
    words = np.asarray(model.buffers[entries[-1].buffer].data, np.uint8).tobytes()
    offsets = np.frombuffer(words, "<i4")[3:]
    places = [(g, t) for g, graph in enumerate(model.subgraphs) for t in range(_count(graph))]
    assert len(offsets) == len(places), "the plan is not of this model"
    return {p: int(o) for p, o in zip(places, offsets, strict=True) if o != -1}


def _count(graph: Any) -> int:
    return len(graph.tensors or [])


@dataclass
class _Run:
    """One run of one graph, and of what it calls."""

    memory: TokenMemory
    scratch: Ranges
    choice: Choice
    dropped: frozenset[int] = frozenset()

    def start(self, root: int) -> None:
        """Write the inputs as an application does, run, and look at the outputs."""
        graph = self.memory.model.subgraphs[root]
        inputs = [(root, t) for t in dict.fromkeys(integers_of(graph.inputs))]
        for place in inputs:
            self.memory.write(place, self.memory.fresh(self.memory.size(place)))
        for place in inputs:
            self.memory.expect(place, "the start")
        self._graph(root)
        for t in integers_of(graph.outputs):
            self.memory.expect((root, t), "the application")

    def _graph(self, g: int) -> None:
        for i, op in enumerate(self.memory.model.subgraphs[g].operators or []):
            code = self.memory.model.operatorCodes[op.opcodeIndex]
            kind = _KINDS.get(max(code.builtinCode, code.deprecatedBuiltinCode), "?")
            where = f"operator {i} ({kind}) of graph {g}"
            ins = [(g, t) for t in integers_of(op.inputs) if t >= 0]
            outs = [(g, t) for t in integers_of(op.outputs)]
            self._spoil_scratch((g, i), ins + outs, where)
            if g == 0 and i in self.dropped:
                self._absent(kind, op, ins, outs, where)
            elif kind in ("IF", "WHILE", "CALL_ONCE"):
                self._flow(kind, op, ins, outs, where)
            else:
                self._simple(kind, op, ins, outs, where)

    # --- plain operators ---

    def _simple(self, kind: str, op: Any, ins: list[Place], outs: list[Place], where: str) -> None:
        for place in ins:
            self.memory.expect(place, where)
        results = moved_bytes(self.memory, kind, op, ins, outs)
        moves = results is not None
        results = results or [self.memory.fresh(self.memory.size(p)) for p in outs]
        for out, result in zip(outs, results, strict=True):
            for place in dict.fromkeys(ins):
                self._check_hazard(kind, place, out, result, where, moves=moves, first=ins[0])
        for out, result in zip(outs, results, strict=True):
            self.memory.write(out, result)
        for out in outs:
            self.memory.expect(out, f"{where}, after writing all its results,")

    def _absent(self, kind: str, op: Any, ins: list[Place], outs: list[Place], where: str) -> None:
        """Nothing is written: memory must hold the results by itself."""
        results = moved_bytes(self.memory, kind, op, ins, outs)
        if results is None:
            raise ClobberedError(f"{where} was dropped, though it does more than move bytes")
        for out, result in zip(outs, results, strict=True):
            self.memory.contents[out] = result.copy()
            self.memory.expect(out, f"the place of the dropped {where}")

    def _check_hazard(
        self,
        kind: str,
        operand: Place,
        out: Place,
        result: Tokens,
        where: str,
        *,
        moves: bool,
        first: Place,
    ) -> None:
        """A result must not be written over an operand that may still be read."""
        a, b = self.memory.range(operand), self.memory.range(out)
        if a is None or b is None or max(a[0], b[0]) >= min(a[1], b[1]):
            return
        if (
            kind in _ELEMENT_WISE
            and a == b
            and self.memory.width(operand) == self.memory.width(out)
        ):
            return
        if kind in _RETYPING and self._reads_in_time(operand, out, a[0], b[0]):
            return
        if kind == "DYNAMIC_UPDATE_SLICE" and a == b and operand == first:
            return  # nothing of the operand is read or written but for the update's place
        low, high = max(a[0], b[0]), min(a[1], b[1])
        same = np.array_equal(self.memory.tokens[low:high], result[low - b[0] : high - b[0]])
        if not (moves and same):
            raise ClobberedError(
                f"{where} writes {self.memory.name(out)} over {self.memory.name(operand)}"
            )

    def _reads_in_time(self, operand: Place, out: Place, first: int, target: int) -> bool:
        """Whether an operator that reads and writes element by element reads each, from `first`
        on, before one that was written, from `target` on, lies over it."""
        if not {self.memory.tensor(operand).type, self.memory.tensor(out).type} & _CHARACTERS:
            return False
        wide, made = self.memory.width(operand), self.memory.width(out)
        starts = (first + i * wide for i in range(self.memory.size(operand) // wide))
        return all(
            start >= target + i * made or start + wide <= target or i == 0
            for i, start in enumerate(starts)
        )

    def _spoil_scratch(self, op: Place, around: list[Place], where: str) -> None:
        """Scratch is written at any time while its operator runs."""
        own = sorted(self.scratch.get(op, ()))
        for (a, length), (b, _) in pairwise(own):
            if a + length > b:
                raise ClobberedError(f"two scratch buffers of {where} overlap")
        for offset, size in own:
            for place in around:
                at = self.memory.range(place)
                if at is not None and max(offset, at[0]) < min(offset + size, at[1]):
                    raise ClobberedError(f"scratch of {where} lies over {self.memory.name(place)}")
            self.memory.reserve(offset + size)
            self.memory.tokens[offset : offset + size] = self.memory.fresh(size)

    # --- control flow, as while.cc, if.cc and kernel_util.cc copy ---

    def _flow(self, kind: str, op: Any, ins: list[Place], outs: list[Place], where: str) -> None:
        options = op.builtinOptions
        if kind == "CALL_ONCE":
            self._graph(options.initSubgraphIndex)
        elif kind == "IF":
            then, other = options.thenSubgraphIndex, options.elseSubgraphIndex
            branch = then if self.choice.take_then else other
            self.memory.expect(ins[0], where)
            self._copy(ins[1:], self._ports(branch, "inputs"), where)
            self._graph(branch)
            self._copy(self._ports(branch, "outputs"), outs, where)
        else:
            condition, body = options.condSubgraphIndex, options.bodySubgraphIndex
            self._copy(ins, self._ports(condition, "inputs"), where)
            if not self.choice.late:
                self._copy(ins, outs, where)
            self._condition(condition, where)
            if self.choice.late:
                self._copy(ins, self._ports(body, "inputs"), where)
                self._copy(ins, outs, where)
            for _ in range(self.choice.rounds):
                self._copy(outs, self._ports(body, "inputs"), where)
                self._graph(body)
                self._copy(self._ports(body, "outputs"), outs, where)
                self._copy(outs, self._ports(condition, "inputs"), where)
                self._condition(condition, where)

    def _condition(self, graph: int, where: str) -> None:
        self._graph(graph)
        self.memory.expect(self._ports(graph, "outputs")[0], where)

    def _ports(self, graph: int, which: str) -> list[Place]:
        return [(graph, t) for t in integers_of(getattr(self.memory.model.subgraphs[graph], which))]

    def _copy(self, sources: list[Place], targets: list[Place], where: str) -> None:
        """memcpy, one tensor after the other; none where both lie at one address."""
        for source, target in zip(sources, targets, strict=True):
            self.memory.expect(source, where)
            a, b = self.memory.range(source), self.memory.range(target)
            if a and b and a != b and max(a[0], b[0]) < min(a[1], b[1]):
                raise ClobberedError(
                    f"{where} copies {self.memory.name(source)} to {self.memory.name(target)}, "
                    "which overlap"
                )
            self.memory.write(target, self.memory.array(source).reshape(-1))


def planned_places(data: bytes, offsets: Mapping[Place, int]) -> Iterator[Place]:
    """The tensors of a model that take bytes of the head."""
    memory = TokenMemory(schema.ModelT.InitFromPackedBuf(data, 0), offsets)
    for place in offsets:
        if memory.range(place) is not None:
            yield place
