"""What a run has to say, as data. Rendering lives in the modules beside this one.

Nothing here computes or copies: results of the floors below are held as they are. All sizes are
bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tflm_planner.tflm.arena.uncertainty import BoundKind, bound_of
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

    `input_bytes`, `output_bytes` and `other_bytes` are the columns of the tensor memory mapping
    of Sudharsan et al. (section 3): operands, results, and everything else that must be kept.
    `workspace_bytes` is the kernel's scratch. Bytes that an alias shares are counted once, as
    `shared_bytes` says, so that live = input + output + other + workspace - shared.
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
    """Where every buffer lies, over the operators in execution order. bound: how the head and all
    figures with scratch are known: exact, or "at least" where scratch is in doubt."""

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
    """Floors of the head that no plan of a kind can go below, in bytes. None: not known."""

    input_bytes: int
    """All model inputs together."""
    file_order_bytes: int | None
    """Live bytes at the peak, operators in file order."""
    best_order_bytes: int | None
    """The same for the best order."""
    overlap_bytes: int | None
    """The same where results may also overlap their operands from a distance on."""


@dataclass(frozen=True, slots=True)
class HostRuntime:
    """This machine's TFLM (the Python wheel): its arena predicted, and as it reported it."""

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
class Side:
    """The model before or after: its arena on the target, and the check on this machine. macs:
    multiply-accumulates of one inference, where every turn of a loop counts."""

    operators: int
    tensors: int
    file_bytes: int
    arena: Arena
    host: HostRuntime
    map: MemoryMap
    macs: int = 0

    @property
    def head(self) -> int:
        """The head on the target."""
        return self.arena.head


@dataclass(frozen=True, slots=True)
class Allocation:
    """The offsets that were found, and what shares memory on purpose.

    aliases: results that lie in operands. input_overlaps: results that overlap operands inside an
    operator, each replayed under the target's contract (`replayed` of them, all if the plan is
    legal).
    """

    solution: Solution
    aliases: tuple[str, ...]
    input_overlaps: tuple[str, ...]
    replayed: int


