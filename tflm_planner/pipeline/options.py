"""All options of the pipeline, as one tree; each part receives only its own piece.

    PlanOptions ----- search: MemoryOptions     target, order, offsets       -> memory_plan, write
                 |--- tiles: TilePermission     tiles and loops, if any      -> candidates
                 `--- verify: VerifyOptions     proof, if any                -> prove
    StreamOptions --- search, tiles             the same, for both halves    -> stream_input

The command line makes such a tree in `cli`, the public functions theirs in `interface`. Defaults
that those show as well are in `support/defaults`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from tflm_planner.memory.allocators import NAMES
from tflm_planner.memory.order import Method as OrderMethod
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.liveness import InputOverlapRule, no_input_overlaps
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.tiling.search import Method, Objective, TilingOptions, check_choices
from tflm_planner.tiling.spellings import SpellingPermission
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import PlanRecipe
from tflm_planner.transforms.tile.tile import Patch, TiledRegion
from tflm_planner.verification import Options as VerifyOptions

Stripping = Literal["nothing", "unread", "unread by TFLM"]
"""What is dropped from a file: nothing, what no runtime reads, or what TFLM does not read."""
Ends = Literal["keep", "int8"]
"""Types of a model's inputs and outputs: as they are, or those inside, which mostly are int8."""
ENDS: tuple[str, ...] = get_args(Ends)
MOST_SLOWDOWN = 1000
"""A limit on instructions, relative to the original, that no tiling reaches."""
ORDERS: tuple[str, ...] = get_args(OrderMethod)
ALLOCATORS = NAMES


