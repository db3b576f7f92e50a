"""Makes the tiled, ordered model of a candidate; it is not planned yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_planner.memory.order import OrderMethod
from tflm_planner.model.check import check
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import reorder
from tflm_planner.model.ir import Model, Op
from tflm_planner.tflm.element_types import TypeForm, forms_of
from tflm_planner.tflm.kernels.known_faults import faults_of
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.dialect import Crop
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.reorder import Reorder
from tflm_planner.transforms.schedules import quick_order
from tflm_planner.transforms.spelling import SPELLABLE, Respell, Spelling

GraphOrders = tuple[tuple[int, ...], ...]
"""For each graph: the positions that its operators had before they were ordered."""


@dataclass(frozen=True)
class TiledModel:
    """A model in tiles and loops, with facts about the given model from which it was made."""

    model: Model
    position: dict[Op, int]
    """Operators that are in both models -> their positions in the given one, after `order`."""
    used_kinds: frozenset[str]
    """Kinds of operators that the firmware has: those of the file."""
    forms: frozenset[TypeForm]
    """The kinds of operators of the given model with their element types."""
    faults: frozenset[str]
    """The reasons why kernels of the target compute operators of the given model wrongly."""

    @staticmethod
    def of(
        model: Model,
        candidate: Candidate,
        options: TilingOptions,
        used_kinds: frozenset[str] = frozenset(),
    ) -> TiledModel | None:
        """The model with the regions of a candidate; None if one of them is refused. used_kinds:
        kinds that the firmware has beside those of `model`."""
        used_kinds |= {op.kind for op in model.ops()}
        forms = forms_of(model.ops())
        tiled = clone(model)
        if candidate.order is not None:
            reorder(tiled.main, [tiled.main.ops[i] for i in candidate.order])
        position = {op: i for i, op in enumerate(tiled.main.ops)}
        if candidate.regions:
            check(tiled)
            if any(result.refusal for result in Regions(candidate.regions).rewrite(tiled)):
                return None
            check(tiled)
            if options.dialect and candidate.has_tiles:
                # checked when the file is made, like all later changes
                Crop("RESHAPE" in used_kinds).apply(tiled)
        faults = faults_of(model.ops(), options.kernels.target)
        return TiledModel(tiled, position, used_kinds, forms, faults)

    def copy(self) -> TiledModel:
        """The same with a copy of the model."""
        copied = clone(self.model)
        pairs = zip(self.model.main.ops, copied.main.ops, strict=True)
        position = {new: self.position[old] for old, new in pairs if old in self.position}
        return replace(self, model=copied, position=position)

    def with_spellings(self, spellings: Sequence[Spelling]) -> TiledModel:
        """A copy with operators in other spellings; they keep their positions."""
        copied = self.copy()
        by_result = {op.outputs[0]: i for op, i in copied.position.items() if op.outputs}
        graph = copied.model.main
        spelled = [graph.ops[s.op] for s in spellings]
        results = {op.outputs[0] for op in spelled}
        Respell(spellings).apply(copied.model)  # checked when the file is made
        for i, op in enumerate(graph.ops):
            if op.kind in SPELLABLE and op not in copied.position:
                behind = graph.ops[i + 1].outputs[0] if i + 1 < len(graph.ops) else None
                result = next((t for t in (op.outputs[0], behind) if t in results), None)
                if result in by_result:
                    copied.position[op] = by_result[result]
        return copied

    def reorder(
        self, tile_order: OrderMethod, known: GraphOrders | None, options: TilingOptions
    ) -> GraphOrders:
        """Order the operators of all graphs; returns the orders. known: the orders, if an equal
        model was ordered before."""
        graphs = self.model.graphs
        before = [{op: i for i, op in enumerate(g.ops)} for g in graphs]
        if known is not None:
            for g, order in zip(graphs, known, strict=True):
                reorder(g, [g.ops[i] for i in order])
        elif tile_order != "file":
            rules = options.kernels.scratch_of, options.input_overlaps_of
            Reorder(quick_order(tile_order), *rules).results(self.model)
        pairs = zip(graphs, before, strict=True)
        return tuple(tuple(positions[op] for op in g.ops) for g, positions in pairs)


class TiledFamily:
    """A tiled model in all orders of its operators that were requested."""

    def __init__(self, tiled: TiledModel) -> None:
        self._tiled = tiled
        self._orders: dict[OrderMethod, GraphOrders] = {}

    @staticmethod
    def of(
        model: Model,
        candidate: Candidate,
        options: TilingOptions,
        used_kinds: frozenset[str] = frozenset(),
    ) -> TiledFamily | None:
        """The family of a candidate; None if one of its regions is refused. used_kinds: of
        `TiledModel.of`."""
        tiled = TiledModel.of(model, candidate, options, used_kinds)
        return None if tiled is None else TiledFamily(tiled)

    @property
    def operators(self) -> int:
        """Number of operators of the tiled model."""
        return sum(len(graph.ops) for graph in self._tiled.model.graphs)

    def in_order(
        self, tile_order: OrderMethod, options: TilingOptions
    ) -> tuple[TiledModel, GraphOrders]:
        """A copy of the model in an order, and that order."""
        copied = self._tiled.copy()
        orders = copied.reorder(tile_order, self._orders.get(tile_order), options)
        self._orders[tile_order] = orders
        return copied, orders
