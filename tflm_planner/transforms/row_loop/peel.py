"""Turns that run in the main graph, before and after the loop, because they meet a border.

    turn 0    rows [-d, n - d): only those inside the image are computed; padding by PAD
    halo      as in the loop, so that the loop can take it over: rows outside are padding

It only supports rows from the top down. It knows one turn at a time; counts come from `geometry`.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.roles import PADS
from tflm_planner.transforms.row_loop.geometry import LoopGeometry, LoopOperand
from tflm_planner.transforms.row_loop.operand_rows import height, row_elements
from tflm_planner.transforms.row_loop.row_ops import RowOps, padded_shape

Range = tuple[int, int]
"""Half-open range of rows (from, to)."""


class Unrolled:
    """The state between turns in the main graph. store: the present store, from which rows are read
    and to which results are written. source: the input, if it is not in the store. halos: for each
    use, the halo for the next turn."""

    def __init__(self, row_ops: RowOps, geometry: LoopGeometry, store: Tensor) -> None:
        self._row_ops, self._geometry = row_ops, geometry
        self.store, self.source = store, geometry.source
        self.halos: dict[LoopOperand, Tensor] = {}

    def run(self, turn: int) -> None:
        """Append the operators of one turn."""
        geometry = self._geometry
        rows: dict[Tensor, Tensor] = {}
        for op in geometry.ops:
            out = op.outputs[0]
            wanted = self._rows_inside(out, turn)
            tiles = {use.reading.operand: self._tile(use, turn, wanted, rows)
                     for use in geometry.uses_of(op)}  # fmt: skip
            if wanted[0] < wanted[1]:
                rows.update(self._compute_rows(op, tiles, wanted))
        if geometry.result in rows:
            self._write(rows[geometry.result], self._rows_inside(geometry.result, turn)[0])

    def _rows_inside(self, t: Tensor, turn: int) -> Range:
        """The rows of a turn that lie inside the image."""
        n, late = self._geometry.rows[t], self._geometry.delays[t]
        low, high = turn * n - late, (turn + 1) * n - late
        return max(low, 0), min(high, height(t))

    def _compute_rows(
        self, op: Op, tiles: dict[int, Tensor | None], wanted: Range
    ) -> dict[Tensor, Tensor]:
        first = tiles.get(0)
        if op.kind in PADS:
            assert first is not None
            return {op.outputs[0]: first}
        operands = [tiles.get(i, t) for i, t in enumerate(op.inputs)]
        return self._row_ops.run(op, operands, wanted[1] - wanted[0])

    def _tile(
        self, use: LoopOperand, turn: int, wanted: Range, rows: dict[Tensor, Tensor]
    ) -> Tensor | None:
        """The rows that `op` reads to compute its rows `wanted`; also makes the next halo."""
        r, row_ops = use.reading, self._row_ops
        needed = self._rows_needed(use, wanted)
        if use.rereads_store:
            return None if needed is None else self._read_rows_again(use, needed)
        n, late = self._geometry.rows[r.tensor], self._geometry.delays[r.tensor]
        low, high = self._rows_inside(r.tensor, turn)
        start = turn * n - late
        if low >= high:
            new = None
        elif r.tensor is self._geometry.source:
            new = self._take_rows((low, high))
        else:
            new = rows[r.tensor]
        if not use.carried:
            if needed is None:
                return None
            if new is None:
                return row_ops.fill(r.tensor, padded_shape(r, needed[1] - needed[0]), r.value)
            above, below = max(low - needed[0], 0), max(needed[1] - high, 0)
            skip = max(needed[0] - low, 0)
            left = min(needed[1], high) - max(needed[0], low)
            return row_ops.pad(r, row_ops.rows_of(new, skip, left), above, below)
        tile = self._join_halo(use, new, (low, high), start)
        self.halos[use] = row_ops.rows_of(tile, n, use.carried)
        if needed is None:
            return None
        return row_ops.rows_of(tile, needed[0] - (start - use.carried), needed[1] - needed[0])

    def _read_rows_again(self, use: LoopOperand, needed: Range) -> Tensor:
        """Rows of the input, with padding for rows outside the image."""
        inside = max(needed[0], 0), min(needed[1], height(self._geometry.source))
        if inside[0] >= inside[1]:
            shape = padded_shape(use.reading, needed[1] - needed[0])
            return self._row_ops.fill(use.reading.tensor, shape, use.reading.value)
        above, below = inside[0] - needed[0], needed[1] - inside[1]
        return self._row_ops.pad(use.reading, self._take_rows(inside), above, below)

    def _join_halo(self, use: LoopOperand, new: Tensor | None, inside: Range, start: int) -> Tensor:
        """The halo followed by all new rows of a turn; rows outside the image are padding."""
        r, row_ops = use.reading, self._row_ops
        n, halo = self._geometry.rows[r.tensor], self.halos.get(use)
        if new is None:
            new = row_ops.fill(r.tensor, padded_shape(r, n), r.value)
            above = 0
        else:
            above = 0 if halo is not None else use.carried
            new = row_ops.pad(r, new, inside[0] - start + above, start + n - inside[1])
        if halo is None and not above:
            halo = row_ops.fill(r.tensor, padded_shape(r, use.carried), r.value)
        return new if halo is None else row_ops.join(r, [halo, new])

    def _rows_needed(self, use: LoopOperand, wanted: Range) -> Range | None:
        if wanted[0] >= wanted[1]:
            return None
        r = use.reading
        return wanted[0] * r.stride - r.above, (wanted[1] - 1) * r.stride - r.above + r.reach

    def _take_rows(self, rows: Range) -> Tensor:
        store = self._geometry.store
        lead = store.lead if store.shared else 0
        image = self.store if store.shared else self.source
        return self._row_ops.rows_of(image, lead + rows[0], rows[1] - rows[0])

    def _write(self, rows: Tensor, first: int) -> None:
        """Put rows of the result, from `first` on, into the store."""
        row_ops, draft, store = self._row_ops, self._row_ops.draft, self._geometry.store
        shape = self.store.shape or ()
        flat = row_ops.reshape(self.store, (store.size,))
        update = row_ops.reshape(rows, (rows.elements,))
        place = draft.integers("at", [store.start + first * row_elements(self._geometry.result)])
        updated = draft.tensor(flat, "z", (store.size,))
        draft.op("DYNAMIC_UPDATE_SLICE", [flat, update, place], [updated])
        self.store = row_ops.reshape(updated, shape)
