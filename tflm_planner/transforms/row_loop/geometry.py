"""How many rows of each tensor a loop makes, delays and carries on, and where it writes results.

All rows are counted in the direction in which the loop runs: from the top down or from the bottom
up.

    turn t makes rows [t * n - d, (t + 1) * n - d) of a tensor: n rows per turn, d is its delay

    operand        | halo: h rows of earlier turns | n new rows |        a window of `reach` rows
    result (n/s)   |     [-- reach --]                                   every `stride` rows
                   d_out = ceil((d_in + max(reach - stride, 0) - above) / stride)
                   h     = d_out * stride + above - d_in

The whole input lies in a tensor called the `store` (see `store`), so a loop may start some rows
ahead: its delay is then negative, and the first halo contains the first rows of the input. If a
window reads rows outside the image as padding, rows of padding replace them (`LoopOperand.masked`);
other rows outside the image are computed from arbitrary data, and are never read. This module knows
shapes and bytes; it must not know how operators are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from tflm_planner.model.ir import Graph, Op, Tensor, quote
from tflm_planner.transforms.row_loop.loop import LoopBorder, LoopedRegion, NotStreamableError
from tflm_planner.transforms.row_loop.operand_rows import (
    OperandRows,
    element_bytes,
    gathers,
    height,
    operand_rows,
    row_elements,
)
from tflm_planner.transforms.row_loop.rates import delays_of, ends_of, rates_of, sides_of
from tflm_planner.transforms.row_loop.store import LoopProgress, RowStore, is_view, store_of

_FEWEST = 2
"""Fewest turns that a loop may have."""
_MOST_AHEAD = 8
"""Largest number of rows by which a loop may start ahead."""


@dataclass(frozen=True)
class LoopOperand:
    """An operand that an operator of the loop reads, in the direction in which the loop runs.

    before, after: rows of padding that some window reads before the first and after the last row.
    halo: rows of earlier turns with which the tile begins. tile: number of rows, halo and new rows
    together, that the operator reads. rereads_store: the tile is read from the store, not
    carried. masked: rows outside the image must be padding.
    """

    op: Op
    reading: OperandRows
    before: int
    after: int
    halo: int
    tile: int
    rereads_store: bool = False
    masked: bool = False

    @property
    def carried(self) -> int:
        """Number of rows that are handed from turn to turn."""
        return 0 if self.rereads_store else self.halo

    @property
    def carried_bytes(self) -> int:
        """Bytes of the carried rows."""
        return self.carried * self.reading.width * element_bytes(self.reading.tensor)


@dataclass(frozen=True)
class LoopGeometry:
    """A region as a loop. rows, delays: of each tensor; see the module. peeled: how many of the
    first and of the last turns run outside the loop."""

    ops: tuple[Op, ...]
    source: Tensor
    result: Tensor
    backwards: bool
    turns: int
    rows: dict[Tensor, int]
    delays: dict[Tensor, int]
    uses: tuple[LoopOperand, ...]
    store: RowStore
    peeled: tuple[int, int] = (0, 0)

    @property
    def step(self) -> int:
        """Number of elements that a turn writes."""
        return self.rows[self.result] * row_elements(self.result)

    def place(self, turn: int) -> int:
        """The position that a turn writes to, in elements of the store; it may be negative or past
        the last valid position, where DYNAMIC_UPDATE_SLICE clamps it."""
        running = self.store.first + turn * self.step
        return self.store.size - running - self.step if self.backwards else running

    @property
    def in_place(self) -> bool:
        """Whether the result overwrites the parts of the input that are no longer needed."""
        return self.store.shared

    @property
    def halo_bytes(self) -> int:
        """Bytes handed from turn to turn, without the stores."""
        return sum(use.carried_bytes for use in self.uses)

    @property
    def store_bytes(self) -> int:
        """Bytes of the store, or of both stores."""
        size = self.store.size * element_bytes(self.result)
        return size if self.store.shared else size + self.source.nbytes

    @property
    def masked(self) -> bool:
        """Whether any use needs a mask."""
        return any(use.masked for use in self.uses)

    def uses_of(self, op: Op) -> Iterator[LoopOperand]:
        """The uses that an operator makes, in the order of its operands."""
        return (use for use in self.uses if use.op is op)


def loop_geometry(
    graph: Graph,
    region: Sequence[Op],
    loop: LoopedRegion,
    reads_of: Callable[[Op], list[OperandRows]] = operand_rows,
) -> LoopGeometry:
    """The loop of a region that takes the least memory over the possible delays and stores.
    `reads_of`: the rows that an operator reads, if the caller already knows them.

    Raises NotStreamableError.
    """
    source, result = ends = ends_of(graph, region)
    inner = set(region)
    input_stays = any(t is source for t in graph.outputs)
    input_stays = input_stays or any(op not in inner for op in source.consumers)
    if height(result) <= loop.rows:
        raise NotStreamableError("one turn would make the whole result")
    peels = loop.border == "peeled"
    reads = [(op, read) for op in region for read in reads_of(op)]
    variants = _variants(region, reads, ends, loop, input_stays)
    best = min(variants, key=lambda geometry: _rank(geometry, masks=not peels), default=None)
    if best is None:
        raise NotStreamableError(
            f"the last turn would read rows behind {quote(source.name)} of type "
            f"{source.type_name}, which is needed elsewhere"
        )
    best = _peel_borders(best) if peels else best
    left = best.turns - sum(best.peeled)
    if left < _FEWEST:
        raise NotStreamableError(f"only {left} of {best.turns} turns are left for the loop")
    _check(best)
    return best


def strip_geometry(
    graph: Graph,
    region: Sequence[Op],
    rows: int,
    reads_of: Callable[[Op], list[OperandRows]] = operand_rows,
) -> LoopGeometry:
    """The region from the top down, in turns that the application calls: each turn takes the next
    rows of the input, from row 0 on, and returns `rows` rows of the result. There is no store.
    `reads_of`: as in `loop_geometry`.

    Raises NotStreamableError.
    """
    source, result = ends = ends_of(graph, region)
    inner = set(region)
    input_stays = any(t is source for t in graph.outputs)
    if input_stays or any(op not in inner for op in source.consumers):
        raise NotStreamableError(f"{quote(source.name)} is needed elsewhere as a whole")
    reads = [(op, read) for op in region for read in reads_of(op)]
    rates, delays = rates_of(region, result, reads, rows), delays_of(region, ends, reads)
    lag = delays[result]
    turn_count = -(-(height(result) + lag) // rows)
    if rates[source] >= height(source) or turn_count < _FEWEST:
        raise NotStreamableError("one strip would be the whole image")
    uses = _uses(reads, rates, delays, source, "masked", rereads_store=False)
    store = RowStore(False, height(source), 0, result.elements, -lag * row_elements(result), 0)
    return LoopGeometry(
        tuple(region), source, result, False, turn_count, rates, delays, uses, store
    )


def _variants(
    region: Sequence[Op],
    reads: Sequence[tuple[Op, OperandRows]],
    ends: tuple[Tensor, Tensor],
    loop: LoopedRegion,
    input_stays: bool,
) -> Iterator[LoopGeometry]:
    """All geometries to choose from: delays that are whole turns or not; rows of the input read
    again or carried; starting ahead by 0 rows up to as many as windows on the input look ahead."""
    source, result = ends
    shared = source.type == result.type and not input_stays
    rows = rates_of(region, result, reads, loop.rows)
    backwards = loop.border == "reverse"
    looks = [
        read.reach - read.stride - sides_of(read, backwards)[0]
        for _, read in reads
        if read.tensor is source
    ]
    most = min(max(0, *looks, 0), _MOST_AHEAD, height(source))
    for aligned, ahead in product((True, False), range(most + 1)):
        unit = loop.rows if aligned else 1
        delays = delays_of(region, ends, reads, ahead=ahead, backwards=backwards, unit=unit)
        turn_count = -(-(height(result) + delays[result]) // loop.rows)
        for rereads_store in (True, False):
            uses = _uses(reads, rows, delays, source, loop.border, rereads_store)
            progress = LoopProgress(
                turn_count, rows[source], ahead, _latest_lag(source, delays, uses),
                loop.rows * row_elements(result), delays[result] * row_elements(result),
            )  # fmt: skip
            store = store_of(
                source, result, progress, shared=shared, aligned=aligned, backwards=backwards
            )
            if store is not None:
                yield LoopGeometry(
                    tuple(region), source, result, backwards, turn_count, rows, delays, uses, store
                )


def _peel_borders(geometry: LoopGeometry) -> LoopGeometry:
    """The geometry with those turns moved out of the loop in which a masked use meets a border."""
    first, behind = 0, geometry.turns
    for use in geometry.uses:
        if use.masked and use.rereads_store:
            lag, n = geometry.delays[geometry.source] + use.halo, geometry.rows[geometry.source]
            first = max(first, -(-lag // n))
            behind = min(behind, (height(geometry.source) - use.tile + lag) // n + 1)
        elif use.masked:
            lag, n = geometry.delays[use.reading.tensor], geometry.rows[use.reading.tensor]
            if use.before > 0:
                first = max(first, -(-lag // n))
            if use.after > 0:
                behind = min(behind, (height(use.reading.tensor) + lag) // n)
    uses = tuple(replace(use, masked=False) for use in geometry.uses)
    return replace(geometry, uses=uses, peeled=(first, geometry.turns - behind))


def _rank(geometry: LoopGeometry, *, masks: bool) -> tuple[int, int, int]:
    """Sort key: bytes, then turns, then (with `masks`) masked uses. Bytes include one row for the
    PAD that a store longer than the input needs, and the result if it must be copied out of the
    store."""
    source, result = geometry.source, geometry.result
    extra = row_elements(source) * element_bytes(source) if _is_padded(geometry) else 0
    extra += 0 if is_view(geometry.store, result, geometry.backwards) else result.nbytes
    return (
        geometry.store_bytes + geometry.halo_bytes + extra,
        geometry.turns,
        sum(use.masked for use in geometry.uses) if masks else 0,
    )


def _is_padded(geometry: LoopGeometry) -> bool:
    return geometry.store.shared and geometry.store.rows > height(geometry.source)


def _uses(
    reads: Sequence[tuple[Op, OperandRows]],
    rows: dict[Tensor, int],
    delays: dict[Tensor, int],
    source: Tensor,
    border: LoopBorder,
    rereads_store: bool,
) -> tuple[LoopOperand, ...]:
    """All uses. Rows of the input may be read again if none of them is padding; in peeled loops
    none is."""
    uses: list[LoopOperand] = []
    for op, read in reads:
        before, after = sides_of(read, border == "reverse")
        lag = delays[read.tensor]
        halo = delays[op.outputs[0]] * read.stride + before - lag
        tile = (rows[op.outputs[0]] - 1) * read.stride + read.reach
        assert halo >= max(read.reach - read.stride, 0) and halo + rows[read.tensor] >= tile
        bare = max(before, after) <= 0
        if rereads_store and read.tensor is source and halo and (bare or border == "peeled"):
            uses.append(
                LoopOperand(
                    op, read, before, after, halo, tile, rereads_store=True, masked=not bare
                )
            )
        else:
            masked = after > 0 or min(before, lag) > 0
            if masked and not gathers(read.tensor) and read.value is not None:
                raise NotStreamableError(
                    f"{op.label} needs padding other than zero in {read.tensor.type_name}"
                )
            uses.append(LoopOperand(op, read, before, after, halo, tile, masked=masked))
    return tuple(uses)


def _latest_lag(source: Tensor, delays: dict[Tensor, int], uses: Sequence[LoopOperand]) -> int:
    """Rows by which the last read of the input lags, over all uses."""
    return delays[source] + max((use.halo for use in uses if use.rereads_store), default=0)


def _check(geometry: LoopGeometry) -> None:
    """Assert by counting rows, turn by turn, that no row is lost or overwritten too early."""
    store, source, result = geometry.store, geometry.source, geometry.result
    assert store.rows >= store.lead + height(source), "the input does not fit its store"
    step, lag = geometry.step, _latest_lag(source, geometry.delays, geometry.uses)
    written = [False] * height(result)
    for turn in range(geometry.turns):
        at = max(store.first + turn * step, 0)
        assert at + step <= store.size, "a turn writes behind the store"
        following = (turn + 1) * geometry.rows[source] - lag
        if store.shared and turn < geometry.turns - 1 and following < height(source):
            read_from = (store.lead + max(following, 0)) * row_elements(source)
            assert at + step <= read_from, "a turn overwrites rows that are still read"
        for row in range(geometry.rows[result]):
            index = turn * geometry.rows[result] - geometry.delays[result] + row
            place = at + row * row_elements(result)
            if 0 <= index < height(result):
                assert place == store.start + index * row_elements(result), "a row is misplaced"
                written[index] = True
            elif store.start <= place < store.start + result.elements:
                assert index < 0 and turn < geometry.turns - 1, "rows outside the image stay"
    assert all(written), "a row of the result is missing"
