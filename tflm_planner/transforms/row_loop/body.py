"""Drafts a loop: the body and the condition as graphs, and the operators that the main graph runs
instead of the region.

    main   X = z, counters, first halos -WHILE- z' -STRIDED_SLICE-RESHAPE- Y
    body   z -GATHER(rows)- x - ... - y -RESHAPE-+                   (x to y: see `turn`)
           z -RESHAPE-----------DYNAMIC_UPDATE_SLICE(., y, at)-RESHAPE- z'

Every tensor that stands for z is made from one that no operator reads any more, so that all of them
can share the same memory. It knows a `LoopGeometry`, but not whether the loop is worthwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflm_planner.model.draft import Draft, new_graph
from tflm_planner.model.edit import set_loop_graphs
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.transforms.row_loop.geometry import LoopGeometry, LoopOperand
from tflm_planner.transforms.row_loop.operand_rows import gathers, height, row_elements
from tflm_planner.transforms.row_loop.peel import Unrolled
from tflm_planner.transforms.row_loop.row_ops import RowOps, padded_shape, with_rows
from tflm_planner.transforms.row_loop.turn import Turn

_AXES = 4


@dataclass(frozen=True)
class _Variable:
    """A variable of the loop: its first value in the main graph, and in the body the tensors with
    its value before and after a turn."""

    start: Tensor
    inside: Tensor
    after: Tensor


class LoopBuilder(Turn):
    """The drafts of one loop."""

    def __init__(self, model: Model, geometry: LoopGeometry) -> None:
        self._main = RowOps(Draft(model, model.main))
        body = RowOps(Draft(model, new_graph(model, "body"), self._main.draft))
        wide = [
            use.tile if use.rereads_store else geometry.rows[use.reading.tensor]
            for use in geometry.uses
        ]
        super().__init__(geometry, body, max(*wide, 1 if gathers(geometry.source) else _AXES))
        self._test = Draft(model, new_graph(model, "condition"), self._main.draft)
        self._variables: list[_Variable] = []
        self._halos: list[tuple[LoopOperand, _Variable]] = []
        self._starts: dict[Tensor, Tensor] = {}
        self._gathers: dict[bytes, Tensor] = {}
        self._turn: Tensor | None = None
        self._steps: dict[Tensor, int] = {}

    def commit(self) -> list[Op]:
        """Replace the region of the model by the loop; returns the loop's operators in the main
        graph."""
        self._draw()
        ends = [v.inside for v in self._variables], [v.after for v in self._variables]
        body = self._body.draft.commit_graph(*ends)
        test = self._test.commit_graph(self._tested, [self._verdict])
        set_loop_graphs(self._while, condition=test, body=body)
        self._main.draft.drop_unread([self._geometry.result])  # halos that no turn takes over
        self._main.draft.commit(self._geometry.ops)
        return self._main.draft.ops

    def _draw(self) -> None:
        geometry, draft = self._geometry, self._body.draft
        self._unrolled = Unrolled(self._main, geometry, self._make_store())
        self._start_ahead()
        for turn in range(geometry.peeled[0]):
            self._unrolled.run(turn)
        start = self._unrolled.store
        inside = draft.tensor(start, "z", start.shape or ())
        after = draft.tensor(start, "z", start.shape or ())
        self._variables.append(_Variable(start, inside, after))
        self._source = inside
        if not geometry.store.shared:
            self._source = draft.tensor(geometry.source, "x", geometry.source.shape or ())
            self._variables.append(_Variable(geometry.source, self._source, self._source))
        step = geometry.step
        place = [geometry.place(geometry.peeled[0])]
        at = self._counter("at", place, -step if geometry.backwards else step)
        update = self._body.reshape(self._region(), (step,))
        flat = (geometry.store.size,)
        image = self._body.reshape(inside, flat)
        updated = after if after.shape == flat else draft.tensor(image, "z", flat)
        draft.op("DYNAMIC_UPDATE_SLICE", [image, update, at.inside], [updated])
        if updated is not after:
            self._body.reshape_into(updated, after)
        self._count()
        self._condition(at)
        self._finish_loop()

    # --- counters ---

    def _counter(self, name: str, start: Sequence[int], step: int) -> _Variable:
        """A variable that grows by `step` in each turn."""
        first = self._main.draft.integers(name, start)
        inside = self._body.draft.tensor(first, name, (len(start),))
        after = self._body.draft.tensor(first, name, (len(start),))
        variable = _Variable(first, inside, after)
        self._variables.append(variable)
        self._steps[inside] = step
        return variable

    def _count(self) -> None:
        draft = self._body.draft
        for v in self._variables:
            step = self._steps.get(v.inside)
            if step is not None:
                draft.op("ADD", [v.inside, draft.integers("step", [step])], [v.after])

    def _condition(self, at: _Variable) -> None:
        """Draft the condition: the loop runs until the position to write to has passed the last
        one."""
        tested = [self._test.tensor(v.inside, "v", v.inside.shape or ()) for v in self._variables]
        place = tested[self._variables.index(at)]
        limit = self._test.integers(
            "limit", [self._geometry.place(self._geometry.turns - self._geometry.peeled[1])]
        )
        self._verdict = self._test.value("go", "bool", (1,))
        operands = [limit, place] if self._geometry.backwards else [place, limit]
        self._test.op("LESS", operands, [self._verdict])
        self._tested = tested

    def _clock(self) -> Tensor:
        if self._turn is None:
            self._turn = self._counter("turn", [0], self._width).inside
        return self._turn

    # --- halos ---

    def _halo(self, use: LoopOperand) -> Tensor:
        first = self._unrolled.halos.get(use)
        if first is None:
            r = use.reading
            first = self._main.fill(r.tensor, padded_shape(r, use.carried), r.value)
        inside = self._body.draft.tensor(use.reading.tensor, "halo", first.shape or ())
        self._starts[inside] = first
        return inside

    def _leave(self, use: LoopOperand, before: Tensor, after: Tensor) -> None:
        variable = _Variable(self._starts[before], before, after)
        self._variables.append(variable)
        self._halos.append((use, variable))

    # --- the store, before and after ---

    def _make_store(self) -> Tensor:
        """The store in the main graph: the input, padded if the store must be longer, or zeros."""
        geometry, store, draft = self._geometry, self._geometry.store, self._main.draft
        if not store.shared:
            like = geometry.result
            seed = self._main.fill(like, (1, 1, 1, 1), None)
            pads = [[0, 0], [0, 0], [0, 0], [0, store.size - 1]]
            room = draft.tensor(like, "room", (1, 1, 1, store.size))
            draft.op("PAD", [seed, draft.integers("pads", pads)], [room])
            return self._main.reshape(room, (store.size,))
        if store.rows == height(geometry.source):
            return geometry.source
        behind = store.rows - store.lead - height(geometry.source)
        ends = (behind, store.lead) if geometry.backwards else (store.lead, behind)
        pads = draft.integers("pads", [[0, 0], ends, [0, 0], [0, 0]])
        room = draft.tensor(geometry.source, "room", with_rows(geometry.source, store.rows))
        draft.op("PAD", [geometry.source, pads], [room])
        return room

    def _finish_loop(self) -> None:
        """The WHILE, the turns that run after it, and the result, which is cut out of the store."""
        geometry, store, draft = self._geometry, self._geometry.store, self._main.draft
        after = [draft.tensor(v.inside, "w", v.inside.shape or ()) for v in self._variables]
        self._while = draft.op("WHILE", [v.start for v in self._variables], after)
        by_variable = dict(zip(self._variables, after, strict=True))
        self._unrolled.store = after[0]
        if not store.shared and geometry.peeled[1]:
            self._unrolled.source = after[1]
        self._unrolled.halos = {use: by_variable[v] for use, v in self._halos}
        for turn in range(geometry.turns - geometry.peeled[1], geometry.turns):
            self._unrolled.run(turn)
        left, size = self._unrolled.store, geometry.result.elements
        begin = store.size - store.start - size if geometry.backwards else store.start
        if store.size != size:
            row = row_elements(geometry.source) if store.shared else 1
            if begin % row or size % row:
                left, row = self._main.reshape(left, (store.size,)), 1
            left = self._main.part(left, begin // row, size // row)
        self._main.reshape_into(left, geometry.result)

    # --- rows of the input ---

    def _start_ahead(self) -> None:
        """Make the first halos of a loop that starts ahead: the rows of the input that the loop
        skips, with padding above them."""
        geometry, store = self._geometry, self._geometry.store
        ahead = -geometry.delays[geometry.source]
        image = self._unrolled.store if store.shared else geometry.source
        for use in geometry.uses:
            if use.reading.tensor is geometry.source and use.carried and ahead:
                real = min(ahead, use.carried)
                begin = store.lead + ahead - real
                begin = store.rows - begin - real if geometry.backwards else begin
                rows = self._main.rows_of(image, begin, real)
                pads = (use.carried - real, 0)
                above, below = pads[::-1] if geometry.backwards else pads
                halo = self._main.pad(use.reading, rows, above, below)
                self._unrolled.halos[use] = halo

    def _take_rows(self, late: int, count: int) -> Tensor:
        """`count` rows of the region's input from turn * rows - `late` on."""
        store, source = self._geometry.store, self._geometry.source
        rows = self._turns * self._geometry.rows[source] - late + np.arange(count)[None, :]
        rows += store.lead
        fits = bool(rows.min() >= 0 and rows.max() < store.rows)
        if not fits:
            rows = np.clip(rows, store.lead, store.lead + height(source) - 1)
        if self._geometry.backwards:
            rows = store.rows - 1 - rows[:, ::-1]
        key = rows.tobytes()
        if key not in self._gathers:
            self._gathers[key] = self._fetch_rows(rows.astype(np.int32), fits)
        return self._gathers[key]

    def _fetch_rows(self, rows: npt.NDArray[np.int32], regular: bool) -> Tensor:
        """The rows of each turn by GATHER, or by SLICE if GATHER does not support the type."""
        source, draft = self._source, self._body.draft
        if gathers(source):
            return self._body.gather(source, self._positions(rows, regular))
        assert regular, "SLICE takes consecutive rows only"
        zeros = np.zeros_like(rows[:, :1])
        begin = self._look_up(np.concatenate([zeros, rows[:, :1], zeros, zeros], axis=1))
        sizes = with_rows(source, rows.shape[1])
        fetched_rows = draft.tensor(source, "rows", sizes)
        draft.op("SLICE", [source, begin, draft.integers("size", sizes)], [fetched_rows])
        return fetched_rows

    def _positions(self, rows: npt.NDArray[np.int32], regular: bool) -> Tensor:
        """The positions of the rows of each turn, as a variable that grows or from a table."""
        if not regular:
            return self._look_up(rows)
        return self._counter("rows", rows[0].tolist(), int(rows[1, 0] - rows[0, 0])).inside
