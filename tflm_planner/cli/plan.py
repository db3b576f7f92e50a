"""The command line of `plan`: a field for each option, and the pipeline's options made from them.

The fields are the command line: names, types, defaults, help. Heavy modules are imported only when
the options are made, so that `tflm-plan --help` answers at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tflm_planner.cli.boards import add_profile
from tflm_planner.cli.choices import Allocator, Firmware, IoTypes, Objective, Order, SearchMethod
from tflm_planner.cli.shared import (
    JSON_HELP,
    QUIET_HELP,
    TFLM_HELP,
    TIME_LIMIT_HELP,
    VERBOSE_HELP,
    allowed_operators,
    at_tflm,
    ops_needs,
    refuse_silence,
)
from tflm_planner.cli.without_effect import Need, given_words, refuse_without_effect
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError

if TYPE_CHECKING:
    from tflm_planner.pipeline.api import MemoryOptions, PlanOptions, TilePermission
    from tflm_planner.tflm.targets import Target

STREAM = Path("-")
"""As IN it means stdin, as OUT it means stdout."""
_PLANNED = ".planned.tflite"
"""The ending of OUT's name if no OUT is given."""

_FIT = "What it must fit"
_CHANGE = "What it may change"
_COST = "What it may cost"
_BY_HAND = "Tiles and loops by hand"
_REPORTS = "What is written and said"
_ADVANCED = "Advanced"


def _option(panel: str, words: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=words, rich_help_panel=panel, **more)