Role = Literal["stock", "plan", "tiled", "chosen", "slower"]


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A way to run the model."""

    role: Role
    """The source; order and plan alone; with regions in tiles or in loops; the one that was
    written; one that needs more instructions than allowed."""
    size: int
    """Bytes of arena, or of head, as the objective says."""
    slowdown: float
    """Instructions relative to the source."""
    added: tuple[str, ...] = ()
    """Operators that the firmware must register for it."""
    tiles: int = 0
    """Regions that run in tiles."""
    loops: int = 0
    """Regions that run in loops."""
    command: str = ""
    """What to type for so many bytes; "" for the source and for what was written."""


@dataclass(frozen=True, slots=True)
class ParetoFront:
    """Memory against instructions: ways to run the model. Apart from the source and the plan alone,
    no point is beaten in both bytes and instructions by another that needs no further operators.
    There may be better points that the search did not find."""

    objective: Literal["arena", "head"]
    """The bytes that were to be lowered, of the whole arena or of the head."""
    allowed: float
    """Instructions allowed, relative to the source."""
    points: tuple[ParetoPoint, ...]
    """The largest first."""
    bound: BoundKind = "exact"
    """What their bytes are."""


RungKind = Literal[
    "stock", "plan", "tiles", "int8 ends", "more operators", "lean", "rows streamed", "by hand"
]


@dataclass(frozen=True, slots=True)
class Rung:
    """One more thing that may change, with all that the rungs before it may change."""

    kind: RungKind
    """The model as it was; order and plan; tiles of the firmware's own operators; inputs and
    outputs of the types inside; loops and tiles with more operators; the lean library; rows from a
    camera; or what was spelled out by hand."""
    arena: int | None = None
    """Bytes. None: not tried."""
    slowdown: float | None = None
    """Instructions relative to the original. None: not known."""
    taken: bool = False
    """Whether it is what was written."""
    at_most: bool = False
    """Whether a further search might need less arena."""
    command: str = ""
    """What to type for it, if it was not taken."""
    remark: str = ""
    """Why it was not tried, or what it came to."""


@dataclass(frozen=True, slots=True)
class SmallerFile:
    """What a command would make of a file that is larger than the flash."""

    file_bytes: int
    command: str


@dataclass(frozen=True, slots=True)
class Paste:
    """What goes into the firmware's source. lines: C++, the arena and the operators. remarks: which
    TFLM has all that the model needs, and what is to be known beside."""

    lines: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a run of the planner has to say. All sizes are bytes."""

    version: str
    """Of this program."""
    target: str
    """Id of the target."""
    source: str
    """Path of the model, as it was given."""
    destination: str
    """Path of the result."""
    sha256_before: str
    """Of the source's bytes."""
    sha256_after: str
    """Of the result's bytes."""
    before: Side
    """The source."""
    after: Side
    """The result."""
    limits: HeadLimits
    """Floors of the head."""
    order: ChosenOrder
    """How the order of the operators was found."""
    allocation: Allocation
    """How the offsets were found."""
    checks: tuple[RuntimeCheck, ...]
    """What each runtime said of source and result."""
    verified: bool
    """Whether they are proved equal on all that were asked."""
    budget: int | None
    """Bytes of arena that were asked for. None: none were."""
    notes: tuple[str, ...]
    """What else is worth knowing."""
    seconds: dict[str, float]
    """By stage of the run."""
    front: ParetoFront | None = None
    """Ways to run the model. None: nothing was searched."""
    converted: tuple[ConvertedEnd, ...] = ()
    """Inputs and outputs that have another type than in the original."""
    stopped: Reason | None = None
    """Why the search was cut short. None: it was not."""
    terms: TermsProof | None = None
    """The proof for every input, if one was asked for."""
    tflm_only: bool = False
    """Whether no other runtime runs the file, as views or quantisation that TFLM does not need are
    left out."""
    board: Board | None = None
    """The one that the target was named by."""
    ladder: tuple[Rung, ...] = ()
    """What each further permission reaches."""
    paste: Paste = Paste()
    """What goes into the firmware's source."""
    smaller_file: SmallerFile | None = None
    """What helps where the file is too large for the board's flash."""
    command: str = ""
    """What was typed. "": nothing was."""
    made: str = ""
    """When, in UTC."""
    versions: tuple[str, ...] = ()
    """Of Python and of the runtimes that were there to compare on."""

    @property
    def cannot_run(self) -> tuple[str, ...]:
        """The operators that the target's TFLM refuses to run, with reasons. Such a model is not
        verified, whatever other runtimes say."""
        return self.after.arena.cannot_run

    @property
    def saved(self) -> int:
        """Bytes of arena saved."""
        return self.before.arena.arena - self.after.arena.arena

    @property
    def bound(self) -> BoundKind:
        """How the arenas are known: exact, or "at least" if one of the two is."""
        return bound_of((*self.before.arena.uncertainties, *self.after.arena.uncertainties))

    @property
    def arena_limit(self) -> int | None:
        """Bytes that the arena may take: the budget, or the board's SRAM; None: neither is given"""
        return self.budget if self.board is None or self.budget is not None else self.board.sram

    @property
    def within_budget(self) -> bool:
        """Whether the target's arena, as far as it is known, is within its limit (true where there
        is none). Where the arena is "at least" so large, that does not mean that it fits."""
        return self.arena_limit is None or self.after.arena.arena <= self.arena_limit

    @property
    def within_flash(self) -> bool:
        """Whether the file is no larger than the board's flash, if a board was named."""
        return self.board is None or self.after.file_bytes <= self.board.flash

    @property
    def fits(self) -> bool:
        """Whether nothing is too large, as far as it is known."""
        return self.within_budget and self.within_flash

    @property
    def known_to_fit(self) -> bool:
        """Whether it fits beyond doubt, and can run."""
        return self.fits and self.after.arena.bound != "at least" and not self.cannot_run
