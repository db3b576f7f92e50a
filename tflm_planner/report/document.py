"""The results of a run as data. The other modules of this package render them.

Results of lower packages are stored as they are, not copied field by field; properties derive from
them what several renderings say alike. All sizes are
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tflm_planner.tflm.arena.uncertainty import BoundKind, bound_of, may_need_more
from tflm_planner.verification.verdict import HostAllocation, RuntimeCheck

if TYPE_CHECKING:
    from tflm_planner.memory.allocators.portfolio import Solution
    from tflm_planner.support.stopping import Reason
    from tflm_planner.tflm.arena.predict import Arena
    from tflm_planner.tflm.targets import Board
    from tflm_planner.transforms.drop_conversions import ConvertedEnd
    from tflm_planner.transforms.reorder import ChosenOrder
    from tflm_planner.verification.terms import TermsProof

BlockKind = Literal["input", "output", "activation", "scratch"]


@dataclass(frozen=True, slots=True)
class MapBlock:
    """A rectangle of the memory map: a buffer at [offset, offset + size) during [start, end)."""

    name: str
    kind: BlockKind
    size: int
    offset: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MapStep:
    """One operator in execution order, with what is live while it runs.

    `input_bytes`, `output_bytes` and `other_bytes` are the columns of the tensor memory mapping of
    Sudharsan et al. (section 3): operands, results, and everything else that must be kept.
    `workspace_bytes` is the kernel's scratch. Bytes that two tensors share are counted twice in
    these; `shared_bytes` corrects that, so that live = input + output + other + workspace - shared.
    """

    index: int
    operator: str
    name: str
    graph: int
    input_bytes: int
    output_bytes: int
    other_bytes: int
    workspace_bytes: int
    shared_bytes: int
    live: tuple[str, ...]

    @property
    def live_bytes(self) -> int:
        """Bytes that must exist at the same time while this operator runs."""
        total = self.input_bytes + self.output_bytes + self.other_bytes + self.workspace_bytes
        return total - self.shared_bytes


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Where every buffer lies, over the operators in execution order. bound: whether the head and
    all figures that include scratch are exact, or "at least" if the size of scratch is
    uncertain."""

    steps: tuple[MapStep, ...]
    blocks: tuple[MapBlock, ...]
    head: int
    bound: BoundKind = "exact"

    @property
    def peak_step(self) -> MapStep | None:
        """The first operator at which the live bytes are largest."""
        return max(self.steps, key=lambda s: s.live_bytes, default=None)


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """Lower bounds of the head for different kinds of plans, in bytes. None: unknown."""

    input_bytes: int
    """All model inputs together."""
    file_order_bytes: int | None
    """Live bytes at the peak in file order."""
    best_order_bytes: int | None
    """Lower bound of the peak over all orders."""
    overlap_bytes: int | None
    """Lower bound if results may also overlap their operands in any way."""


@dataclass(frozen=True, slots=True)
class HostRuntime:
    """TFLM on this machine (the Python wheel): its predicted arena, and the head and tail that it
    reported, if it ran."""

    predicted: Arena
    measured: HostAllocation | None = None

    @property
    def predicted_head(self) -> int:
        """Bytes."""
        return self.predicted.head

    @property
    def predicted_tail(self) -> int:
        """Bytes."""
        return self.predicted.tail

    @property
    def measured_head(self) -> int | None:
        """Bytes; None where nothing was measured."""
        return None if self.measured is None else self.measured.head

    @property
    def measured_tail(self) -> int | None:
        """Bytes; None where nothing was measured."""
        return None if self.measured is None else self.measured.tail


@dataclass(frozen=True, slots=True)
class ModelFigures:
    """The model before or after: its arena on the target, and the check on this machine. macs:
    multiply-accumulates of one inference, including all iterations of loops."""

    operators: int
    tensors: int
    file_bytes: int
    arena: Arena
    host: HostRuntime
    map: MemoryMap
    macs: int = 0

    @property
    def head(self) -> int:
        """Bytes of the head on the target."""
        return self.arena.head