@dataclass(frozen=True)
class PlanArguments:
    """The command line of `plan`, as it was given."""

    source: Annotated[
        Path, typer.Argument(readable=False, metavar="IN", help="The .tflite model; - for stdin.")
    ]
    destination: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT", help="What to write; IN.planned.tflite if not given; - for stdout."
        ),
    ] = None
    target: Annotated[
        str,
        _option(
            _FIT,
            "Board, target or TOML file; tflm-plan targets lists them.",
            "--target",
            "-t",
            metavar="BOARD",
        ),
    ] = defaults.TARGET
    budget: Annotated[
        str | None,
        _option(
            _FIT,
            "Bytes the arena may take, e.g. 256K; a board's SRAM if not given. Of the plans that "
            "fit the fastest is written, else the smallest, with exit code 3.",
            metavar="BYTES",
        ),
    ] = None
    firmware: Annotated[
        Firmware,
        _option(
            _CHANGE,
            "as-is: the firmware stays; more-ops: it may register more operators; lean: it may "
            "take the lean library, and more operators.",
            metavar="WHAT",
        ),
    ] = "as-is"
    ops: Annotated[
        str,
        _option(
            _CHANGE,
            "Operators that the firmware may add, e.g. PAD,SLICE; no others.",
            metavar="NAMES",
        ),
    ] = ""
    io: Annotated[
        IoTypes,
        _option(
            _CHANGE,
            "Types of inputs and outputs: keep, or int8: those inside the model, for the "
            "application to convert.",
            "--io",
            metavar="TYPES",
        ),
    ] = "keep"
    max_slowdown: Annotated[
        float,
        _option(
            _COST,
            "Instructions of the result, relative to the model; 1.0: what is free.",
            metavar="RATIO",
        ),
    ] = defaults.SLOWDOWN
    profile: Annotated[
        Path | None, _option(_COST, "Latencies of a board, from tflm-plan profile.", metavar="FILE")
    ] = None
    patch: Annotated[
        str | None,
        _option(
            _BY_HAND,
            "p,n or p,nb: p x p patches over the first n operators (or blocks).",
            metavar="P,N",
        ),
    ] = None
    split: Annotated[
        list[str] | None,
        _option(
            _BY_HAND,
            "E.g. 2-7:rows=4,halo=merge, 2-7:rows=3,growth=30 or 3:sum=2; may be repeated.",
            metavar="A-B:...",
        ),
    ] = None
    loop: Annotated[
        list[str] | None,
        _option(
            _BY_HAND,
            "E.g. 2-4:rows=2,border=reverse: rows streamed; may be repeated.",
            metavar="A-B:...",
        ),
    ] = None
    allow_inexact: Annotated[
        bool,
        _option(_BY_HAND, "Let --split split sums: outputs may NOT be equal.", "--allow-inexact"),
    ] = False
    force: Annotated[bool, _option(_REPORTS, "Replace OUT if it exists.", "--force")] = False
    report: Annotated[
        list[Path] | None,
        _option(
            _REPORTS,
            "Also write a report: .json, .csv, .html or .svg; may be repeated.",
            metavar="FILE",
        ),
    ] = None
    as_json: Annotated[bool, _option(_REPORTS, JSON_HELP, "--json")] = False
    quiet: Annotated[bool, _option(_REPORTS, QUIET_HELP, "--quiet", "-q")] = False
    verbose: Annotated[bool, _option(_REPORTS, VERBOSE_HELP, "--verbose", "-v")] = False
    strip: Annotated[
        bool,
        _option(_ADVANCED, "Drop from the file what TFLM does not read: less flash.", "--strip"),
    ] = False
    portable: Annotated[
        bool, _option(_ADVANCED, "Write only what every TFLite runtime runs.", "--portable")
    ] = False
    tflm: Annotated[
        str | None,
        _option(
            _ADVANCED,
            TFLM_HELP,
            metavar="DATE",
        ),
    ] = None
    search: Annotated[
        SearchMethod,
        _option(
            _ADVANCED,
            "What is tried beside order and plan. regions: tiles, loops and other spellings of "
            "operators; motes: tiles by MOTES's beam search; spellings alone; none.",
            metavar="WHAT",
        ),
    ] = "regions"
    objective: Annotated[
        Objective, _option(_ADVANCED, "Bytes to lower: arena or head.", metavar="WHAT")
    ] = "arena"
    order: Annotated[
        Order, _option(_ADVANCED, "Of operators: best, exact, beam, rpo or file.", metavar="NAME")
    ] = "best"
    allocator: Annotated[
        Allocator,
        _option(_ADVANCED, "Of offsets: best, greedy, local, exact or cpsat.", metavar="NAME"),
    ] = "best"
    no_overlap: Annotated[
        bool, _option(_ADVANCED, "Share memory only as every kernel allows.", "--no-overlap")
    ] = False
    time_limit: Annotated[
        float | None,
        _option(
            _ADVANCED,
            TIME_LIMIT_HELP,
            metavar="SECONDS",
        ),
    ] = None
    workers: Annotated[
        int,
        _option(
            _ADVANCED,
            "Most processes of the search, one a core.",
            min=1,
            metavar="N",
        ),
    ] = defaults.WORKERS
    seed: Annotated[int, _option(_ADVANCED, "Of all random choices.", min=0, metavar="N")] = (
        defaults.SEED
    )
    inputs: Annotated[
        int, _option(_ADVANCED, "Inputs to compare on each runtime.", min=1, metavar="N")
    ] = defaults.INPUTS
    no_verify: Annotated[
        bool, _option(_ADVANCED, "Write without proving equality.", "--no-verify")
    ] = False

    @property
    def by_hand(self) -> bool:
        """Whether the command line itself says which tiles or loops to make."""
        return bool(self.patch or self.split or self.loop)

    @property
    def reads_stdin(self) -> bool:
        """Whether the model comes from stdin."""
        return self.source == STREAM

    @property
    def writes_stdout(self) -> bool:
        """Whether the model goes to stdout."""
        return self.destination == STREAM

    @property
    def output(self) -> Path:
        """Where the model is written: OUT, or a path derived from IN. Raises UsageError if IN is
        stdin and there is no OUT."""
        if self.destination is not None:
            return self.destination
        if self.reads_stdin:
            raise UsageError("the model comes from stdin: say where to write it, as OUT")
        if not self.source.name:
            raise UsageError(f"{self.source} is a directory; give the .tflite file in it")
        return self.source.with_name(f"{self.source.stem}{_PLANNED}")

    def needs(self) -> Iterator[Need]:
        """The options that have an effect only in combination with others."""
        searched = not self.by_hand and self.search != "none"
        changed = searched or self.by_hand
        yield Need(("--search",), not self.by_hand, "--patch, --split and --loop say what is tiled")
        slower = "it is for what a search may find; leave out --search none, and tiles by hand"
        yield Need(("--max-slowdown",), searched, slower)
        tiles = searched and self.search != "spellings"
        search = "it is for the search for tiles, which --search and tiles by hand replace"
        yield Need(("--objective", "--workers"), tiles, search)
        yield Need(("--ops",), changed, "it is for tiles; leave out --search none")
        yield from ops_needs(self.firmware)
        more = self.firmware != "more-ops" or changed
        yield Need(("--firmware",), more, "operators are for tiles; leave out --search none")
        yield Need(("--profile",), changed, "it says what tiles cost; leave out --search none")
        portable = changed or self.strip
        yield Need(("--portable",), portable, "order and plan alone are; leave out --search none")
        sums = bool(self.split)
        yield Need(("--allow-inexact",), sums, "it lets sums be split; add --split N-M:sum=K")
        yield Need(("--inputs",), not self.no_verify, "--no-verify compares nothing; leave it out")
        text = not (self.writes_stdout and self.as_json)
        yield Need(("--json",), text, "the model goes to stdout; write --report FILE.json")

    def options(self) -> PlanOptions:
        """What the command line asks for. Raises UsageError."""
        from tflm_planner.pipeline import api
        from tflm_planner.support.units import parse_size

        refuse_without_effect(self.needs())
        refuse_silence()
        return api.PlanOptions(
            memory=self._memory_options(),
            given_arena_limit=None if self.budget is None else parse_size(self.budget),
            verify=None if self.no_verify else api.VerifyOptions(self.seed, self.inputs),
            force=self.force,
            io=self.io,
            tiles=self._permission() if self.search != "none" or self.by_hand else None,
            command=self._command(),
            given=("tflm-plan", *given_words(without=())),
        )

    def _command(self) -> tuple[str, ...]:
        """The command line from which a report derives commands that allow more. It lacks the
        options that those commands set themselves."""
        changed = ("--io", "--firmware", "--ops", "--search", "--force")
        words = given_words(without=(*changed, "--quiet", "--verbose", "--json", "--report"))
        return ("tflm-plan", *words, *(() if self.writes_stdout else ("--force",)))

    def _memory_options(self) -> MemoryOptions:
        from tflm_planner.pipeline import api

        return api.MemoryOptions(
            order=self.order,
            allocator=self.allocator,
            time_limit=self.time_limit,
            seed=self.seed,
            kernels=api.kernels_of(self._target()),
            overlap=not self.no_overlap,
            strip=("unread" if self.portable else "unread by TFLM") if self.strip else "nothing",
        )

    def _target(self) -> Target:
        from tflm_planner.pipeline import api

        target = api.load_target(self.target, lean=self.firmware == "lean")
        return add_profile(at_tflm(target, self.tflm), self.profile)

    def _permission(self) -> TilePermission:
        from tflm_planner.pipeline import api
        from tflm_planner.pipeline.planning.by_hand import parse_regions

        return api.TilePermission(
            self.max_slowdown,
            dialect=not self.portable,
            operators=allowed_operators(self.firmware, self.ops),
            by_hand=parse_regions(self.patch, self.split or (), self.loop or ()),
            inexact=self.allow_inexact,
            method="motes" if self.search == "motes" else "regions",
            objective=self.objective,
            workers=self.workers,
            spellings_only=self.search == "spellings",
        )
