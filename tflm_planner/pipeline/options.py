"""All options of the pipeline as one tree. Each part of the pipeline receives only its own branch.

    PlanOptions ----- memory: MemoryOptions     target, order, offsets       -> memory_plan, write
                 |--- tiles: TilePermission     tiles and loops, if any      -> candidates
                 `--- verify: VerifyOptions     proof, if any                -> prove
    StreamOptions --- memory, tiles, verify     the same, for both halves    -> stream_input

`cli` makes such a tree from the command line, `interface` from the keywords of the public
functions. Defaults that both of these show are in `support/defaults`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, get_args

from tflm_planner.memory.allocators import ALLOCATORS
from tflm_planner.memory.order import OrderMethod
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError, suggest
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.liveness import InputOverlapRule, no_input_overlaps
from tflm_planner.tflm.resolver_methods import BUILTINS
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tflm.targets import Target
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.tiling.search import Method, Objective, TilingOptions, check_choices
from tflm_planner.tiling.spellings import SpellingPermission
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import PlanRecipe
from tflm_planner.transforms.tile.tile import Patch, TiledRegion
from tflm_planner.verification import VerifyOptions

Stripping = Literal["nothing", "unread", "unread by TFLM"]
"""What is dropped from a file: nothing, what no runtime reads, or what TFLM does not read."""
IoTypes = Literal["keep", "int8"]
"""Types of a model's inputs and outputs: as they are, or those used inside the model, mostly
int8."""
IO_TYPES: tuple[str, ...] = get_args(IoTypes)
Firmware = Literal["as-is", "more-ops", "lean"]
"""How the firmware may change: not at all; it may register more operators; or it may also use the
lean library."""
MOST_SLOWDOWN = 1000
"""The largest slowdown that can be set. No tiling reaches it."""
ORDERS: tuple[str, ...] = get_args(OrderMethod)


@dataclass(frozen=True)
class MemoryOptions:
    """How operators are ordered and buffers placed, and for which target. The pipeline itself sets
    `spellings` and the fields after `strip`."""

    order: OrderMethod = "best"
    """The search for an operator order: one of ORDERS."""
    allocator: str = "best"
    """The search for offsets: one of ALLOCATORS."""
    time_limit: float | None = None
    """Seconds for all searches, including tiles. None: searches end by counted work, so that the
    result is the same on any machine."""
    seed: int = defaults.SEED
    """Seed of all random choices."""
    kernels: TargetKernels = field(default_factory=kernels_of)
    """The target, with the scratch and the contracts of its kernels."""
    overlap: bool = True
    """Whether results may overlap operands where the contracts of `kernels` allow it."""
    spellings: SpellingPermission | None = None
    """How much slower the model may become by other spellings of operators, to save memory
    (`tiling.spellings`). None: spellings stay."""
    strip: Stripping = "nothing"
    """What is dropped from the file at the end (`write`)."""
    bind_views: bool = False
    """Whether a plan must place every view inside the tensor that it is a view of. SLICE and
    CONCATENATION then copy bytes onto themselves, and the dialect drops these operators."""
    copying: frozenset[str] = frozenset()
    """With `bind_views`: the kinds of operators whose views may be copies all the same."""
    in_dialect: bool = False
    """Whether the file will be in the TFLM dialect, without the operators that make views."""
    states: tuple[tuple[int, int], ...] = ()
    """(input, output) of the main graph, by position. The output must lie at the offset of the
    input, so that the next invoke finds there what this one wrote."""
    tiled: bool = False
    """Whether the model has regions in tiles or loops."""
    recipe: PlanRecipe | None = None
    """How to make a first plan quickly. The final plan is never worse than this one."""
    exact_effort: float = 1.0
    """Effort of exact packing, relative to the default."""
    climb_effort: float = 1.0
    """Effort of packing by local search, relative to the default."""

    @property
    def input_overlaps_of(self) -> InputOverlapRule:
        """Which results may overlap operands; none if `overlap` is off."""
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
        if self.seed < 0:
            raise UsageError(f"the seed {self.seed} is negative; take 0 or more")


def operators_of(firmware: Firmware) -> AllowedOperators:
    """The operators that may be added to the firmware if the user names none. Raises UsageError for
    a word that is not in `Firmware`."""
    if firmware not in get_args(Firmware):
        choices = ", ".join(get_args(Firmware))
        raise UsageError(f"--firmware {firmware!r} is unknown; choose from {choices}")
    return AllowedOperators.NONE if firmware == "as-is" else AllowedOperators.ALL


def operators_named(names: Collection[str]) -> AllowedOperators:
    """Permits to add operators of these names, such as "PAD", and no others. Raises UsageError for
    a name that TFLM does not have."""
    named = {name.upper() for name in names}
    for name in sorted(named - BUILTINS):
        hint = suggest(name, sorted(BUILTINS))
        raise UsageError(f"--ops {','.join(sorted(named))}: TFLM has no operator {name}; {hint}")
    return AllowedOperators.of(named)


def check_slowdown(slowdown: float) -> None:
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
    """The method of the search (`tiling.options`)."""
    objective: Objective = "arena"
    """What the search minimizes: bytes of the arena or of its head."""
    workers: int = defaults.WORKERS
    """Most processes of the search, one a core; they change nothing but the time."""
    by_hand: tuple[TiledRegion | Patch | LoopedRegion, ...] = ()
    """The tiles and loops to make, instead of a search."""
    inexact: bool = False
    """Whether sums may be split, which changes bits."""
    search_budget: SearchBudget = DEFAULT_BUDGET
    """The tuning constants of the search."""
    spellings_only: bool = False
    """Whether tiles and loops are excluded, so that only spellings of operators may change
    (`tiling.spellings`)."""

    def __post_init__(self) -> None:
        check_slowdown(self.max_slowdown)
        if self.workers < 1:
            raise UsageError(f"{self.workers} workers cannot search; give 1 or more")
        check_choices(self.method, self.objective)

    def tiling_options(self, memory: MemoryOptions, arena_limit: int | None) -> TilingOptions:
        """The permission as options of the search for tiles. memory: how the tiled model will be
        planned. arena_limit: bytes that the arena may take."""
        return TilingOptions(
            memory.kernels,
            memory.input_overlaps_of,
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
    """All options for planning one model."""

    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """How memory is planned, and for how long it is searched."""
    tiles: TilePermission | None = None
    """What tiling may do. None: no tiles."""
    io: IoTypes = "keep"
    """The types of inputs and outputs: as they are, or those that the network computes in
    (`transforms.drop_conversions`)."""
    given_arena_limit: int | None = None
    """Bytes that the arena may take. None: the SRAM of the target's board or, without a board, no
    limit (the smallest result is made)."""
    verify: VerifyOptions | None = field(default_factory=VerifyOptions)
    """How the result is proved. None: it is written without a proof."""
    force: bool = False
    """Whether an existing file is replaced."""
    command: tuple[str, ...] = ()
    """The command line from which these options came. Commands for further permissions are derived
    from it. Empty if there was none."""
    given: tuple[str, ...] = ()
    """The command line as it was typed, for the report."""

    @property
    def target(self) -> Target:
        """The target for which the model is planned."""
        return self.memory.kernels.target

    @property
    def arena_limit(self) -> int | None:
        """Bytes that the arena may take; None if there is no limit."""
        given, board = self.given_arena_limit, self.target.board
        return given if board is None or given is not None else board.sram

    def __post_init__(self) -> None:
        if self.given_arena_limit is not None and self.given_arena_limit < 1:
            raise UsageError(f"a budget of {self.given_arena_limit} bytes holds no arena")
        if self.io not in IO_TYPES:
            raise UsageError(f"--io {self.io!r} is unknown; choose from {', '.join(IO_TYPES)}")


@dataclass(frozen=True)
class StreamOptions:
    """All options for splitting a model into a front and a back."""

    memory: MemoryOptions = field(default_factory=MemoryOptions)
    """How memory of both halves is planned."""
    tiles: TilePermission | None = None
    """What tiling may do in the back. Its slowdown follows from `max_slowdown` of the pair. None:
    no tiles."""
    rows: int | None = None
    """Rows of the image that the front takes at a time. None: the fewest possible."""
    end: int | None = None
    """The front's last operator, by its position in the file. None: the one with which the least
    SRAM is needed."""
    max_slowdown: float = defaults.STREAM_SLOWDOWN
    """Instructions allowed for the pair, relative to the original. It is exceeded if no split stays
    within it."""
    verify: VerifyOptions | None = field(default_factory=VerifyOptions)
    """How the pair is proved. None: it is written without a proof."""
    force: bool = False
    """Whether existing files are replaced."""

    @property
    def target(self) -> Target:
        """The target for which the halves are planned."""
        return self.memory.kernels.target

    def __post_init__(self) -> None:
        check_slowdown(self.max_slowdown)
        if self.rows is not None and self.rows < 1:
            raise UsageError(f"--rows {self.rows}: take 1 row or more at a time")
        if self.end is not None and self.end < 0:
            raise UsageError(f"--end {self.end}: operators are counted from 0")
