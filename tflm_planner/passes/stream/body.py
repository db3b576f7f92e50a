"""Draws up a loop: the body and the condition as graphs, and what the main graph runs instead.

    main   X = z, counters, first halos -WHILE- z' -STRIDED_SLICE-RESHAPE- Y
    body   z -GATHER(rows)- x - ... - y -RESHAPE-+
           z -RESHAPE-----------DYNAMIC_UPDATE_SLICE(., y, at)-RESHAPE- z'
    a use  new rows -PAD-GATHER(mask)-CONCATENATION(halo, .)- tile - the operator, VALID
                                                               +- GATHER - the next halo

Every tensor in the place of z takes the place of one that nobody reads any more, so that all of
them can be the same memory. The order of rows inside a tile is the image's, whichever way the loop
runs: from the bottom up the halo is joined below. It knows a `Geometry`; whether it is worth
while is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.ir import Model, Op, Tensor
from tflm_planner.ops.window import window_of
from tflm_planner.passes.stream.geometry import Geometry, Use
from tflm_planner.passes.stream.peel import Unrolled
from tflm_planner.passes.stream.pieces import Pieces, padded_shape, with_rows
from tflm_planner.passes.stream.readings import gathers, height, row_elements
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
        self._main = Pieces(Draft(model, model.main))
        self._body = Pieces(Draft(model, new_graph("body"), self._main.draft))
        self._test = Draft(model, new_graph("condition"), self._main.draft)
        self._variables: list[_Variable] = []
        self._halos: list[tuple[Use, _Variable]] = []
        self._tiles: list[tuple[Use, Tensor, Tensor, Tensor]] = []
        self._tables: dict[bytes, Tensor] = {}
        self._gathers: dict[bytes, Tensor] = {}
        self._turn: Tensor | None = None
        self._rows: dict[int, Tensor] = {}
        self._steps: dict[int, int] = {}
        wide = [u.tile if u.again else shape.rows[id(u.reading.tensor)] for u in shape.uses]
        self._width = max(*wide, 1 if gathers(shape.source) else _AXES)
        first, last = shape.peeled
        self._turns = np.arange(first, shape.turns - last)[:, None]
        """The turns of the loop, as a column."""

    def commit(self) -> list[Op]:
        """Put the loop into the model in place of the region; its operators in the main graph."""
        self._draw()
        ends = [v.inside for v in self._variables], [v.after for v in self._variables]
        body = self._body.draft.commit_graph(*ends)
        test = self._test.commit_graph(self._tested, [self._verdict])
        self._while.graphs = {"condSubgraphIndex": [test], "bodySubgraphIndex": [body]}
        self._main.draft.commit(self._shape.ops)
        return self._main.draft.ops

    def _draw(self) -> None:
        shape, draft = self._shape, self._body.draft
        self._unrolled = Unrolled(self._main, shape, self._opened())
        self._start_ahead()
        for turn in range(shape.peeled[0]):
            self._unrolled.run(turn)
        start = self._unrolled.store
        inside = draft.tensor(start, "z", start.shape or ())
        after = draft.tensor(start, "z", start.shape or ())
        self._variables.append(_Variable(start, inside, after))
        self._source = inside
        if not shape.store.shared:
            self._source = draft.tensor(shape.source, "x", shape.source.shape or ())
            self._variables.append(_Variable(shape.source, self._source, self._source))
        step = shape.step
        place = [shape.place(shape.peeled[0])]
        at = self._counter("at", place, -step if shape.backwards else step)
        update = self._body.reshaped(self._region(), (step,))
        flat = (shape.store.size,)
        whole = self._body.reshaped(inside, flat)
        updated = after if after.shape == flat else draft.tensor(whole, "z", flat)
        draft.op("DYNAMIC_UPDATE_SLICE", [whole, update, at.inside], [updated])
        if updated is not after:
            self._body.reshape(updated, after)
        self._count()
        self._condition(at)
        self._closed()

    # --- counters ---

    def _counter(self, name: str, start: Sequence[int], step: int) -> _Variable:
        """A variable that grows by `step` each turn."""
        first = self._main.draft.integers(name, start)
        inside = self._body.draft.tensor(first, name, (len(start),))
        after = self._body.draft.tensor(first, name, (len(start),))
        made = _Variable(first, inside, after)
        self._variables.append(made)
        self._steps[id(inside)] = step
        return made

    def _count(self) -> None:
        draft = self._body.draft
        for v in self._variables:
            step = self._steps.get(id(v.inside))
            if step is not None:
                draft.op("ADD", [v.inside, draft.integers("step", [step])], [v.after])

    def _condition(self, at: _Variable) -> None:
        """While the place to write to has not passed the last one."""
        tested = [self._test.tensor(v.inside, "v", v.inside.shape or ()) for v in self._variables]
        place = tested[self._variables.index(at)]
        limit = self._test.integers(
            "limit", [self._shape.place(self._shape.turns - self._shape.peeled[1])]
        )
        self._verdict = self._test.value("go", "bool", (1,))
        operands = [limit, place] if self._shape.backwards else [place, limit]
        self._test.op("LESS", operands, [self._verdict])
        self._tested = tested

    # --- the store, before and after ---

    def _opened(self) -> Tensor:
        """The store in the main graph: the input, with more room if need be; or room alone."""
        shape, store, draft = self._shape, self._shape.store, self._main.draft
        if not store.shared:
            like = shape.result
            seed = self._main.filled(like, (1, 1, 1, 1), None)
            pads = [[0, 0], [0, 0], [0, 0], [0, store.size - 1]]
            room = draft.tensor(like, "room", (1, 1, 1, store.size))
            draft.op("PAD", [seed, draft.integers("pads", pads)], [room])
            return self._main.reshaped(room, (store.size,))
        if store.rows == height(shape.source):
            return shape.source
        behind = store.rows - store.lead - height(shape.source)
        ends = (behind, store.lead) if shape.backwards else (store.lead, behind)
        pads = draft.integers("pads", [[0, 0], ends, [0, 0], [0, 0]])
        room = draft.tensor(shape.source, "room", with_rows(shape.source, store.rows))
        draft.op("PAD", [shape.source, pads], [room])
        return room

    def _closed(self) -> None:
        """WHILE, the turns after it, and the result taken out of the store."""
        shape, store, draft = self._shape, self._shape.store, self._main.draft
        after = [draft.tensor(v.inside, "w", v.inside.shape or ()) for v in self._variables]
        self._while = draft.op("WHILE", [v.start for v in self._variables], after)
        by_variable = {id(v): w for v, w in zip(self._variables, after, strict=True)}
        self._unrolled.store = after[0]
        if not store.shared and shape.peeled[1]:
            self._unrolled.source = after[1]
        self._unrolled.halos = {id(u): by_variable[id(v)] for u, v in self._halos}
        for turn in range(shape.turns - shape.peeled[1], shape.turns):
            self._unrolled.run(turn)
        left, size = self._unrolled.store, shape.result.elements
        begin = store.size - store.start - size if shape.backwards else store.start
        if store.size != size:
            row = row_elements(shape.source) if store.shared else 1
            if begin % row or size % row:
                left, row = self._main.reshaped(left, (store.size,)), 1
            left = self._main.part(left, begin // row, size // row)
        self._main.reshape(left, shape.result)

    # --- the region ---

    def _region(self) -> Tensor:
        """Every operator on the rows of one turn; the last one's result."""
        shape, draft, made = self._shape, self._body.draft, self._rows
        for op in shape.ops:
            out = op.outputs[0]
            tiles = {u.reading.operand: self._tile(u) for u in shape.uses_of(op)}
            if shape.backwards:
                self._carry_on()
            if op.kind in ("PAD", "PADV2"):
                made[id(out)] = tiles[0]
                self._carry_on()
                continue
            made[id(out)] = draft.tensor(out, out.name, with_rows(out, shape.rows[id(out)]))
            operands = [
                None if t is None else draft.same(t) if t.is_constant else tiles[i]
                for i, t in enumerate(op.inputs)
            ]
            changed = {"padding": _VALID} if window_of(op) is not None else {}
            draft.clone(op, operands, [made[id(out)]], **changed)
            self._carry_on()
        return made[id(shape.result)]

    def _tile(self, use: Use) -> Tensor:
        """The rows that an operator needs in this turn, padded."""
        r = use.reading
        count, late = self._shape.rows[id(r.tensor)], self._shape.delays[id(r.tensor)]
        if use.again:
            return self._body.padded(r, self._taken(use.halo + late, use.tile), 0, 0)
        from_store = r.tensor is self._shape.source
        new = self._taken(late, count) if from_store else self._rows[id(r.tensor)]
        new = self._body.padded(r, new, 0, int(use.masked and gathers(r.tensor)))
        if use.masked:
            new = self._masked(use, new, count)
        if use.carried:
            new = self._joined(use, new)
        return self._edge(new, use.tile, first=True)

    def _edge(self, rows: Tensor, wanted: int, *, first: bool) -> Tensor:
        """The `wanted` rows that come first in running direction, or last."""
        top = first is not self._shape.backwards
        return self._body.rows_of(rows, 0 if top else height(rows) - wanted, wanted)

    def _joined(self, use: Use, new: Tensor) -> Tensor:
        """The halo before the new rows; the last rows of both are the next halo."""
        r, halo = use.reading, use.carried
        first = self._unrolled.halos.get(id(use))
        if first is None:
            first = self._main.filled(r.tensor, padded_shape(r, halo), r.value)
        inside = self._body.draft.tensor(r.tensor, "halo", first.shape or ())
        parts = [new, inside] if self._shape.backwards else [inside, new]
        tile = self._body.joined(r, parts)
        self._tiles.append((use, first, inside, tile))
        return tile

    def _carry_on(self) -> None:
        """The next halos of an operator's tiles. From the top down they are taken when the tile
        is not needed any more: its last rows can then move to where its first ones are."""
        for use, first, inside, tile in self._tiles:
            made = _Variable(first, inside, self._edge(tile, use.carried, first=False))
            self._variables.append(made)
            self._halos.append((use, made))
        self._tiles.clear()

    # --- rows of the input ---

    def _start_ahead(self) -> None:
        """The first halos of a loop that starts ahead: rows that it skips, under padding."""
        shape, store = self._shape, self._shape.store
        ahead = -shape.delays[id(shape.source)]
        image = self._unrolled.store if store.shared else shape.source
        for use in shape.uses:
            if use.reading.tensor is shape.source and use.carried and ahead:
                real = min(ahead, use.carried)
                begin = store.lead + ahead - real
                begin = store.rows - begin - real if shape.backwards else begin
                rows = self._main.rows_of(image, begin, real)
                pads = (use.carried - real, 0)
                above, below = pads[::-1] if shape.backwards else pads
                halo = self._main.padded(use.reading, rows, above, below)
                self._unrolled.halos[id(use)] = halo

    def _taken(self, late: int, count: int) -> Tensor:
        """So many rows of the region's input from turn * rows - `late` on."""
        store, source = self._shape.store, self._shape.source
        rows = self._turns * self._shape.rows[id(source)] - late + np.arange(count)[None, :]
        rows += store.lead
        fits = bool(rows.min() >= 0 and rows.max() < store.rows)
        if not fits:
            rows = np.clip(rows, store.lead, store.lead + height(source) - 1)
        if self._shape.backwards:
            rows = store.rows - 1 - rows[:, ::-1]
        key = rows.tobytes()
        if key not in self._gathers:
            self._gathers[key] = self._fetched(rows.astype(np.int32), fits)
        return self._gathers[key]

    def _fetched(self, rows: npt.NDArray[np.int32], regular: bool) -> Tensor:
        """The rows of each turn by GATHER, or where its type has none, by SLICE."""
        source, draft = self._source, self._body.draft
        if gathers(source):
            return self._body.gather(source, self._positions(rows, regular))
        assert regular, "SLICE takes consecutive rows only"
        zeros = np.zeros_like(rows[:, :1])
        begin = self._looked_up(np.concatenate([zeros, rows[:, :1], zeros, zeros], axis=1))
        sizes = with_rows(source, rows.shape[1])
        made = draft.tensor(source, "rows", sizes)
        draft.op("SLICE", [source, begin, draft.integers("size", sizes)], [made])
        return made

    def _positions(self, rows: npt.NDArray[np.int32], regular: bool) -> Tensor:
        """The rows of each turn as a variable that grows, or from a table."""
        if not regular:
            return self._looked_up(rows)
        return self._counter("rows", rows[0].tolist(), int(rows[1, 0] - rows[0, 0])).inside

    def _looked_up(self, values: npt.NDArray[Any], unit: Any = None) -> Tensor:
        """Row `turn` of a constant table (turns, n). unit: quantisation of its values."""
        key = values.tobytes()
        if key not in self._tables:
            draft = self._body.draft
            wide = np.zeros((values.shape[0], self._width), values.dtype)
            wide[:, : values.shape[1]] = values
            if self._turn is None:
                self._turn = self._counter("turn", [0], self._width).inside
            table = draft.constant("table", wide.reshape(-1), values.dtype.name, None, unit)
            size = draft.integers("size", [values.shape[1]])
            found = draft.tensor(table, "row", (values.shape[1],))
            draft.op("SLICE", [table, self._turn, size], [found])
            self._tables[key] = found
        return self._tables[key]

    def _masked(self, use: Use, rows: Tensor, count: int) -> Tensor:
        """Rows that lie outside the image replaced by padding: the row of padding below is taken
        in their place, or they are multiplied by zero."""
        r = use.reading
        late = self._shape.delays[id(r.tensor)]
        index = self._turns * self._shape.rows[id(r.tensor)] - late + np.arange(count)[None, :]
        inside = (index >= 0) & (index < height(r.tensor))
        if self._shape.backwards:
            inside = inside[:, ::-1]
        if gathers(r.tensor):
            places = np.where(inside, np.arange(count)[None, :], count)
            return self._body.gather(rows, self._looked_up(places.astype(np.int32)))
        factors = self._looked_up(inside.astype(np.int16), unit_scale())
        made = self._body.draft.tensor(rows, "masked", rows.shape or ())
        column = self._body.reshaped(factors, (1, count, 1, 1))
        self._body.draft.op("MUL", [rows, column], [made])
        return made
