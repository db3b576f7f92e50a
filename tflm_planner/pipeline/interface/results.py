"""What the functions of the Python interface return: the bytes of models, what is known of them,
and how to save them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tflm_planner.pipeline import api
from tflm_planner.pipeline.interface.takes_keywords import takes_keywords
from tflm_planner.pipeline.stream_input.render import render_header
from tflm_planner.report.document import Report
from tflm_planner.report.text.bounds import figure
from tflm_planner.report.text.safe import safe_text
from tflm_planner.support.errors import UsageError
from tflm_planner.support.files import check_writable, write_file, write_files
from tflm_planner.support.stopping import Reason
from tflm_planner.tflm.arena.uncertainty import BoundKind, Uncertainty, bound_of
from tflm_planner.tflm.targets import Target
from tflm_planner.verification import Verdict
from tflm_planner.verification.terms import TermsProof


@dataclass(frozen=True)
class Planned:
    """A planned model."""

    data: bytes
    """The file's bytes."""
    report: Report
    """The report on the plan. All sizes are bytes."""
    source: Path | None = None
    """The path from which the model was read; None if it was given as bytes."""

    def __repr__(self) -> str:
        arenas = self.report.before.arena, self.report.after.arena
        before, after = (figure(arena.arena, arena.bound) for arena in arenas)
        return f"<Planned {safe_text(Path(self.report.source).name)}: {before} -> {after}>"

    @takes_keywords
    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the model, either completely or not at all. Raises UsageError if `path` exists
        (unless `force`), is the source, or cannot be written.

        >>> from tempfile import TemporaryDirectory
        >>> from tflm_planner import arena, plan
        >>> planned = plan("tests/models/cnn_int8.tflite", tile=None, verify=False)
        >>> with TemporaryDirectory() as folder:
        ...     arena(planned.save(f"{folder}/planned.tflite")).bytes
        79660
        """
        inputs = () if self.source is None else (self.source,)
        check_writable(Path(path), force=force, inputs=inputs)
        write_file(Path(path), self.data)
        return Path(path)


@dataclass(frozen=True)
class StreamedInput:
    """A model split in two files, whose input comes row by row."""

    front: bytes
    """The bytes of the front's file."""
    back: bytes
    """The bytes of the back's file."""
    target: Target
    """The target for which it was split."""
    name: str
    """The name from which the C++ namespace is made."""
    _result: api.SplitResult
    source: Path | None = None
    """The path from which the model was read; None if it was given as bytes."""

    def __repr__(self) -> str:
        before, after = (figure(n, self.bound) for n in (self.bytes_before, self.bytes_after))
        return f"<StreamedInput {safe_text(self.name)}: {before} -> {after}>"

    @property
    def bytes_before(self) -> int:
        """Bytes of arena of the original model."""
        return self._result.before

    @property
    def bytes_after(self) -> int:
        """Bytes that front and back need together."""
        return self._result.pair.sram

    @property
    def bound(self) -> BoundKind:
        """How far `bytes_before` and `bytes_after` can be trusted: "exact", "enough", "at least" or
        "about"."""
        return bound_of(self._result.pair.uncertainties)

    @property
    def uncertainties(self) -> tuple[Uncertainty, ...]:
        """Why the bytes are not exact."""
        return self._result.pair.uncertainties

    @property
    def cannot_run(self) -> tuple[str, ...]:
        """Why the target's TFLM cannot run one of the files: operators and reasons. Empty if it can
        run them."""
        return self._result.pair.cannot_run

    @property
    def slowdown(self) -> float:
        """Instructions of front and back together, relative to the original."""
        return self._result.pair.slowdown

    @property
    def verdict(self) -> Verdict | None:
        """The runtimes' verdict on the pair; None if no proof was asked for."""
        return self._result.verdict

    @property
    def terms(self) -> TermsProof | None:
        """The proof for every input; None if no proof was asked for."""
        return self._result.terms

    @property
    def stopped(self) -> Reason | None:
        """Why the search was cut short, by its time limit or by Ctrl-C; None if it was not."""
        return self._result.stopped

    @takes_keywords
    def save(
        self,
        front: str | Path,
        back: str | Path,
        header: str | Path | None = None,
        *,
        force: bool = False,
    ) -> None:
        """Write both files, and the C++ header that runs them. Raises UsageError if one of them
        exists (unless `force`), is the source, or cannot be written."""
        files = [(Path(front), self.front), (Path(back), self.back)]
        if header is not None:
            code = render_header(self._result.pair, self.name, self.target)
            files.append((Path(header), code.encode()))
        if len({path.resolve() for path, _ in files}) < len(files):
            raise UsageError("front, back and header must be different files")
        inputs = () if self.source is None else (self.source,)
        for path, _ in files:
            check_writable(path, force=force, inputs=inputs)
        write_files(dict(files))