@dataclass(frozen=True, slots=True)
class Allocation:
    """The offsets that were found, and which results share memory on purpose.

    aliases: results in place. input_overlaps: results that overlap operands in ways that the
    target's contract allows. replayed: how many of these were checked by replay (all of them if the
    plan is legal).
    """

    solution: Solution
    aliases: tuple[str, ...]
    input_overlaps: tuple[str, ...]
    replayed: int


Role = Literal["stock", "plan", "tiled", "chosen", "slower"]


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A way to run the model: a point of the Pareto front."""

    role: Role
    """stock: the original. plan: order and plan alone. tiled: with regions in tiles or in loops.
    chosen: the one that was written. slower: one that needs more instructions than allowed."""
    size: int
    """Bytes of arena or of head, depending on the objective."""
    slowdown: float
    """Instructions relative to the original."""
    added: tuple[str, ...] = ()
    """Operators that the firmware must also register for it."""
    tiles: int = 0
    """Regions that run in tiles."""
    loops: int = 0
    """Regions that run in loops."""
    command: str = ""
    """The command that makes a file of this size; "" for the original and for the file that was
    written."""


@dataclass(frozen=True, slots=True)
class ParetoFront:
    """Memory against instructions: ways to run the model. Except for the original and the plan
    without tiles, no point is dominated, in bytes and instructions, by another that needs no
    further operators. There may be better points that the search did not find."""

    objective: Literal["arena", "head"]
    """The objective of the search: bytes of the arena or of the head."""
    allowed: float
    """Instructions allowed, relative to the original."""
    points: tuple[ParetoPoint, ...]
    """The points, largest first."""
    bound: BoundKind = "exact"
    """Whether the bytes of the points are exact, enough, or "at least"."""


@dataclass(frozen=True, slots=True)
class OperatorTrial:
    """What a search tried with an operator of the original: the smallest model that it evaluated
    with the operator in a region of tiles or in a loop; among those that are fast enough, if there
    are any."""

    name: str
    """Name of the operator's first result."""
    size: int | None
    """Bytes of arena or of head, as the objective of the front says. None: no such model."""
    slowdown: float | None
    """Instructions relative to the original. None: no such model."""
    fast_enough: bool
    """Whether it needs no more instructions than allowed."""
    promising: bool | None
    """Whether such tiles or loops may help by an estimate. None: not all were estimated."""
    whole: str
    """Why the operator can only run as a whole; "" if it need not."""


RungKind = Literal[
    "stock",
    "plan",
    "given search",
    "tiles",
    "int8 ends",
    "more operators",
    "lean",
    "rows streamed",
    "by hand",
]


@dataclass(frozen=True, slots=True)
class Rung:
    """A permission, including all permissions of the rungs before it, and what it reaches."""

    kind: RungKind
    """stock: the original. plan: order and plan. given search: tiles and spellings as the command
    asked for them, if that is less than the default search, or with operators that it names. tiles:
    the same by the default search, with the operators of the firmware. int8 ends: inputs and
    outputs in the types used inside. more operators: tiles and loops with further operators. lean:
    the lean library. rows streamed: rows from a camera. by hand: tiles and loops that the user
    specified."""
    arena: int | None = None
    """Bytes of arena. None: not tried."""
    slowdown: float | None = None
    """Instructions relative to the original. None: unknown."""
    taken: bool = False
    """Whether this is the file that was written."""
    at_most: bool = False
    """Whether a further search might find a smaller arena."""
    command: str = ""
    """The command for this rung, if it was not taken."""
    remark: str = ""
    """Why it was not tried, or the outcome in words."""
    searched: bool = False
    """Whether it was searched, or ruled out without a search. Until then a figure is only a
    bound."""


@dataclass(frozen=True, slots=True)
class SmallerFile:
    """The size to which a command would reduce a file that exceeds the flash."""

    file_bytes: int
    command: str


