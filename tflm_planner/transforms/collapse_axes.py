"""Writes transpositions with fewer axes, so that a kernel for at most four axes can run them.

    (1, 12, 12, 48) --RESHAPE--> (1, 12, 12, 2, 24) --TRANSPOSE 0 1 2 4 3--> (1, 12, 12, 24, 2)
                    --RESHAPE--> (12, 12, 2, 24)    --TRANSPOSE 0 1 3 2-->   (12, 12, 24, 2)

TFLM refuses more than five axes. CMSIS-NN refuses int8 tensors with five or more, but TFLM ignores
that: the result is never written (see `tflm.kernels.known_faults`). An axis of one element can be
left out, and axes that are adjacent both before and after the transposition can be merged. If the
operand is made by a RESHAPE and the result is read only by RESHAPEs (channel shuffle, pixel
shuffle), no other operator depends on the shape, and no operator is added; else (queries, keys and
values of attention in one tensor) a RESHAPE goes before it, and one behind. Where axes that stay
apart are still too many, it is done in steps, each of which swaps two blocks of neighbours:

    (24, 24, 3, 2, 2) --RESHAPE--> (24, 72, 2, 2)    --TRANSPOSE--> (24, 2, 72, 2)
                      --RESHAPE--> (1152, 3, 2, 1)   --TRANSPOSE--> (1152, 2, 3, 1) --RESHAPE-->

Either way the model is correct on every target.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from tflm_planner.model.constants import integers
from tflm_planner.model.draft import Draft
from tflm_planner.model.edit import resize
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.tflm.kernels import transpose_limit
from tflm_planner.tflm.refusals import MOST_AXES
from tflm_planner.transforms.fold_transpose import is_private

AxisTurn = tuple[tuple[int, ...], tuple[int, ...]]
"""One transposition: the sizes of its axes, and their order."""
_MOST_OF_TFLM = MOST_AXES["TRANSPOSE"]


def collapse_transpose_axes(model: Model) -> list[str]:
    """Write transpositions of int8 with few enough axes for every known library, and others with as
    few as TFLM takes; note how many."""
    limit = transpose_limit()
    if limit is None:
        return []
    merged = [t for g in model.graphs for t in _AxisCollapser(model, g, limit.axes).merge_all()]
    of_int8 = merged.count("int8")
    reasons = (
        (of_int8, limit.axes, f"{limit.library} leaves the results of others unwritten"),
        (len(merged) - of_int8, _MOST_OF_TFLM, "TFLM takes no more"),
    )
    return [
        f"{count} TRANSPOSE of more than {most} axes made with {most} at most: {why}"
        for count, most, why in reasons
        if count
    ]


def collapsed_axes(shape: Sequence[int], order: Sequence[int], most: int) -> list[list[int]]:
    """The axes of `shape` in groups that stay together, without axes of a single element; at most
    `most` groups if that is possible. The last axes are merged first, so that rows and columns stay
    separate."""
    there = [axis for axis in order if shape[axis] > 1]
    groups = [[axis] for axis in there]
    at = len(groups) - 1
    while len(groups) > most and at > 0:
        before, after = groups[at - 1][-1], groups[at][0]
        if after > before and all(shape[axis] == 1 for axis in range(before + 1, after)):
            groups[at - 1 : at + 1] = [groups[at - 1] + groups[at]]
        at -= 1
    return groups


def swaps_of(order: Sequence[int]) -> Iterator[tuple[list[int], ...]]:
    """Yield the swaps of neighbouring blocks that bring axes 0, 1, ... into an order: the axes
    before the blocks, the first, the second and those behind, as they lie before the swap."""
    now = sorted(order)
    for at, wanted in enumerate(order):
        place = now.index(wanted)
        if place == at:
            continue
        end = place + 1
        while end < len(now) and now[end] == order[at + end - place]:
            end += 1
        yield now[:at], now[at:place], now[place:end], now[end:]
        now[at:end] = [*now[place:end], *now[at:place]]


def steps_of(sizes: Sequence[int], order: Sequence[int]) -> Iterator[AxisTurn]:
    """Yield those swaps as transpositions of four axes: what is before two blocks, these, and what
    is behind."""
    for blocks in swaps_of(order):
        yield tuple(math.prod(sizes[axis] for axis in block) for block in blocks), (0, 2, 1, 3)


class _AxisCollapser:
    """Merges axes of the transpositions of one graph. Equal shapes and orders are stored in one
    constant, because every listed tensor costs memory. most: axes that one of int8 may have."""

    def __init__(self, model: Model, graph: Graph, most: int) -> None:
        self._model, self._graph, self._most = model, graph, most
        self._integers: dict[tuple[int, ...], Tensor] = {}

    def merge_all(self) -> list[str]:
        """Merge the axes of all transpositions; returns the types of those that have fewer axes
        now."""
        transpositions = [
            op for op in self._graph.ops if op.kind == "TRANSPOSE" and len(op.inputs) == 2
        ]
        return [op.outputs[0].type_name for op in transpositions if self._merge(op)]

    def _merge(self, op: Op) -> bool:
        """Merge axes of one transposition; False if that is useless or impossible."""
        source, result, order = op.inputs[0], op.outputs[0], integers(op.inputs[1])
        shape = () if source is None else source.shape or ()
        if source is None or order is None:
            return False
        most = self._most if source.type_name == "int8" else _MOST_OF_TFLM
        if len(shape) <= most or sorted(order) != list(range(len(shape))) or 0 in shape:
            return False
        groups = collapsed_axes(shape, order, most)
        there = sorted(groups)
        if groups == there:  # only axes of length 1 move
            return False
        if source.is_constant or source.is_variable or result.is_variable:
            return False
        sizes = [math.prod(shape[axis] for axis in group) for group in there]
        new_order = [there.index(group) for group in groups]
        maker = self._hidden_maker(op, source)
        if len(groups) > most:
            self._between_reshapes(op, source, steps_of(sizes, new_order))
            return True
        if maker is None:
            self._between_reshapes(op, source, [(tuple(sizes), tuple(new_order))])
            return True
        resize(source, tuple(sizes))
        resize(result, tuple(sizes[i] for i in new_order))
        self._reshape(maker, source)
        self._replace(op, [source], new_order, result)
        return True

    def _hidden_maker(self, op: Op, source: Tensor) -> Op | None:
        """The RESHAPE that makes the operand; None unless only RESHAPEs around the transposition
        depend on the shapes of its operand and result."""
        maker, result = source.producer, op.outputs[0]
        if maker is None or maker.kind != "RESHAPE" or source.consumers != [op]:
            return None
        has_known_shape = len(maker.inputs) < 2 or integers(maker.inputs[1]) is not None
        read = [reader.kind for reader in result.consumers]
        private = all(is_private(self._model, self._graph, t) for t in (source, result))
        return maker if has_known_shape and read and set(read) == {"RESHAPE"} and private else None

    def _between_reshapes(self, op: Op, source: Tensor, steps: Iterable[AxisTurn]) -> None:
        """Turn the operand step by step, each between RESHAPEs, so that nobody else knows of the
        axes."""
        result, data = op.outputs[0], source
        draft = Draft(self._model, self._graph)
        for number, (sizes, order) in enumerate(steps):
            name = f"{result.name}/step{number}"
            merged = draft.tensor(source, name, sizes)
            turned = draft.tensor(result, f"{name}/turned", [sizes[axis] for axis in order])
            draft.reshape(data, merged)
            draft.clone(op, [merged, self._constant(draft, order)], [turned])
            data = turned
        draft.reshape(data, result)
        draft.commit([op])

    def _reshape(self, maker: Op, result: Tensor) -> None:
        """Let a RESHAPE make its result in the result's new shape."""
        shape = result.shape or ()
        shape_operand = shape if len(maker.inputs) > 1 else None
        changed = {} if maker.options.is_absent else {"new_shape": tuple(shape)}
        self._replace(maker, maker.inputs[:1], shape_operand, result, **changed)

    def _replace(
        self,
        op: Op,
        inputs: Sequence[Tensor | None],
        values: Sequence[int] | None,
        result: Tensor,
        **changed: object,
    ) -> None:
        """Replace the operator by a copy that has other integers as its last operand."""
        draft = Draft(self._model, self._graph)
        numbers = [] if values is None else [self._constant(draft, tuple(values))]
        draft.clone(op, [*inputs, *numbers], [result], **changed)
        draft.commit([op])

    def _constant(self, draft: Draft, values: tuple[int, ...]) -> Tensor:
        if values not in self._integers:
            self._integers[values] = draft.integers("axes", values)
        return self._integers[values]
