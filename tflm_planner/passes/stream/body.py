"""Draws up a loop: the body and the condition as graphs, and what the main graph runs instead.

    main   X = z, counters, first halos -WHILE- z' -STRIDED_SLICE-RESHAPE- Y
    body   z -GATHER(rows)- x - ... - y -RESHAPE-+
           z -RESHAPE-----------DYNAMIC_UPDATE_SLICE(., y, at)-RESHAPE- z'
    a use  new rows -PAD-GATHER(mask)-CONCATENATION(halo, .)- tile - the operator, VALID
                                                               +- GATHER - the next halo

Every tensor in the place of z takes the place of one that nobody reads any more, so that all of
them can be the same memory. The order of rows inside a tile is the image's, whichever way the loop runs: from the bottom up
the halo is joined below. It knows a `Geometry`; whether it is worth while is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.ir import Model, Op, Tensor
from tflm_planner.ops.window import window_of
from tflm_planner.passes.stream.geometry import Geometry, Use, gathers, height, row_elements
from tflm_planner.passes.stream.readings import DTYPES, ROWS, Reading
from tflm_planner.rewriter_draft import Draft, new_graph, unit_scale

_VALID = 1
_AXES = 4


@dataclass(frozen=True)
class _Variable:
    """A variable of the loop: what it starts with in the main graph, and its two ends in the
    body."""

    start: Tensor
    inside: Tensor
    after: Tensor


class Writer:
    """The drafts of one loop."""

    def __init__(self, model: Model, shape: Geometry) -> None:
        self._shape = shape
        self._main = Draft(model, model.main)
        self._body = Draft(model, new_graph("body"), self._main)
        self._test = Draft(model, new_graph("condition"), self._main)
        self._variables: list[_Variable] = []
        self._tables: dict[bytes, Tensor] = {}
        self._gathers: dict[bytes, Tensor] = {}
        self._turn: Tensor | None = None
        self._rows: dict[int, Tensor] = {}
        self._steps: dict[int, int] = {}
        wide = [u.tile if u.again else shape.rows[id(u.reading.tensor)] for u in shape.uses]
        self._width = max(*wide, 1 if gathers(shape.source) else _AXES)

    def commit(self) -> list[Op]:
        """Put the loop into the model in place of the region; its operators in the main graph."""
        self._draw()
        ends = [v.inside for v in self._variables], [v.after for v in self._variables]
        body = self._body.commit_graph(*ends)
        test = self._test.commit_graph(self._tested, [self._verdict])
        self._while.graphs = {"condSubgraphIndex": [test], "bodySubgraphIndex": [body]}
        self._main.commit(self._shape.ops)
        return self._main.ops

    def _draw(self) -> None:
        shape, result = self._shape, self._shape.result
        start = self._opened()
        inside = self._body.tensor(start, "z", start.shape or ())
        after = self._body.tensor(start, "z", start.shape or ())
        self._variables.append(_Variable(start, inside, after))
        self._source = inside
        if not shape.store.shared:
            self._source = self._body.tensor(shape.source, "x", shape.source.shape or ())
            self._variables.append(_Variable(shape.source, self._source, self._source))
        step = shape.rows[id(result)] * row_elements(result)
        at = self._counter("at", [self._position(shape.store.first, step)],
                           -step if shape.backwards else step)  # fmt: skip
        update = self._reshaped(self._body, self._region(), (step,))
        flat = (shape.store.size,)
        whole = self._reshaped(self._body, inside, flat)
        updated = after if after.shape == flat else self._body.tensor(whole, "z", flat)
        self._body.op("DYNAMIC_UPDATE_SLICE", [whole, update, at.inside], [updated])
        if updated is not after:
            self._reshape(self._body, updated, after)
        self._count()
        self._condition(at, step)
        self._closed()

    # --- counters ---

    def _counter(self, name: str, start: Sequence[int], step: int) -> _Variable:
        """A variable that grows by `step` each turn."""
        first = self._main.integers(name, start)
        inside = self._body.tensor(first, name, (len(start),))
        after = self._body.tensor(first, name, (len(start),))
        made = _Variable(first, inside, after)
        self._variables.append(made)
        self._steps[id(inside)] = step
        return made

    def _count(self) -> None:
        for v in self._variables:
            step = self._steps.get(id(v.inside))
            if step is not None:
                self._body.op("ADD", [v.inside, self._body.integers("step", [step])], [v.after])

    def _condition(self, at: _Variable, step: int) -> None:
        """While the place to write to has not passed the last one."""
        tested = [self._test.tensor(v.inside, "v", v.inside.shape or ()) for v in self._variables]
        place = tested[self._variables.index(at)]
        start = self._position(self._shape.store.first, step)
        if self._shape.backwards:
            limit = self._test.integers("limit", [start - self._shape.turns * step])
            operands = [limit, place]
        else:
            limit = self._test.integers("limit", [start + self._shape.turns * step])
            operands = [place, limit]
        self._verdict = self._test.value("go", "bool", (1,))
        self._test.op("LESS", operands, [self._verdict])
        self._tested = tested

    def _position(self, running: int, length: int) -> int:
        """Where a stretch of the result's store lies, from where it lies in running direction."""
        size = self._shape.store.size
        return size - running - length if self._shape.backwards else running

    # --- the store, before and after ---

    def _opened(self) -> Tensor:
        """The store in the main graph: the input, with more room if need be; or room alone."""
        shape, store = self._shape, self._shape.store
        if not store.shared:
            like = shape.result
            seed = self._filled(self._main, like, (1, 1, 1, 1), None)
            pads = [[0, 0], [0, 0], [0, 0], [0, store.size - 1]]
            room = self._main.tensor(like, "room", (1, 1, 1, store.size))
            self._main.op("PAD", [seed, self._main.integers("pads", pads)], [room])
            return self._reshaped(self._main, room, (store.size,))
        if store.rows == height(shape.source):
            return shape.source
        behind = store.rows - store.lead - height(shape.source)
        ends = (behind, store.lead) if shape.backwards else (store.lead, behind)
        pads = self._main.integers("pads", [[0, 0], ends, [0, 0], [0, 0]])
        room = self._main.tensor(shape.source, "room", _with_rows(shape.source, store.rows))
        self._main.op("PAD", [shape.source, pads], [room])
        return room

    def _closed(self) -> None:
        """WHILE, and the result taken out of the store."""
        shape, store = self._shape, self._shape.store
        after = [self._main.tensor(v.inside, "w", v.inside.shape or ()) for v in self._variables]
        self._while = self._main.op("WHILE", [v.start for v in self._variables], after)
        left, size = after[0], shape.result.elements
        begin = self._position(store.start, size)
        if store.size != size:
            row = row_elements(shape.source) if store.shared else 1
            if begin % row or size % row:
                left, row = self._reshaped(self._main, left, (store.size,)), 1
            left = self._rows_of(self._main, left, begin // row, size // row)
        self._reshape(self._main, left, shape.result)

    # --- the region ---

    def _region(self) -> Tensor:
        """Every operator on the rows of one turn; the last one's result."""
        shape = self._shape
        made = self._rows
        for op in shape.ops:
            out = op.outputs[0]
            tiles = {u.reading.operand: self._tile(u) for u in shape.uses_of(op)}
            if op.kind in ("PAD", "PADV2"):
                made[id(out)] = tiles[0]
                continue
            operands: list[Tensor | None] = []
            for i, t in enumerate(op.inputs):
                same = None if t is None else self._body.same(t) if t.is_constant else tiles[i]
                operands.append(same)
            result = self._body.tensor(out, out.name, _with_rows(out, shape.rows[id(out)]))
            changed = {"padding": _VALID} if window_of(op) is not None else {}
            self._body.clone(op, operands, [result], **changed)
            made[id(out)] = result
        return made[id(shape.result)]

    def _tile(self, use: Use) -> Tensor:
        """The rows that an operator needs in this turn, padded."""
        r, late = use.reading, self._shape.delays[id(use.reading.tensor)]
        count = self._shape.rows[id(r.tensor)]
        if use.again or r.tensor is self._shape.source:
            late, count = (use.halo, use.tile) if use.again else (0, count)
            new = self._taken(late, count)
        else:
            new = self._rows[id(r.tensor)]
        if r.padded or (use.masked and gathers(r.tensor)):
            new = self._padded(use, new, count)
        if use.masked:
            new = self._mask(use, new, count)
        if use.carried:
            new = self._joined(use, new, count)
        if not use.again and use.carried + count > use.tile:
            new = self._edge(new, use.tile, first=True)
        return new

    def _edge(self, rows: Tensor, wanted: int, *, first: bool) -> Tensor:
        """The `wanted` rows that come first in running direction, or last."""
        top = first is not self._shape.backwards
        begin = 0 if top else height(rows) - wanted
        if not gathers(rows):
            return self._rows_of(self._body, rows, begin, wanted)
        kept = self._body.integers("rows", range(begin, begin + wanted))
        return self._gather(rows, kept)

    def _taken(self, late: int, count: int) -> Tensor:
        """Rows of the region's input, `late` before those that are new."""
        store, source = self._shape.store, self._shape.source
        taken = self._shape.rows[id(source)]
        turns = np.arange(self._shape.turns)[:, None]
        rows = store.lead + turns * taken - late + np.arange(count)[None, :]
        fits = rows.min() >= 0 and rows.max() < store.rows
        rows = np.clip(rows, 0 if fits else store.lead, store.rows - 1)
        if not fits:
            rows = np.minimum(rows, store.lead + height(source) - 1)
        if self._shape.backwards:
            rows = store.rows - 1 - rows[:, ::-1]
        key = rows.tobytes()
        if key not in self._gathers:
            self._gathers[key] = self._fetched(rows.astype(np.int32), fits)
        return self._gathers[key]

    def _fetched(self, rows: npt.NDArray[np.int32], regular: bool) -> Tensor:
        """The rows of each turn by GATHER, or where its type has none, by SLICE."""
        source = self._source
        if gathers(source):
            return self._gather(source, self._positions(rows, regular))
        assert regular, "SLICE takes consecutive rows only"
        zeros = np.zeros_like(rows[:, :1])
        begin = self._looked_up(np.concatenate([zeros, rows[:, :1], zeros, zeros], axis=1))
        sizes = _with_rows(source, rows.shape[1])
        made = self._body.tensor(source, "rows", sizes)
        self._body.op("SLICE", [source, begin, self._body.integers("size", sizes)], [made])
        return made

    def _positions(self, rows: npt.NDArray[np.int32], regular: bool) -> Tensor:
        """The rows of each turn as a variable that grows, or from a table."""
        if not regular:
            return self._looked_up(rows)
        step = int(rows[1, 0] - rows[0, 0])
        return self._counter("rows", rows[0].tolist(), step).inside

    def _looked_up(self, values: npt.NDArray[Any], unit: Any = None) -> Tensor:
        """Row `turn` of a constant table (turns, n). unit: quantisation of its values."""
        key = values.tobytes()
        if key not in self._tables:
            wide = np.zeros((values.shape[0], self._width), values.dtype)
            wide[:, : values.shape[1]] = values
            if self._turn is None:
                self._turn = self._counter("turn", [0], self._width).inside
            kind = values.dtype.name
            table = self._body.constant("table", wide.reshape(-1), kind, None, unit)
            size = self._body.integers("size", [values.shape[1]])
            found = self._body.tensor(table, "row", (values.shape[1],))
            self._body.op("SLICE", [table, self._turn, size], [found])
            self._tables[key] = found
        return self._tables[key]

    def _mask(self, use: Use, rows: Tensor, count: int) -> Tensor:
        """Rows that lie outside the image replaced by padding: the row of padding below is taken
        in their place, or they are multiplied by zero."""
        r = use.reading
        late = self._shape.delays[id(r.tensor)]
        turns = np.arange(self._shape.turns)[:, None]
        index = turns * self._shape.rows[id(r.tensor)] - late + np.arange(count)[None, :]
        inside = (index >= 0) & (index < height(r.tensor))
        if self._shape.backwards:
            inside = inside[:, ::-1]
        if gathers(r.tensor):
            places = np.where(inside, np.arange(count)[None, :], count)
            return self._gather(rows, self._looked_up(places.astype(np.int32)))
        factors = self._looked_up(inside.astype(np.int16), unit_scale())
        made = self._body.tensor(rows, "masked", rows.shape or ())
        column = self._reshaped(self._body, factors, (1, count, 1, 1))
        self._body.op("MUL", [rows, column], [made])
        return made

    def _padded(self, use: Use, rows: Tensor, count: int) -> Tensor:
        """Columns and channels padded, and a row of padding below if a mask needs it."""
        r = use.reading
        below = int(use.masked and gathers(r.tensor))
        pads = [[0, 0], [0, below], r.columns, r.channels]
        wide = _padded_shape(r, count + below)
        made = self._body.tensor(r.tensor, "padded", wide)
        paddings = self._body.integers("pads", pads)
        if r.value is None:
            self._body.op("PAD", [rows, paddings], [made])
        else:
            value = self._filled(self._body, r.tensor, (), r.value)
            self._body.op("PADV2", [rows, paddings, value], [made])
        return made

    def _joined(self, use: Use, new: Tensor, count: int) -> Tensor:
        """The halo before the new rows; the last rows of both are the next halo."""
        r, halo = use.reading, use.carried
        first = self._filled(self._main, r.tensor, _padded_shape(r, halo), r.value)
        inside = self._body.tensor(r.tensor, "halo", first.shape or ())
        tile = self._body.tensor(r.tensor, "tile", _padded_shape(r, halo + count))
        parts = [new, inside] if self._shape.backwards else [inside, new]
        self._body.op("CONCATENATION", parts, [tile], axis=ROWS)
        after = self._edge(tile, halo, first=False)
        self._variables.append(_Variable(first, inside, after))
        return tile

    # --- small things ---

    def _gather(self, rows: Tensor, positions: Tensor) -> Tensor:
        made = self._body.tensor(rows, "rows", _with_rows(rows, positions.elements))
        self._body.op("GATHER", [rows, positions], [made], axis=ROWS)
        return made

    def _rows_of(self, draft: Draft, t: Tensor, begin: int, count: int) -> Tensor:
        """Consecutive rows of an image, or a stretch of a flat tensor, by STRIDED_SLICE."""
        sizes = list(t.shape or ())
        axis = ROWS if len(sizes) == 4 else 0
        first, behind = [0] * len(sizes), list(sizes)
        first[axis], behind[axis] = begin, begin + count
        sizes[axis] = count
        limits = [draft.integers("part", v) for v in (first, behind, [1] * len(sizes))]
        made = draft.tensor(t, "part", sizes)
        draft.op("STRIDED_SLICE", [t, *limits], [made])
        return made

    def _reshaped(self, draft: Draft, source: Tensor, shape: tuple[int, ...]) -> Tensor:
        """`source` in another shape."""
        if source.shape == shape:
            return source
        made = draft.tensor(source, "flat", shape)
        self._reshape(draft, source, made)
        return made

    def _reshape(self, draft: Draft, source: Tensor, into: Tensor) -> None:
        new = np.array(into.shape or (), np.int32)
        draft.op("RESHAPE", [source], [into], newShape=new)

    def _filled(
        self, draft: Draft, like: Tensor, shape: tuple[int, ...], value: int | float | None
    ) -> Tensor:
        """A constant of one value, quantised like `like`; None: what stands for zero."""
        values = np.full(shape, _zero(like) if value is None else value, DTYPES[like.type_name])
        return draft.constant("filled", values, like.type_name, like, like.quantization)


def _zero(t: Tensor) -> int:
    """What stands for zero."""
    points = None if t.quantization is None else t.quantization.zeroPoint
    return 0 if points is None or not len(points) or t.type_name == "float32" else int(points[0])


def _with_rows(t: Tensor, rows: int) -> tuple[int, ...]:
    batch, _, *rest = t.shape or ()
    return (batch, rows, *rest)


def _padded_shape(r: Reading, rows: int) -> tuple[int, ...]:
    _, _, columns, channels = r.tensor.shape or (0, 0, 0, 0)
    return (1, rows, columns + sum(r.columns), channels + sum(r.channels))