@dataclass(frozen=True)
class MemoryOptions:
    """How operators are ordered and buffers placed, and for which target.

    order: one of ORDERS. allocator: one of ALLOCATORS. time_limit: seconds for all searching,
    tiles included; None: until everything is tried, which is counted, so that the same comes out
    on any machine. seed: of every random choice. kernels: the target, with the scratch and the
    contracts of its kernels. overlap: whether results may overlap operands where those contracts
    allow it. spellings: how much slower operators may be spelled for that (`tiling.spellings`);
    None: none is. strip: what is dropped from the file in the end (`write`).

    Set by the pipeline itself: bind_views: whether views must be taken (SLICE and CONCATENATION
    then copy onto themselves, and the dialect drops them). in_dialect: whether the file leaves out
    views. states: (input, output) of the main
    graph, by position: the output is laid over the input, so that the next invoke finds there what
    this one left. recipe: of a plan to begin with, so that none comes out that is worse; it needs
    no time. exact_effort: of exact packing, relative to the usual one."""

    order: OrderMethod = "best"
    allocator: str = "best"
    time_limit: float | None = None
    seed: int = defaults.SEED
    kernels: TargetKernels = field(default_factory=kernels_of)
    overlap: bool = True
    spellings: SpellingPermission | None = None
    bind_views: bool = False
    in_dialect: bool = False
    states: tuple[tuple[int, int], ...] = ()
    strip: Stripping = "nothing"
    recipe: PlanRecipe | None = None
    exact_effort: float = 1.0

    @property
    def input_overlaps_of(self) -> InputOverlapRule:
        """Which results may overlap operands, as far as it is wanted."""
        return self.kernels.input_overlaps_of if self.overlap else no_input_overlaps

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise UsageError(f"order {self.order!r} is unknown; choose from {', '.join(ORDERS)}")
        if self.allocator not in ALLOCATORS:
            raise UsageError(
                f"allocator {self.allocator!r} is unknown; choose from {', '.join(ALLOCATORS)}"
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise UsageError(f"time limit {self.time_limit} is not a positive number of seconds")


def _check_slowdown(slowdown: float) -> None:
    """Raise UsageError for a slowdown below 1, or too large for a limit counted in integers."""
    if not slowdown >= 1:
        raise UsageError(f"the slowdown {slowdown} is below 1; 1.1 allows 10 % more instructions")
    if slowdown > MOST_SLOWDOWN:
        raise UsageError(
            f"the slowdown {slowdown} is more than {MOST_SLOWDOWN}, which is as good as no limit"
        )


@dataclass(frozen=True)
class TilePermission:
    """What tiling may do. max_slowdown: instructions allowed, relative to the original. dialect:
    views that cost no operator, which only TFLM understands. operators: those that the
    firmware may have to register in addition. method, objective: how the search
    goes, and the bytes that it lowers (`tiling.search`). workers: processes that it uses. by_hand:
    what is to be tiled, in place of a search. inexact: whether sums may be split, which changes
    bits. search_budget: the tuning constants of the search. spellings_only: no tiles and no loops;
    operators may only be spelled otherwise (`tiling.spellings`)."""

    max_slowdown: float = defaults.SLOWDOWN
    dialect: bool = True
    operators: AllowedOperators = AllowedOperators.NONE
    method: Method = "regions"
    objective: Objective = "arena"
    workers: int = defaults.WORKERS
    by_hand: tuple[TiledRegion | Patch | LoopedRegion, ...] = ()
    inexact: bool = False
    search_budget: SearchBudget = DEFAULT_BUDGET
    spellings_only: bool = False

    def __post_init__(self) -> None:
        _check_slowdown(self.max_slowdown)
        if self.workers < 1:
            raise UsageError(f"{self.workers} workers cannot search; give 1 or more")
        check_choices(self.method, self.objective)

    def tiling_options(self, search: MemoryOptions, budget: int | None) -> TilingOptions:
        """The same as the search for tiles takes it. search: how the tiled model will be planned.
        budget: bytes of arena that are enough."""
        return TilingOptions(
            search.kernels,
            search.input_overlaps_of,
            max_slowdown=self.max_slowdown,
            method=self.method,
            objective=self.objective,
            budget=budget,
            dialect=self.dialect,
            operators=self.operators,
            workers=self.workers,
            search_budget=self.search_budget,
        )


@dataclass(frozen=True)
class PlanOptions:
    """search: how memory is planned, and for how long. tiles: what tiling may do (None: no tiles).
    ends: the types of inputs and outputs: as they are, or those that the network computes in
    (`transforms.drop_conversions`).
    budget: bytes of arena that the model must fit (None: the SRAM of the target's board, and as
    small as possible where no board was named). verify: None writes the result unproved. force:
    replace an existing file. command: the command line that these options came from, from which
    those of further permissions are made; (): they came from none. given: that command line as it
    was typed, for the report."""

    search: MemoryOptions = field(default_factory=MemoryOptions)
    tiles: TilePermission | None = None
    ends: Ends = "keep"
    budget: int | None = None
    verify: VerifyOptions | None = field(default_factory=VerifyOptions)
    force: bool = False
    command: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def arena_limit(self) -> int | None:
        """Bytes that the arena may take, if that is limited."""
        board = self.search.kernels.target.board
        return self.budget if board is None or self.budget is not None else board.sram

    def __post_init__(self) -> None:
        if self.ends not in ENDS:
            raise UsageError(f"--io {self.ends!r} is unknown; choose from {', '.join(ENDS)}")


@dataclass(frozen=True)
class StreamOptions:
    """search: of both halves. tiles: what tiling may do in the back (None: nothing); the back may
    get as slow as the pair allows. rows: of the image that the front takes at a time
    (None: the fewest). end: the front's last operator, by its position in the file (None: where the
    least SRAM is needed). max_slowdown: instructions of the pair, relative to the original, as far
    as a split keeps to them."""

    search: MemoryOptions = field(default_factory=MemoryOptions)
    tiles: TilePermission | None = None
    rows: int | None = None
    end: int | None = None
    max_slowdown: float = defaults.STREAM_SLOWDOWN

    def __post_init__(self) -> None:
        _check_slowdown(self.max_slowdown)
