"""The command line of `plan`: one field an option, and the options of the pipeline that they make.

The fields are the command line: names, types, defaults, help. Heavy modules are imported when the
options are made, so that `tflm-plan --help` answers in a blink.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from tflm_planner.cli.boards import add_profile
from tflm_planner.cli.idle import Need, refuse_idle
from tflm_planner.cli.shared import (
    AsJson,
    Inputs,
    Quiet,
    Seed,
    TargetName,
    Verbose,
    parse_operator_kinds,
    refuse_silence,
)
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError

if TYPE_CHECKING:
    from tflm_planner.pipeline.api import MemoryOptions, PlanOptions, TilePermission
    from tflm_planner.pipeline.options import Ends
    from tflm_planner.tflm.targets import Target


def _flag(name: str, words: str) -> Any:
    return typer.Option(name, help=words)


def _option(words: str, **more: Any) -> Any:
    return typer.Option(help=words, **more)


def _tiles(words: str, **more: Any) -> Any:
    return typer.Option(help=f"With --tile: {words}", **more)


@dataclass(frozen=True)
class PlanArguments:
    """The command line of `plan`, as it was given."""

    source: Annotated[Path, typer.Argument(metavar="IN", help="The .tflite model.")]
    destination: Annotated[Path, typer.Argument(metavar="OUT", help="The model to write.")]
    # what for
    budget: Annotated[
        str | None, _option("Bytes the arena may take, e.g. 256K; exit code 3 if not.")
    ] = None
    target: TargetName = defaults.TARGET
    tflm: Annotated[
        str | None, _option("A month or day of TFLM's sources, e.g. 2025-06: what it can do.")
    ] = None
    lean: Annotated[bool, _flag("--lean", "For firmware with the lean library: target+lean.")] = (
        False
    )
    ends: Annotated[
        str,
        typer.Option("--io", help="keep, or int8: inputs and outputs of the types inside."),
    ] = "keep"
    # how
    order: Annotated[str, _option("Operator order: best, exact, beam, rpo or file.")] = "best"
    allocator: Annotated[str, _option("Offsets: best, greedy, local, exact or cpsat.")] = "best"
    time_limit: Annotated[
        float | None,
        _option("Seconds to search at most; proof on top. Else counted: same bytes everywhere."),
    ] = None
    seed: Seed = defaults.SEED
    no_overlap: Annotated[
        bool, _flag("--no-overlap", "Share memory only as every kernel allows.")
    ] = False
    dilate: Annotated[
        bool, _flag("--dilate", "Let 1x1 convolutions overlap on CMSIS-NN, slower.")
    ] = False
    strip: Annotated[
        bool, _flag("--strip", "Drop from the file what TFLM does not read, for less flash.")
    ] = False
    portable: Annotated[
        bool, _flag("--portable", "Only what every TFLite runtime runs (with --tile or --strip).")
    ] = False
    # tiles and loops
    tile: Annotated[bool, _flag("--tile", "Also compute parts of the model in tiles.")] = False
    respell: Annotated[
        bool, _flag("--respell", "Also write 1x1 convolutions so that their results overlap.")
    ] = False
    overhead: Annotated[
        float,
        typer.Option(
            "--latency-overhead", help="With --tile or --respell: instructions allowed, x."
        ),
    ] = defaults.SLOWDOWN
    ops: Annotated[str, _tiles("operators the firmware may have to add, or 'all'.")] = ""
    search: Annotated[str, _tiles("regions (best partition) or motes (its beam search).")] = (
        "regions"
    )
    objective: Annotated[str, _tiles("lower the whole arena, or the head alone.")] = "arena"
    workers: Annotated[int, _tiles("processes; the result is the same.", min=1)] = defaults.WORKERS
    profile: Annotated[Path | None, _tiles("latencies of a board, from tflm-plan profile.")] = None
    patch: Annotated[
        str | None, _option("p,n or p,nb: p x p patches over the first n operators (or blocks).")
    ] = None
    split: Annotated[
        list[str] | None,
        _option("By hand, e.g. 2-7:rows=4,halo=merge or 3:sum=2; may be repeated."),
    ] = None
    loop: Annotated[
        list[str] | None,
        _option("By hand, e.g. 2-4:rows=2,border=reverse: rows streamed; may be repeated."),
    ] = None
    allow_inexact: Annotated[
        bool, _flag("--allow-inexact", "Let --split split sums: outputs may NOT be equal.")
    ] = False
    # what to say, and what to prove
    report: Annotated[
        list[Path] | None,
        _option("Also write a report: .json, .csv, .html or .svg; may be repeated."),
    ] = None
    inputs: Inputs = defaults.INPUTS
    no_verify: Annotated[bool, _flag("--no-verify", "Write without proving equality.")] = False
    force: Annotated[bool, _flag("--force", "Replace OUT if it exists.")] = False
    as_json: AsJson = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def by_hand(self) -> bool:
        """Whether tiles or loops are spelled out."""
        return bool(self.patch or self.split or self.loop)

    def needs(self) -> Iterator[Need]:
        """Options that do something only beside others."""
        tiles = self.tile or self.by_hand
        changed = tiles or self.respell
        by_hand = "--patch, --split and --loop say what is changed"
        yield Need(("--tile", "--respell"), not self.by_hand, by_hand)
        yield Need(("--respell",), not self.tile, "--tile does it too; leave it out")
        slower = self.tile or self.respell
        yield Need(("--latency-overhead",), slower, "it allows slower models; add --tile")
        search = ("--search", "--objective", "--workers")
        yield Need(search, self.tile, "it is for the search for tiles; add --tile")
        yield Need(("--ops",), changed, "it says what tiles may be made of; add --tile")
        yield Need(("--profile",), changed, "it says what tiles cost; add --tile")
        portable = changed or self.strip
        yield Need(("--portable",), portable, "every plan without tiles is; add --tile or --strip")
        sums = bool(self.split)
        yield Need(("--allow-inexact",), sums, "it lets sums be split; add --split N-M:sum=K")
        yield Need(("--inputs",), not self.no_verify, "--no-verify compares nothing; leave it out")

    def options(self) -> PlanOptions:
        """What the command line asks for. Raises UsageError."""
        from tflm_planner.pipeline import api
        from tflm_planner.support.units import parse_size

        refuse_idle(self.needs())
        refuse_silence()
        return api.PlanOptions(
            search=self._search(),
            budget=None if self.budget is None else parse_size(self.budget),
            verify=None if self.no_verify else api.VerifyOptions(self.seed, self.inputs),
            force=self.force,
            ends=cast("Ends", self.ends),
            tiles=self._permission() if self.tile or self.respell or self.by_hand else None,
        )

    def _search(self) -> MemoryOptions:
        from tflm_planner.pipeline import api
        from tflm_planner.tflm.kernels import library_of

        target = self._target()
        gains = library_of(target).gains_by_dilation and not self.no_overlap
        why = "it is for CMSIS-NN, whose 1x1 convolutions cannot overlap otherwise"
        refuse_idle([Need(("--dilate",), gains, f"{why}, with overlaps allowed")])
        return api.MemoryOptions(
            order=_check_word("order", self.order),
            allocator=self.allocator,
            time_limit=self.time_limit,
            seed=self.seed,
            kernels=api.kernels_of(target),
            overlap=not self.no_overlap,
            dilate=self.dilate,
            strip=("unread" if self.portable else "unread by TFLM") if self.strip else "nothing",
        )

    def _target(self) -> Target:
        from tflm_planner.pipeline import api

        target = api.load_target(self.target, lean=self.lean)
        if self.tflm is not None:
            target = api.with_tflm(target, self.tflm)
        return add_profile(target, self.profile)

    def _permission(self) -> TilePermission:
        from tflm_planner.pipeline import api
        from tflm_planner.pipeline.by_hand import parse_regions

        return api.TilePermission(
            self.overhead,
            dialect=not self.portable,
            new_kinds=parse_operator_kinds(self.ops),
            by_hand=parse_regions(self.patch, self.split or (), self.loop or ()),
            inexact=self.allow_inexact,
            method=_check_word("search", self.search),
            objective=_check_word("objective", self.objective),
            workers=self.workers,
            tiles=not self.respell,
        )


def _check_word(option: str, value: str) -> Any:
    """The value of a choice, checked by the class that it is for."""
    if not value.isidentifier():
        raise UsageError(f"--{option} {value!r} is not understood; see --help")
    return value
