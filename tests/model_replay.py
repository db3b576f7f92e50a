"""Replays a planned model byte by byte, with tokens in place of values.

    memory  [ t0 t1 t2 | . . . . | c7 c8 ]     every byte holds the name of what was written there

Each operator must find, at the moment it reads, every byte of every operand as it was produced.
Written from the meaning of the operators and of TFLM's kernels for control flow; it shares no
code with the planner. Where a kernel's order of reads and writes could matter, an overlap of a
result with an operand is an error unless both hold the same bytes there, or the operator computes
element by element and both lie exactly upon each other, or makes other types of elements, one by
one, and none is written over one that is still to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.models.build import schema

Tokens = npt.NDArray[np.int64]
Place = tuple[int, int]
"""(sub-graph, tensor or operator index)"""
Ranges = Mapping[Place, Sequence[tuple[int, int]]]
"""Operator -> (offset, size) of each of its scratch buffers."""

PLAN = b"OfflineMemoryAllocation"
_SIZES = {
    "FLOAT32": 4, "INT32": 4, "UINT32": 4, "INT64": 8, "UINT64": 8, "FLOAT64": 8, "COMPLEX64": 8,
    "COMPLEX128": 16, "INT16": 2, "UINT16": 2, "FLOAT16": 2, "BFLOAT16": 2, "INT8": 1, "UINT8": 1,
    "BOOL": 1, "INT4": 1, "RESOURCE": 4, "VARIANT": 4,
}  # fmt: skip
_TYPES = {v: _SIZES.get(k, 0) for k, v in vars(schema.TensorType).items() if isinstance(v, int)}
_KINDS = {v: k for k, v in vars(schema.BuiltinOperator).items() if isinstance(v, int)}
_ELEMENT_WISE = {
    "ADD", "SUB", "MUL", "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU",
    "QUANTIZE", "SOFTMAX",
}  # fmt: skip

_RETYPING = {"QUANTIZE", "DEQUANTIZE", "CAST"}
"""They read an element and write it, one after the other."""
_CHARACTERS = {schema.TensorType.INT8, schema.TensorType.UINT8}
"""Compilers keep the order of reads and writes only where one of the two is such."""


class ClobberedError(Exception):
    """A byte did not hold what its reader expects; the text says whose, and who reads."""


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
                _Run(model, offsets, scratch or {}, choice, frozenset(dropped)).start(root)
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


def _list(vector: Any) -> list[int]:
    return [] if vector is None else [int(v) for v in vector]


@dataclass
class _Run:
    """One run of one graph, and of what it calls."""

    model: Any
    offsets: Mapping[Place, int]
    scratch: Ranges
    choice: Choice
    dropped: frozenset[int] = frozenset()
    memory: Tokens = field(default_factory=lambda: np.zeros(1 << 16, np.int64))
    contents: dict[Place, Tokens] = field(default_factory=dict[Place, Tokens])
    last_token: int = 0

    def start(self, root: int) -> None:
        """Write the inputs as an application does, run, and look at the outputs."""
        graph = self.model.subgraphs[root]
        inputs = [(root, t) for t in dict.fromkeys(_list(graph.inputs))]
        for place in inputs:
            self._write(place, self._fresh(self._size(place)))
        for place in inputs:
            self._expect(place, "the start")
        self._graph(root)
        for t in _list(graph.outputs):
            self._expect((root, t), "the application")

    def _graph(self, g: int) -> None:
        for i, op in enumerate(self.model.subgraphs[g].operators or []):
            code = self.model.operatorCodes[op.opcodeIndex]
            kind = _KINDS.get(max(code.builtinCode, code.deprecatedBuiltinCode), "?")
            where = f"operator {i} ({kind}) of graph {g}"
            ins = [(g, t) for t in _list(op.inputs) if t >= 0]
            outs = [(g, t) for t in _list(op.outputs)]
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
            self._expect(place, where)
        results = self._moved(kind, op, ins, outs)
        moves = results is not None
        results = results or [self._fresh(self._size(p)) for p in outs]
        for out, result in zip(outs, results, strict=True):
            for place in dict.fromkeys(ins):
                self._check_hazard(kind, place, out, result, where, moves=moves, first=ins[0])
        for out, result in zip(outs, results, strict=True):
            self._write(out, result)
        for out in outs:
            self._expect(out, f"{where}, after writing all its results,")

    def _absent(self, kind: str, op: Any, ins: list[Place], outs: list[Place], where: str) -> None:
        """Nothing is written: memory must hold the results by itself."""
        results = self._moved(kind, op, ins, outs)
        if results is None:
            raise ClobberedError(f"{where} was dropped, though it does more than move bytes")
        for out, result in zip(outs, results, strict=True):
            self.contents[out] = result.copy()
            self._expect(out, f"the place of the dropped {where}")

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
        a, b = self._range(operand), self._range(out)
        if a is None or b is None or max(a[0], b[0]) >= min(a[1], b[1]):
            return
        if kind in _ELEMENT_WISE and a == b and self._width(operand) == self._width(out):
            return
        if kind in _RETYPING and self._reads_in_time(operand, out, a[0], b[0]):
            return
        if kind == "DYNAMIC_UPDATE_SLICE" and a == b and operand == first:
            return  # nothing of the operand is read or written but for the update's place
        low, high = max(a[0], b[0]), min(a[1], b[1])
        same = np.array_equal(self.memory[low:high], result[low - b[0] : high - b[0]])
        if not (moves and same):
            raise ClobberedError(f"{where} writes {self._name(out)} over {self._name(operand)}")

    def _reads_in_time(self, operand: Place, out: Place, first: int, target: int) -> bool:
        """Whether an operator that reads and writes element by element reads each, from `first`
        on, before one that was written, from `target` on, lies over it."""
        if not {self._tensor(operand).type, self._tensor(out).type} & _CHARACTERS:
            return False
        wide, made = self._width(operand), self._width(out)
        starts = (first + i * wide for i in range(self._size(operand) // wide))
        return all(
            start >= target + i * made or start + wide <= target or i == 0
            for i, start in enumerate(starts)
        )

    def _moved(
        self, kind: str, op: Any, ins: list[Place], outs: list[Place]
    ) -> list[Tokens] | None:
        """Contents of the results of an operator that only moves bytes; None for others."""
        rule = _MOVES.get(kind)
        if rule is None or not outs or len(ins) != len(_list(op.inputs)):
            return None
        made = rule(self, op, ins, outs)
        if made is None or [m.size for m in made] != [self._size(p) for p in outs]:
            return None
        return [np.ascontiguousarray(m).reshape(-1) for m in made]

    def array(self, place: Place) -> npt.NDArray[Any]:
        """The content of a tensor: its shape, and a last axis of bytes. For rules."""
        tokens = self.contents.get(place)
        if tokens is None or tokens.size != self._size(place):
            tokens = self.contents[place] = self._fresh(self._size(place))
        return tokens.reshape(*self._shape(place), self._width(place))

    def integers(self, place: Place) -> list[int] | None:
        """The values of a constant of integers; None when it is none."""
        data = self.model.buffers[self._tensor(place).buffer].data
        if data is None or not len(data) or self._width(place) not in (4, 8):
            return None
        return [int(v) for v in np.asarray(data, np.uint8).view(f"<i{self._width(place)}")]

    def _spoil_scratch(self, op: Place, around: list[Place], where: str) -> None:
        """Scratch is written at any time while its operator runs."""
        own = sorted(self.scratch.get(op, ()))
        for (a, length), (b, _) in pairwise(own):
            if a + length > b:
                raise ClobberedError(f"two scratch buffers of {where} overlap")
        for offset, size in own:
            for place in around:
                at = self._range(place)
                if at is not None and max(offset, at[0]) < min(offset + size, at[1]):
                    raise ClobberedError(f"scratch of {where} lies over {self._name(place)}")
            self._reserve(offset + size)
            self.memory[offset : offset + size] = self._fresh(size)

    # --- control flow, as while.cc, if.cc and kernel_util.cc copy ---

    def _flow(self, kind: str, op: Any, ins: list[Place], outs: list[Place], where: str) -> None:
        options = op.builtinOptions
        if kind == "CALL_ONCE":
            self._graph(options.initSubgraphIndex)
        elif kind == "IF":
            then, other = options.thenSubgraphIndex, options.elseSubgraphIndex
            branch = then if self.choice.take_then else other
            self._expect(ins[0], where)
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
        self._expect(self._ports(graph, "outputs")[0], where)

    def _ports(self, graph: int, which: str) -> list[Place]:
        return [(graph, t) for t in _list(getattr(self.model.subgraphs[graph], which))]

    def _copy(self, sources: list[Place], targets: list[Place], where: str) -> None:
        """memcpy, one tensor after the other; none where both lie at one address."""
        for source, target in zip(sources, targets, strict=True):
            self._expect(source, where)
            a, b = self._range(source), self._range(target)
            if a and b and a != b and max(a[0], b[0]) < min(a[1], b[1]):
                raise ClobberedError(
                    f"{where} copies {self._name(source)} to {self._name(target)}, which overlap"
                )
            self._write(target, self.array(source).reshape(-1))

    # --- memory ---

    def _fresh(self, count: int) -> Tokens:
        self.last_token += count
        return np.arange(self.last_token - count + 1, self.last_token + 1)

    def _reserve(self, end: int) -> None:
        if end > self.memory.size:
            self.memory = np.concatenate([self.memory, np.zeros(2 * end, np.int64)])

    def _write(self, place: Place, tokens: Tokens) -> None:
        self.contents[place] = tokens.copy()
        at = self._range(place)
        if at is not None:
            if at[0] < 0:
                raise ClobberedError(f"{self._name(place)} lies below the arena")
            self._reserve(at[1])
            self.memory[at[0] : at[1]] = tokens

    def _expect(self, place: Place, reader: str) -> None:
        at = self._range(place)
        if at is None:
            return
        wanted = self.contents.get(place)
        if wanted is None or at[0] < 0:
            raise ClobberedError(f"{reader} reads {self._name(place)}, which nobody wrote")
        self._reserve(at[1])
        wrong = np.flatnonzero(self.memory[at[0] : at[1]] != wanted)
        if wrong.size:
            raise ClobberedError(
                f"{reader} finds {wrong.size} bytes of {self._name(place)} overwritten, "
                f"from byte {int(wrong[0])} on"
            )

    def _range(self, place: Place) -> tuple[int, int] | None:
        """Bytes that the tensor takes in the head; None when it lies elsewhere or is empty."""
        tensor = self._tensor(place)
        buffer = self.model.buffers[tensor.buffer]
        constant = (buffer.data is not None and len(buffer.data)) or buffer.offset > 1
        if constant or tensor.isVariable or tensor.externalBuffer or place not in self.offsets:
            return None
        size = self._size(place)
        offset = self.offsets[place]
        return (offset, offset + size) if size else None

    def _tensor(self, place: Place) -> Any:
        return self.model.subgraphs[place[0]].tensors[place[1]]

    def _shape(self, place: Place) -> list[int]:
        return _list(self._tensor(place).shape)

    def _width(self, place: Place) -> int:
        return _TYPES.get(self._tensor(place).type, 0)

    def _size(self, place: Place) -> int:
        return int(np.prod(self._shape(place), dtype=np.int64)) * self._width(place)

    def _name(self, place: Place) -> str:
        return f"tensor {place[1]} of graph {place[0]} ({self._tensor(place).name!r})"


Moved = list[npt.NDArray[Any]] | None


def _same(run: _Run, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    return [run.array(ins[0])]


def _joined(run: _Run, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    if op.builtinOptions is None or op.builtinOptions.fusedActivationFunction:
        return None
    axis = _axis(op.builtinOptions.axis, len(run.array(ins[0]).shape) - 1)
    return [np.concatenate([run.array(p) for p in ins], axis)]


def _stacked(run: _Run, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    axis = _axis(op.builtinOptions.axis, len(run.array(ins[0]).shape))
    return [np.stack([run.array(p) for p in ins], axis)]


def _unstacked(run: _Run, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    whole = run.array(ins[0])
    axis = _axis(op.builtinOptions.axis, whole.ndim - 1)
    return list(np.moveaxis(whole, axis, 0))


def _parts(run: _Run, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    split = len(ins) == 2  # SPLIT reads (axis, data), SPLIT_V reads (data, sizes, axis)
    axis = run.integers(ins[0] if split else ins[2])
    whole = run.array(ins[1] if split else ins[0])
    if axis is None:
        return None
    at = _axis(axis[0], whole.ndim - 1)
    sizes = [run.array(p).shape[at] for p in outs]
    return np.split(whole, list(np.cumsum(sizes[:-1])), at)


def _box(run: _Run, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    begin, shape = run.integers(ins[1]), run.array(outs[0]).shape[:-1]
    if begin is None or len(begin) != len(shape):
        return None
    return [run.array(ins[0])[tuple(slice(b, b + n) for b, n in zip(begin, shape, strict=True))]]


def _strided(run: _Run, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    """In steps of one, with limits written out."""
    begin, end, steps = (run.integers(p) for p in ins[1:4])
    options = op.builtinOptions
    if begin is None or end is None or steps is None or set(steps) != {1} or min(begin) < 0:
        return None
    if options.beginMask or options.endMask or options.shrinkAxisMask or options.newAxisMask:
        return None
    return [run.array(ins[0])[tuple(slice(b, e) for b, e in zip(begin, end, strict=True))]]


def _gathered(run: _Run, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    at = run.integers(ins[1])
    if at is None or op.builtinOptions is None or op.builtinOptions.batchDims:
        return None
    whole = run.array(ins[0])
    return [np.take(whole, at, _axis(op.builtinOptions.axis, whole.ndim - 1))]


def _axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


_MOVES: dict[str, Callable[[_Run, Any, list[Place], list[Place]], Moved]] = {
    "RESHAPE": _same, "SQUEEZE": _same, "EXPAND_DIMS": _same, "CONCATENATION": _joined,
    "PACK": _stacked, "UNPACK": _unstacked, "SPLIT": _parts, "SPLIT_V": _parts, "SLICE": _box,
    "STRIDED_SLICE": _strided, "GATHER": _gathered,
}  # fmt: skip


def planned_places(data: bytes, offsets: Mapping[Place, int]) -> Iterator[Place]:
    """The tensors of a model that take bytes of the head."""
    run = _Run(schema.ModelT.InitFromPackedBuf(data, 0), offsets, {}, CHOICES[0])
    for place in offsets:
        if run._range(place) is not None:
            yield place
