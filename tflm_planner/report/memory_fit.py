"""Whether models fit their memory, as data, as lines of text, and as JSON.

    FITS              kws.tflite: arena 22,824 of 24,576 B
    DOES NOT FIT      vww.tflite: arena 100,712 of 65,536 B, 35,176 B too large

There is one line for each model and target, for logs of continuous integration. Names come from
files that someone else made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from tflm_planner.report.json.common import SCHEMA_VERSION, BoundJson, Count, Version
from tflm_planner.report.text.bounds import figure
from tflm_planner.report.text.safe import safe_text
from tflm_planner.support.documents import Document, plain, says, view
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.arena.uncertainty import BoundKind
from tflm_planner.tflm.targets import Target

FitVerdict = Literal["fits", "not known to fit", "does not fit", "cannot run", "not read"]
OVER = 3
"""Exit code if a model does not fit, or is not known to fit."""


@dataclass(frozen=True, slots=True)
class FitCheck:
    """The verdict on whether a model fits. arena: bytes of its arena; None if the model cannot be
    read. arena_limit: bytes that the arena may take; None if the manifest cannot be read.
    file_bytes: bytes of the file. flash: bytes of the board's flash; None without a board. reason:
    why the verdict is not "fits", or what else matters; may be empty. target: id of the target or
    board."""

    source: str
    verdict: FitVerdict
    arena_limit: int | None
    arena: int | None = None
    bound: BoundKind = "exact"
    file_bytes: int = 0
    flash: int | None = None
    reason: str = ""
    target: str = ""

    @property
    def margin(self) -> int | None:
        """Bytes of the limit that are left; negative if the arena is too large; None if unknown."""
        if self.arena is None or self.arena_limit is None:
            return None
        return self.arena_limit - self.arena


def exit_code(checks: Sequence[FitCheck], *, allow_at_least: bool = False) -> int:
    """0 if all models fit; 5 if one cannot be read or run; else 3. allow_at_least: whether a model
    passes that is not known to fit, but does by its figure."""
    if any(check.verdict in ("cannot run", "not read") for check in checks):
        return ModelError.exit_code
    return 0 if all(_passes(check, allow_at_least) for check in checks) else OVER


def _passes(check: FitCheck, allow_at_least: bool) -> bool:
    if check.verdict == "not known to fit" and allow_at_least:
        return check.arena is not None and check.arena <= (check.arena_limit or 0)
    return check.verdict == "fits"


def fit_check_lines(checks: Sequence[FitCheck], *, with_target: bool = False) -> Iterator[str]:
    """Yield a line for each model. with_target: whether lines name the target."""
    for check in checks:
        name = safe_text(check.source) + f" on {safe_text(check.target)}" * with_target
        yield f"{check.verdict.upper():<17} {name}: {_arena_and_reason(check)}"


def _arena_and_reason(check: FitCheck) -> str:
    reason = safe_text(" ".join(check.reason.split()))
    if check.arena is None or check.arena_limit is None or check.verdict == "cannot run":
        return reason
    usage = f"arena {figure(check.arena, check.bound)} of {check.arena_limit:,} B"
    return f"{usage}{', ' * bool(reason)}{reason}"


class CheckedModel(Document):
    """A model against the bytes that it may take. All sizes are bytes."""

    source: Annotated[str, says("Path of the model, or of the manifest, as it was given.")]
    verdict: Annotated[FitVerdict, says("Whether it fits, and if nothing can be said, why.")]
    arena: Annotated[Count | None, says("Bytes of arena (null: the model cannot be read).")]
    bound: BoundJson
    arena_limit: Annotated[Count | None, says("Bytes that the arena may take (null: not known).")]
    margin: Annotated[
        int | None, says("Bytes left; negative: too large by so much (null: not known).")
    ]
    file_bytes: Annotated[Count, says("Bytes of the model's file.")]
    flash: Annotated[Count | None, says("Bytes of the board's flash (null: no board).")]
    reason: Annotated[
        str, says("Why the verdict is not that it fits, or what else matters; may be empty.")
    ]


class FitChecks(Document):
    """What `tflm-plan check` says of models. All sizes are bytes."""

    schema_version: Version
    target: Annotated[str, says("Id of the target.")]
    all_fit: Annotated[bool, says("Whether each of them is known to fit.")]
    models: Annotated[list[CheckedModel], says("One entry a model, in the order given.")]


def fit_checks_to_json(checks: Sequence[FitCheck], target: Target) -> dict[str, Any]:
    """The checks as plain JSON types."""
    all_fit = exit_code(checks) == 0
    return plain(FitChecks(SCHEMA_VERSION, target.id, all_fit, view(checks, list[CheckedModel])))
