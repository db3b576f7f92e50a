"""The tools of `tflm-plan mcp`: `arena`, `compare`, `inspect`, `plan`, as functions of documents.

    call (JSON) --parse--> document --> pipeline --> document --plain--> result (JSON)

Each tool reads and writes files of one folder only. The tools do what the verbs of the command line
do, but give documents instead of printed text. It must not know how calls arrive (`mcp_server`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflm_planner.cli import mcp_types as types
from tflm_planner.cli.shared import allowed_operators
from tflm_planner.pipeline import api, read_only
from tflm_planner.pipeline.comparison.compare_boards import QUICK
from tflm_planner.report.document import MapStep, Report
from tflm_planner.report.json.arena import ArenaOnTargetJson
from tflm_planner.report.json.comparison import BoardComparisonJson, comparison_to_json
from tflm_planner.report.json.document import arena_to_json, to_json
from tflm_planner.report.peak import peak_parts
from tflm_planner.support.documents import Document, parse, plain, schema_of, view
from tflm_planner.support.errors import PlannerError, UsageError
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.support.units import parse_size
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import LEAN_SUFFIX, Target, boards_like, load_target

JsonValues = dict[str, Any]
_KINDS = {1: "internal", 2: "usage", 4: "outputs differ", 5: "model"}


@dataclass(frozen=True)
class Workspace:
    """The folder whose files tools may read and write. root: its resolved path."""

    root: Path

    def model(self, name: str) -> Path:
        """The path of a model, which exists or is still to be written. Raises UsageError if it is
        outside the folder, or if its name does not end in .tflite."""
        return self._path(name, ".tflite")

    def target(self, name: str, *, lean: bool = False) -> Target:
        """The target of this name, or of a TOML file in the folder. Raises UsageError."""
        words = name.removesuffix(LEAN_SUFFIX)
        if words.endswith(".toml") or Path(words).is_file():
            return load_target(self._path(words, ".toml"), lean=lean or words != name)
        return load_target(name, lean=lean)

    def _path(self, name: str, suffix: str) -> Path:
        """The path of a file in the folder, with links followed, relative to the server's working
        folder where possible."""
        try:
            found = (self.root / name).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise UsageError(f"{name!r} is no path: {error}") from error
        if not found.is_relative_to(self.root):
            raise UsageError(
                f"{name} lies outside of {self.root}, the folder that is served; copy it there, or "
                "serve another one (tflm-plan mcp --folder)"
            )
        if found.suffix != suffix:
            raise UsageError(f"{name} does not end in {suffix}")
        return found.relative_to(Path.cwd()) if found.is_relative_to(Path.cwd()) else found


class CallCancelledError(Exception):
    """The client has cancelled the call and no longer waits for the answer."""


@dataclass(frozen=True)
class Caller:
    """The client that waits for an answer. listener: is told what is being done. stop: `is_over`
    becomes true when the call is cancelled."""

    listener: Progress
    stop: Stop

    def on_progress(self, words: str) -> None:
        """Report progress to the caller. Raises CallCancelledError."""
        self.check()
        self.listener(words)

    def check(self) -> None:
        """Raise CallCancelledError if the call was cancelled."""
        if self.stop.is_over:
            raise CallCancelledError("the call was cancelled; nothing was written")


@dataclass(frozen=True)
class ServedTool:
    """A tool. call: the type of its arguments. result: the type of its result. run: computes the
    result. writes: whether it writes a file."""

    name: str
    about: str
    call: type[Document]
    result: type[Document]
    run: Callable[[Any, Workspace, Caller], JsonValues]
    writes: bool = False

    @property
    def input_schema(self) -> JsonValues:
        """JSON schema of the arguments."""
        return schema_of(self.call, self.name, f"urn:tflm-planner:mcp:{self.name}:arguments")

    @property
    def output_schema(self) -> JsonValues:
        """JSON schema of the result."""
        return schema_of(self.result, self.name, f"urn:tflm-planner:mcp:{self.name}:result")

    def answer(
        self, arguments: Mapping[str, Any], workspace: Workspace, caller: Caller
    ) -> JsonValues:
        """Run the tool and return its result. Raises PlannerError and CallCancelledError."""
        call = parse(dict(arguments), self.call, f"arguments of {self.name}")
        return self.run(call, workspace, caller)


def failure(error: Exception) -> JsonValues:
    """The document that a tool returns in place of a result when it fails."""
    code = error.exit_code if isinstance(error, PlannerError) else 1
    words = str(error) if isinstance(error, PlannerError) else f"{type(error).__name__}: {error}"
    kind: Any = _KINDS.get(code, "internal")
    return plain(types.ToolErrorJson(code, kind, words))


def arena(call: types.ArenaCall, workspace: Workspace, _: Caller) -> JsonValues:
    """How large tensor_arena must be."""
    target, path = workspace.target(call.target), workspace.model(call.model)
    return arena_to_json(read_only.arena(path, target), target, read_only.split_arena(path, target))


def compare(call: types.CompareCall, workspace: Workspace, caller: Caller) -> JsonValues:
    """What a model needs on many boards."""
    path, targets = workspace.model(call.model), [*boards_like(call.boards, "")]
    if not call.planned:
        return comparison_to_json(read_only.compare_as_is(path, targets))
    planned = api.compare(path, targets, QUICK, on_progress=caller.on_progress, stop=caller.stop)
    return comparison_to_json(planned)


def inspect(call: types.InspectCall, workspace: Workspace, _: Caller) -> JsonValues:
    """Where the memory of a model goes."""
    target = workspace.target(call.target)
    seen = read_only.inspect(workspace.model(call.model), kernels_of(target))
    largest = sorted(seen.map.steps, key=lambda step: -step.live_bytes)[: call.operators]
    peak = seen.map.peak_step
    return plain(
        types.InspectionSummaryJson(
            target=target.id,
            operators=len(seen.map.steps),
            arena=view(seen.arena, types.ArenaJson),
            peak=None if peak is None else _operator(peak),
            peak_tensors=[
                types.PeakTensorJson(part.block.name, part.block.size, part.own)
                for part in peak_parts(seen.map)
            ],
            largest=[_operator(step) for step in largest],
            limits=view(seen.limits, types.LimitsJson),
            cannot_run=list(seen.arena.cannot_run),
            notes=list(seen.notes),
        )
    )


def _operator(step: MapStep) -> types.LiveOperatorJson:
    return view(step, types.LiveOperatorJson)


def plan(call: types.PlanCall, workspace: Workspace, caller: Caller) -> JsonValues:
    """Write a model that computes the same in less memory."""
    source, output = workspace.model(call.model), workspace.model(call.output)
    target = workspace.target(call.target, lean=call.firmware == "lean")
    options = api.PlanOptions(
        memory=api.MemoryOptions(kernels=kernels_of(target)),
        tiles=api.TilePermission(call.max_slowdown, operators=allowed_operators(call.firmware, "")),
        given_arena_limit=None if call.budget is None else parse_size(call.budget),
        force=call.force,
        command=_command(call, source, output),
    )

    def beside(_: Report) -> Mapping[Path, bytes]:
        caller.check()  # the last moment before the file is written
        return {}

    planned = api.plan(source, output, options, caller.on_progress, beside, caller.stop)
    return _summary(planned.report)


def _command(call: types.PlanCall, source: Path, output: Path) -> tuple[str, ...]:
    """The equivalent command line of this call, without the options that the commands of the ladder
    set themselves."""
    words = ["tflm-plan", str(source), str(output), "--target", call.target]
    words += [] if call.budget is None else ["--budget", call.budget]
    words += ["--max-slowdown", f"{call.max_slowdown:g}"]
    return (*words, "--force")


def _summary(report: Report) -> JsonValues:
    whole = to_json(report)
    return plain(
        parse(
            {
                "output": report.destination,
                "fits": report.fits,
                "proof": "not run" if report.terms is None else report.terms.status,
                **{key: whole[key] for key in _KEPT},
            },
            types.PlanSummaryJson,
            "report",
        )
    )


_KEPT = ("target", "arena", "fit", "verified", "tflm_only", "ladder", "paste", "notes")
"""The keys of a report that its summary keeps."""

TOOLS = (
    ServedTool(
        "arena",
        "How large tensor_arena must be for a .tflite model on TFLite-Micro, to the byte: head, "
        "tail, scratch, and whether the figure is exact. At once; nothing is written.",
        types.ArenaCall,
        ArenaOnTargetJson,
        arena,
    ),
    ServedTool(
        "compare",
        "What a .tflite model needs on every board that is known, and whether it fits. At once, or "
        "seconds where it is planned too; nothing is written.",
        types.CompareCall,
        BoardComparisonJson,
        compare,
    ),
    ServedTool(
        "inspect",
        "Where the memory of a .tflite model goes: the operators with most live bytes, the tensors "
        "at the peak, and limits that no plan goes below. At once; nothing is written.",
        types.InspectCall,
        types.InspectionSummaryJson,
        inspect,
    ),
    ServedTool(
        "plan",
        "Write a .tflite model that computes the same bits in less memory, proved and run beside "
        "the original before it is written. Seconds to minutes. A model that does not fit is "
        "written all the same: see `fits`, and `ladder` for what would help.",
        types.PlanCall,
        types.PlanSummaryJson,
        plan,
        writes=True,
    ),
)
