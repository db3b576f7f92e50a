"""The operators of one turn: every operator of the region on the rows of that turn.

    a use  new rows -PAD-GATHER(mask)-CONCATENATION(halo, .)- tile - the operator, VALID
                                                               +- GATHER - the next halo

Subclasses of `Turn` say what runs the turns and keeps halos between them: the body of a WHILE
(`body`), or a model that the application invokes once per turn (`split_input`). Rows inside a tile
are in the image's order even if turns run from the bottom up: the halo is then joined below the new
rows. It knows a `LoopGeometry`, but not whether the loop is worthwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Tensor
from tflm_planner.model.quantization import NOT_QUANTIZED, UNIT_SCALE, Quantization
from tflm_planner.ops.roles import PADS
from tflm_planner.ops.window import window_of
from tflm_planner.transforms.row_loop.geometry import LoopGeometry, LoopOperand
from tflm_planner.transforms.row_loop.operand_rows import gathers, height
from tflm_planner.transforms.row_loop.row_ops import RowOps


class Turn(ABC):
    """Drafts the operators of one turn."""

    def __init__(self, geometry: LoopGeometry, body: RowOps, width: int) -> None:
        """`body`: drafts the operators. `width`: elements in a row of the tables that are indexed
        by the turn."""
        self._geometry, self._body, self._width = geometry, body, width
        self._tiles: list[tuple[LoopOperand, Tensor, Tensor]] = []
        self._tables: dict[bytes, Tensor] = {}
        self._rows: dict[Tensor, Tensor] = {}
        first, last = geometry.peeled
        self._turns = np.arange(first, geometry.turns - last)[:, None]
        """The numbers of the turns that run this way, as a column."""

    # --- what runs the turns ---

    @abstractmethod
    def _take_rows(self, late: int, count: int) -> Tensor:
        """`count` rows of the region's input from turn * rows - `late` on."""

    @abstractmethod
    def _clock(self) -> Tensor:
        """One int32: `width` times the turn, where the first of `_turns` is turn 0."""

    @abstractmethod
    def _halo(self, use: LoopOperand) -> Tensor:
        """The rows that the previous turn has left for a use."""

    @abstractmethod
    def _leave(self, use: LoopOperand, before: Tensor, after: Tensor) -> None:
        """Hand rows on to the next turn. `before`: the tensor that `_halo` returned for the use."""

    # --- the region ---

    def _region(self) -> Tensor:
        """Draft every operator on the rows of one turn; returns the result of the last one."""
        geometry, draft, loop_rows = self._geometry, self._body.draft, self._rows
        for op in geometry.ops:
            out = op.outputs[0]
            tiles = {use.reading.operand: self._tile(use) for use in geometry.uses_of(op)}
            if geometry.backwards:
                self._carry_on()
            if op.kind in PADS:
                loop_rows[out] = tiles[0]
                self._carry_on()
                continue
            operands = [
                None if t is None else draft.same(t) if t.is_constant else tiles[i]
                for i, t in enumerate(op.inputs)
            ]
            loop_rows.update(self._body.run(op, operands, geometry.rows[out]))
            self._carry_on()
        return loop_rows[geometry.result]

    def _tile(self, use: LoopOperand) -> Tensor:
        """The rows that an operator reads in this turn, padded."""
        r = use.reading
        count, late = self._geometry.rows[r.tensor], self._geometry.delays[r.tensor]
        if use.rereads_store:
            return self._body.pad(r, self._take_rows(use.halo + late, use.tile), 0, 0)
        from_store = r.tensor is self._geometry.source
        new = self._take_rows(late, count) if from_store else self._rows[r.tensor]
        new = self._body.pad(r, new, 0, int(use.masked and gathers(r.tensor)))
        if use.masked:
            new = self._mask_rows(use, new, count)
        if use.carried:
            new = self._join_halo(use, new)
        return new if self._makes_enough_rows(use, new) else self._edge(new, use.tile, first=True)

    def _makes_enough_rows(self, use: LoopOperand, rows: Tensor) -> bool:
        """Whether an operator makes the right number of rows although its tile has more rows than
        it needs: rows below the last window that fits are not read."""
        if self._geometry.backwards or window_of(use.op) is None:
            return False
        row_count = (height(rows) - use.reading.reach) // use.reading.stride + 1
        return row_count == self._geometry.rows[use.op.outputs[0]]

    def _edge(self, rows: Tensor, wanted: int, *, first: bool) -> Tensor:
        """The first or the last `wanted` rows in running direction."""
        top = first is not self._geometry.backwards
        return self._body.rows_of(rows, 0 if top else height(rows) - wanted, wanted)

    def _join_halo(self, use: LoopOperand, new: Tensor) -> Tensor:
        """The halo joined with the new rows; the last rows of both become the next halo."""
        r, inside = use.reading, self._halo(use)
        parts = [new, inside] if self._geometry.backwards else [inside, new]
        tile = self._body.join(r, parts)
        self._tiles.append((use, inside, tile))
        return tile

    def _carry_on(self) -> None:
        """Make the next halos from the tiles of an operator. From the top down that is done when
        the tile is not needed any more, so that its last rows can move to the place of its first
        ones."""
        for use, inside, tile in self._tiles:
            self._leave(use, inside, self._edge(tile, use.carried, first=False))
        self._tiles.clear()

    def _look_up(self, values: npt.NDArray[Any], unit: Quantization = NOT_QUANTIZED) -> Tensor:
        """Row `turn` of a constant table of shape (turns, n). unit: quantisation of its values."""
        key = values.tobytes()
        if key not in self._tables:
            draft, turn = self._body.draft, self._clock()
            wide = np.zeros((values.shape[0], self._width), values.dtype)
            wide[:, : values.shape[1]] = values
            table = draft.constant("table", wide.reshape(-1), values.dtype.name, None, unit)
            size = draft.integers("size", [values.shape[1]])
            row = draft.tensor(table, "row", (values.shape[1],))
            draft.op("SLICE", [table, turn, size], [row])
            self._tables[key] = row
        return self._tables[key]

    def _mask_rows(self, use: LoopOperand, rows: Tensor, count: int) -> Tensor:
        """Replace rows that lie outside the image by padding: gather a row of padding that was
        appended, or multiply the rows by zero."""
        r = use.reading
        late = self._geometry.delays[r.tensor]
        index = self._turns * self._geometry.rows[r.tensor] - late + np.arange(count)[None, :]
        inside = (index >= 0) & (index < height(r.tensor))
        if self._geometry.backwards:
            inside = inside[:, ::-1]
        if gathers(r.tensor):
            places = np.where(inside, np.arange(count)[None, :], count)
            return self._body.gather(rows, self._look_up(places.astype(np.int32)))
        factors = self._look_up(inside.astype(np.int16), UNIT_SCALE)
        masked = self._body.draft.tensor(rows, "masked", rows.shape or ())
        column = self._body.reshape(factors, (1, count, 1, 1))
        self._body.draft.op("MUL", [rows, column], [masked])
        return masked