@dataclass(frozen=True, slots=True)
class Paste:
    """What to paste into the firmware's source. lines: C++ lines for the arena and the operators.
    remarks: which TFLM has everything that the model needs, and other remarks."""

    lines: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The complete results of a run of the planner. All sizes are bytes."""

    version: str
    """Version of this program."""
    target: str
    """Id of the target."""
    source: str
    """Path of the model, as it was given."""
    destination: str
    """Path of the result."""
    sha256_before: str
    """SHA-256 of the original file."""
    sha256_after: str
    """SHA-256 of the result."""
    before: ModelFigures
    """The original."""
    after: ModelFigures
    """The result."""
    limits: HeadLimits
    """Lower bounds of the head."""
    order: ChosenOrder
    """How the order of the operators was found."""
    allocation: Allocation
    """How the offsets were found."""
    checks: tuple[RuntimeCheck, ...]
    """The checks of original and result by each runtime."""
    verified: bool
    """Whether original and result are proved equal."""
    budget: int | None
    """The budget in bytes of arena. None: none was given."""
    notes: tuple[str, ...]
    """Other remarks."""
    seconds: dict[str, float]
    """Seconds by stage of the run."""
    front: ParetoFront | None = None
    """The Pareto front. None: nothing was searched."""
    trials: tuple[OperatorTrial, ...] = ()
    """What the search tried with the operators of the original's main graph, after it was cleaned
    up. Empty without a search for tiles, and if a result of it was refused."""
    converted: tuple[ConvertedEnd, ...] = ()
    """Inputs and outputs that have another type than in the original."""
    stopped: Reason | None = None
    """Why the search was cut short. None: it was not."""
    terms: TermsProof | None = None
    """The proof for every input, if one was asked for."""
    tflm_only: bool = False
    """Whether only TFLM runs the file, because it lacks operators that make views, or quantization
    that TFLM does not need."""
    board: Board | None = None
    """The board, if the target was given by a board."""
    ladder: tuple[Rung, ...] = ()
    """What each further permission reaches."""
    paste: Paste = Paste()
    """What to paste into the firmware's source."""
    smaller_file: SmallerFile | None = None
    """How to make the file smaller, if it exceeds the board's flash."""
    command: str = ""
    """The command line; "" if there was none."""
    made: str = ""
    """Date and time of the run, in UTC."""
    versions: tuple[str, ...] = ()
    """Of Python and of the runtimes on which the result was compared."""

    @property
    def cannot_run(self) -> tuple[str, ...]:
        """Why the target's TFLM cannot run the model: operators and reasons. Such a model is not
        verified, even if other runtimes run it."""
        return self.after.arena.cannot_run

    @property
    def saved(self) -> int:
        """Bytes of arena saved."""
        return self.before.arena.arena - self.after.arena.arena

    @property
    def bound(self) -> BoundKind:
        """How far both arenas can be trusted: the weaker bound of the two (see `BoundKind`)."""
        return bound_of((*self.before.arena.uncertainties, *self.after.arena.uncertainties))

    @property
    def arena_limit(self) -> int | None:
        """Bytes that the arena may take: the budget, or else the board's SRAM. None if neither is
        given."""
        return self.budget if self.board is None or self.budget is not None else self.board.sram

    @property
    def within_budget(self) -> bool:
        """Whether the known size of the arena is within its limit (true without a limit). If the
        size is only "at least" or "about", this does not mean that the arena fits."""
        return self.arena_limit is None or self.after.arena.arena <= self.arena_limit

    @property
    def within_flash(self) -> bool:
        """Whether the file is no larger than the board's flash (true without a board)."""
        return self.board is None or self.after.file_bytes <= self.board.flash

    @property
    def may_fit(self) -> bool:
        """Whether arena and file, as predicted, are within their limits."""
        return self.within_budget and self.within_flash

    @property
    def is_in_doubt(self) -> bool:
        """Whether a board may need so much less than predicted that the model fits after all, if it
        does not fit as predicted."""
        return self.within_flash and self.after.arena.bound == "about"

    @property
    def fits(self) -> bool:
        """Whether arena and file are within their limits beyond doubt, and the model can run. False
        where the arena is only known as "at least" or "about"."""
        return self.may_fit and not may_need_more(self.after.arena.bound) and not self.cannot_run
