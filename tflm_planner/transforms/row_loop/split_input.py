"""Splits a model in two, so that its whole input never lies in memory at once.

    front   (rows, turn, halo 0, halo 1, ...) -> (rows of the boundary, halo 0, halo 1, ...)
    back    (boundary, room)                  -> (what the model computes)

    turn t   rows t * R ... of the image      -front-> rows t * n - d ... of the boundary

The front is one turn of a loop, as a model: the application invokes it once for every strip of R
rows, and appends the resulting rows to the back's input. Halos are inputs and outputs; if the plan
places each output over its input (`StripSchedule.states`), the application only has to fill them
before the first strip. After the last row of the image a few more strips with arbitrary content
follow, which make the front return its last rows. The room is an input that nothing reads: the
front uses its memory, which is free again when the back begins. It must not know offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tflm_planner.model.clone import clone
from tflm_planner.model.draft import Draft, add_input, new_graph
from tflm_planner.model.edit import keep_only, remove_first_operators
from tflm_planner.model.ir import Model, Op, Tensor, quote
from tflm_planner.transforms.row_loop.geometry import LoopGeometry, LoopOperand, strip_geometry
from tflm_planner.transforms.row_loop.loop import NotStreamableError
from tflm_planner.transforms.row_loop.operand_rows import (
    OperandRows,
    check_image,
    height,
    operand_rows,
)
from tflm_planner.transforms.row_loop.row_ops import RowOps, fill_value, padded_shape, with_rows
from tflm_planner.transforms.row_loop.turn import Turn


@dataclass(frozen=True)
class StripSchedule:
    """How the application runs a front.

    height: rows of the image. rows: rows of a strip. turns: number of strips; the last ones may lie
    below the image. made: rows that each strip returns. delay: how many of the returned rows come
    before the first row of the boundary. result_height: rows of the boundary. clock: by how much
    input 1 grows in each turn, starting from 0; 0 if there is no such input. fills: the value with
    which each halo is filled before the first strip, as stored.
    """

    height: int
    rows: int
    turns: int
    made: int
    delay: int
    result_height: int
    clock: int
    fills: tuple[int | float, ...]

    @property
    def first_state(self) -> int:
        """Index of the first input that is a halo."""
        return 2 if self.clock else 1

    @property
    def states(self) -> tuple[tuple[int, int], ...]:
        """(index of the input, index of the output) of each halo."""
        return tuple((self.first_state + i, 1 + i) for i in range(len(self.fills)))


@dataclass(frozen=True)
class SplitModel:
    """A front, a back, and how the front is run."""

    front: Model
    back: Model
    strips: StripSchedule


def split_points_of(model: Model) -> Iterator[tuple[int, ...]]:
    """Where the graph of a model permits a split: for each operator in order, the operators on
    which its result depends among those that depend on the input. Yielded one at a time, because
    all together have quadratically many entries."""
    return map(operators_in, front_masks(model).values())


def front_masks(model: Model) -> dict[int, int]:
    """For each operator that depends on the input, by its position, the front that ends with it:
    an integer whose bit i stands for operator i. None if there are several inputs."""
    graph = model.main
    masks: dict[int, int] = {}
    if len(graph.inputs) != 1:
        return masks
    source = graph.inputs[0]
    needed: dict[Tensor, int] = {}
    for i, op in enumerate(graph.ops):
        before = [needed[t] for t in op.operands() if t in needed]
        if not before and all(t is not source for t in op.operands()):
            continue
        region = 1 << i
        for operators in before:
            region |= operators
        needed.update(dict.fromkeys(op.outputs, region))
        masks[i] = region
    return masks


def operators_in(mask: int) -> tuple[int, ...]:
    """The positions of the operators in a mask of `front_masks`."""
    return tuple(k for k, bit in enumerate(reversed(f"{mask:b}")) if bit == "1")


def can_stream(model: Model) -> bool:
    """Whether the input of `model`, which must be normalized, could come row by row at all."""
    if len(model.main.inputs) != 1:
        return False
    with suppress(NotStreamableError):
        check_image(model.main.inputs[0])  # before places are tried, of which there may be many
        for ops in split_points_of(model):
            with suppress(NotStreamableError):
                can_split(model, ops, 1)
                return True
    return False


def can_split(
    model: Model,
    ops: Sequence[int],
    rows: int,
    reads_of: Callable[[Op], list[OperandRows]] = operand_rows,
) -> LoopGeometry:
    """The geometry of a front of these operators (positions in the main graph) that makes `rows`
    rows of the boundary per turn. `reads_of`: the rows that an operator reads, if the caller
    already knows them. Does not change the model. Raises NotStreamableError."""
    region = [model.main.ops[i] for i in ops]
    if len(model.main.inputs) != 1:
        raise NotStreamableError(f"the model has {len(model.main.inputs)} inputs, not one")
    geometry = strip_geometry(model.main, region, rows, reads_of)
    if geometry.source is not model.main.inputs[0]:
        raise NotStreamableError(f"{quote(geometry.source.name)} is not the model's input")
    if any(t is geometry.result for t in model.main.outputs):
        raise NotStreamableError(f"{quote(geometry.result.name)} is an output of the model")
    return geometry


def split_model(model: Model, ops: Sequence[int], rows: int) -> SplitModel:
    """Front and back of a model, which is not changed. ops, rows: as in `can_split`.

    Raises NotStreamableError.
    """
    front, back = clone(model), clone(model)
    strips = _FrontBuilder(front, can_split(front, ops, rows)).write()
    boundary = can_split(back, ops, rows).result
    remove_first_operators(back, [back.main.ops[i] for i in ops], boundary)
    return SplitModel(front, back, strips)


def add_room(back: Model, size: int) -> None:
    """Add the input `room` to a back: `size` bytes for the front."""
    add_input(back, "room", "uint8", (size,))


class _FrontBuilder(Turn):
    """Drafts one turn as a separate model."""

    def __init__(self, model: Model, geometry: LoopGeometry) -> None:
        draft = Draft(model, new_graph(model, "front"))
        masked = [geometry.rows[use.reading.tensor] for use in geometry.uses if use.masked]
        super().__init__(geometry, RowOps(draft), max(masked, default=0))
        source = geometry.source
        self._model = model
        self._new = draft.tensor(source, source.name, with_rows(source, geometry.rows[source]))
        self._turn: Tensor | None = None
        self._before: list[Tensor] = []
        self._after: list[Tensor] = []
        self._fills: list[int | float] = []

    def write(self) -> StripSchedule:
        """Replace the model by the front."""
        geometry = self._geometry
        boundary_rows = self._region()
        turn = [] if self._turn is None else [self._turn]
        inputs = [self._new, *turn, *self._before]
        if any(t is boundary_rows for t in inputs):
            raise NotStreamableError("the front would do nothing")
        graph = self._body.draft.commit_graph(inputs, [boundary_rows, *self._after])
        keep_only(self._model, graph)
        return StripSchedule(
            height=height(geometry.source),
            rows=geometry.rows[geometry.source],
            turns=geometry.turns,
            made=geometry.rows[geometry.result],
            delay=geometry.delays[geometry.result],
            result_height=height(geometry.result),
            clock=self._width if turn else 0,
            fills=tuple(self._fills),
        )

    def _take_rows(self, late: int, count: int) -> Tensor:
        assert late == 0 and count == height(self._new), "rows come once, and in order"
        return self._new

    def _clock(self) -> Tensor:
        if self._turn is None:
            self._turn = self._body.draft.value("turn", "int32", (1,))
        return self._turn

    def _halo(self, use: LoopOperand) -> Tensor:
        r = use.reading
        return self._body.draft.tensor(r.tensor, "halo", padded_shape(r, use.carried))

    def _leave(self, use: LoopOperand, before: Tensor, after: Tensor) -> None:
        self._before.append(before)
        self._after.append(after)
        self._fills.append(fill_value(use.reading))
