"""Candidates, their evaluations (figures), and the tilings made from both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_planner.memory.order import OrderMethod
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.tilings import Region, Tiling
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import Effort, PlanRecipe
from tflm_planner.transforms.spelling import Spelling
from tflm_planner.transforms.tile.tile import TiledRegion


@dataclass(frozen=True)
class Candidate:
    """A way to run a model, or an interval of one."""

    regions: tuple[Region, ...]
    """Operators are given by their positions in the given model, after `order` is applied."""
    bind_views: bool
    """Whether every view must lie inside its parent, so that it costs no copy."""
    order: tuple[int, ...] | None = None
    """The running order of the given operators before tiling; None for the order as given."""
    effort: Effort = Effort.FIRST_FITS
    """How much effort to spend on a plan."""
    tile_order: OrderMethod = "file"
    """The order of the operators after tiling: as tiles are made, in reverse post-order, or the
    result of a short search."""
    respell: int | None = None
    """Operators may be spelled otherwise (`tiling.spellings`), with at most this many instructions
    for one inference; None: spellings stay as they are."""

    @property
    def has_tiles(self) -> bool:
        """Whether a region runs in tiles."""
        return has_tiles(self.regions)

    @property
    def has_views(self) -> bool:
        """Whether there are tiles or other spellings: views may cost no operator only then."""
        return self.has_tiles or self.respell is not None

    @property
    def has_loops(self) -> bool:
        """Whether any region runs in a loop."""
        return any(isinstance(r, LoopedRegion) for r in self.regions)

    @property
    def family(self) -> Candidate:
        """Equal for candidates that differ only in their tile order and in `bind_views`."""
        return replace(self, tile_order="file", bind_views=False)

    @property
    def is_mixed(self) -> bool:
        """Whether there are both tiles and loops."""
        return self.has_tiles and self.has_loops


def has_tiles(regions: Sequence[Region]) -> bool:
    """Whether any region runs in tiles, not in a loop."""
    return any(isinstance(r, TiledRegion) for r in regions)


@dataclass(frozen=True)
class Evaluation:
    """The figures of a candidate."""

    head: int
    """Bytes of the head."""
    tail: int
    """Bytes of the tail."""
    arena: int
    """Bytes of the arena."""
    instructions: int
    """Instructions of one inference."""
    bottleneck: int | None
    """Position of the operator at the memory peak, in the given model after `order` is applied;
    None without operators."""
    new_kinds: frozenset[str] = frozenset()
    """Kinds of operators that the given model does not use."""
    spellings: tuple[Spelling, ...] = ()
    """Other spellings of operators of the tiled and ordered model."""


def if_permitted(
    evaluation: Evaluation | None, options: TilingOptions, used_kinds: frozenset[str]
) -> Evaluation | None:
    """The evaluation; None if it needs operators that are not permitted. used_kinds: kinds of
    operators of the whole model."""
    if evaluation is None:
        return None
    allowed = all(options.allows(kind, used_kinds) for kind in evaluation.new_kinds)
    return evaluation if allowed else None


def tiling_of(
    candidate: Candidate, evaluation: Evaluation, options: TilingOptions, original: int
) -> Tiling:
    """A candidate and its evaluation as a tiling. original: instructions of the original."""
    order = candidate.order
    regions, bottleneck = candidate.regions, evaluation.bottleneck
    subsampling, new_kinds = options.subsampling, evaluation.new_kinds
    if subsampling is not None:
        new_kinds |= subsampling.new_kinds
    if order is not None:
        regions = tuple(replace(r, ops=tuple(sorted(order[i] for i in r.ops))) for r in regions)
        bottleneck = None if bottleneck is None else order[bottleneck]
    return Tiling(
        regions=regions,
        arena=evaluation.arena,
        slowdown=evaluation.instructions / max(original, 1),
        bottleneck=bottleneck,
        bind_views=candidate.bind_views,
        head=evaluation.head,
        objective=options.objective,
        order=order,
        new_kinds=tuple(sorted(new_kinds)),
        recipe=PlanRecipe(candidate.tile_order, candidate.effort, evaluation.spellings),
        respell=candidate.respell,
        subsample=None if subsampling is None else subsampling.transform,
    )
