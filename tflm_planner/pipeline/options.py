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

from tflm_planner.memory.allocators import ALLOCATORS
from tflm_planner.memory.order import Method as OrderMethod
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.liveness import InputOverlapRule, no_input_overlaps
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tflm.targets import Target
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.tiling.search import Method, Objective, TilingOptions, check_choices
from tflm_planner.tiling.spellings import SpellingPermission
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import PlanRecipe
from tflm_planner.transforms.tile.tile import Patch, TiledRegion
from tflm_planner.verification import Options as VerifyOptions

Stripping = Literal["nothing", "unread", "unread by TFLM"]
"""What is dropped from a file: nothing, what no runtime reads, or what TFLM does not read."""
IoTypes = Literal["keep", "int8"]
"""Types of a model's inputs and outputs: as they are, or those inside, which mostly are int8."""
IO_TYPES: tuple[str, ...] = get_args(IoTypes)
Firmware = Literal["as-is", "more-ops", "lean"]
"""What the firmware may become: nothing else; one that registers more operators; one with the lean
library, and more operators."""
MOST_SLOWDOWN = 1000
"""A limit on instructions, relative to the original, that no tiling reaches."""
ORDERS: tuple[str, ...] = get_args(OrderMethod)


@dataclass(frozen=True)
class MemoryOptions:
    """How operators are ordered and buffers placed, and for which target. The pipeline itself sets
    what follows `strip`."""

    order: OrderMethod = "best"
    """How an order of the operators is looked for: one of ORDERS."""
    allocator: str = "best"
    """How offsets are looked for: one of ALLOCATORS."""
    time_limit: float | None = None
    """Seconds for all searching, tiles included. None: until everything is tried, which is counted,
    so that the same comes out on any machine."""
    seed: int = defaults.SEED
    """Of every random choice."""
    kernels: TargetKernels = field(default_factory=kernels_of)
    """The target, with the scratch and the contracts of its kernels."""
    overlap: bool = True
    """Whether results may overlap operands where those contracts allow it."""
    spellings: SpellingPermission | None = None
    """How much slower operators may be spelled for that (`tiling.spellings`). None: none is."""
    strip: Stripping = "nothing"
    """What is dropped from the file in the end (`write`)."""
    bind_views: bool = False
    """Whether views must be taken: SLICE and CONCATENATION then copy onto themselves, and the
    dialect drops them."""
    in_dialect: bool = False
    """Whether the file leaves out views."""
    states: tuple[tuple[int, int], ...] = ()
    """(input, output) of the main graph, by position: the output is laid over the input, so that
    the next invoke finds there what this one left."""
    recipe: PlanRecipe | None = None
    """Of a plan to begin with, so that none comes out that is worse; it needs no time."""
    exact_effort: float = 1.0
    """Of exact packing, relative to the usual one."""

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


def operators_of(firmware: Firmware) -> AllowedOperators:
    """Operators that may be added to a firmware where none are named. Raises UsageError for a word
    that is no `Firmware`."""
    if firmware not in get_args(Firmware):
        choices = ", ".join(get_args(Firmware))
        raise UsageError(f"--firmware {firmware!r} is unknown; choose from {choices}")
    return AllowedOperators.NONE if firmware == "as-is" else AllowedOperators.ALL


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
    """What tiling may do."""

    max_slowdown: float = defaults.SLOWDOWN
    """Instructions allowed, relative to the original."""
    dialect: bool = True
    """Whether views may cost no operator, which only TFLM understands (`transforms.dialect`)."""
    operators: AllowedOperators = AllowedOperators.NONE
    """Operators that the firmware may have to register in addition."""
    method: Method = "regions"
    """How the search goes (`tiling.options`)."""
    objective: Objective = "arena"
    """The bytes that it lowers: the whole arena, or its head alone."""
    workers: int = defaults.WORKERS
    """Processes that it uses."""
    by_hand: tuple[TiledRegion | Patch | LoopedRegion, ...] = ()
    """What is to be tiled, in place of a search."""
    inexact: bool = False
    """Whether sums may be split, which changes bits."""
    search_budget: SearchBudget = DEFAULT_BUDGET
    """The tuning constants of the search."""
    spellings_only: bool = False
    """No tiles and no loops; operators may only be spelled otherwise (`tiling.spellings`)."""

    def __post_init__(self) -> None:
        _check_slowdown(self.max_slowdown)
        if self.workers < 1:
            raise UsageError(f"{self.workers} workers cannot search; give 1 or more")
        check_choices(self.method, self.objective)

    def tiling_options(self, search: MemoryOptions, arena_limit: int | None) -> TilingOptions:
        """The same as the search for tiles takes it. search: how the tiled model will be planned.
        arena_limit: bytes of arena that are enough."""
        return TilingOptions(
            search.kernels,
            search.input_overlaps_of,
            max_slowdown=self.max_slowdown,
            method=self.method,
            objective=self.objective,
            arena_limit=arena_limit,
            dialect=self.dialect,
            operators=self.operators,
            workers=self.workers,
            search_budget=self.search_budget,
        )


@dataclass(frozen=True)
class PlanOptions:
    """Everything that is asked of the planning of one model."""

    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """How memory is planned, and for how long."""
    tiles: TilePermission | None = None
    """What tiling may do. None: no tiles."""
    io: IoTypes = "keep"
    """The types of inputs and outputs: as they are, or those that the network computes in
    (`transforms.drop_conversions`)."""
    given_arena_limit: int | None = None
    """Bytes of arena that the model must fit. None: the SRAM of the target's board, and as small as
    possible where no board was named."""
    verify: VerifyOptions | None = field(default_factory=VerifyOptions)
    """How the result is proved. None: it is written unproved."""
    force: bool = False
    """Whether an existing file is replaced."""
    command: tuple[str, ...] = ()
    """The command line that these options came from, from which those of further permissions are
    made. (): they came from none."""
    given: tuple[str, ...] = ()
    """That command line as it was typed, for the report."""

    @property
    def target(self) -> Target:
        """What the model is planned for."""
        return self.memory.kernels.target

    @property
    def arena_limit(self) -> int | None:
        """Bytes that the arena may take, if that is limited."""
        given, board = self.given_arena_limit, self.target.board
        return given if board is None or given is not None else board.sram

    def __post_init__(self) -> None:
        if self.io not in IO_TYPES:
            raise UsageError(f"--io {self.io!r} is unknown; choose from {', '.join(IO_TYPES)}")


@dataclass(frozen=True)
class StreamOptions:
    """Everything that is asked of a split into a front and a back."""

    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """How memory of both halves is planned."""
    tiles: TilePermission | None = None
    """What tiling may do in the back, which may get as slow as the pair allows. None: nothing."""
    rows: int | None = None
    """Rows of the image that the front takes at a time. None: the fewest."""
    end: int | None = None
    """The front's last operator, by its position in the file. None: where the least SRAM is
    needed."""
    max_slowdown: float = defaults.STREAM_SLOWDOWN
    """Instructions of the pair, relative to the original, as far as a split keeps to them."""
    verify: VerifyOptions | None = field(default_factory=VerifyOptions)
    """How the pair is proved. None: it is written unproved."""
    force: bool = False
    """Whether existing files are replaced."""

    @property
    def target(self) -> Target:
        """What the halves are planned for."""
        return self.memory.kernels.target

    def __post_init__(self) -> None:
        _check_slowdown(self.max_slowdown)
