"""Plans many models, or a model with many sets of options, each as a job of its own.

    PlanJob ... --engine--> BatchRow ... --each kept as it comes--> FOLDER/batch.sqlite
                   |                                                FOLDER/NAME.planned.tflite
                   `-- one that fails is a row that says why        FOLDER/NAME.html, NAME.json

A job's key covers everything that its result depends on (the model, the options, the files that the
options name, the version of this tool), so that a repeated run plans only what is missing or has
changed. Jobs that were refused are not tried again; jobs that failed are. It must not know how jobs
are run, nor how a summary looks.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tflm_planner.jobs.batch_types import BatchRow, Outcome, row_of, row_text
from tflm_planner.jobs.engine import JobEngine, JobFailure
from tflm_planner.jobs.store import ResultStore
from tflm_planner.pipeline import api
from tflm_planner.report.document import Report
from tflm_planner.report.memory_fit import OVER
from tflm_planner.report.render import RENDERERS
from tflm_planner.report.text.fit import verdict_line
from tflm_planner.support.errors import PlannerError, UsageError
from tflm_planner.support.files import make_folder, write_files
from tflm_planner.support.progress import Progress
from tflm_planner.support.version import __version__

STORE = "batch.sqlite"
PLANNED = ".planned.tflite"
"""The ending of the names of planned models."""
REPORTS = (".html", ".json")
SUMMARY = "summary"
"""The name of the summary's files, without endings."""


@dataclass(frozen=True)
class PlanJob:
    """A model to plan. name: the name of its files, without endings. source: the path of the model.
    label: the options as words. digest: a digest of these words and of the files that they name.
    version: the version of the tool that must compute the result."""

    name: str
    source: str
    data: bytes
    label: str
    options: api.PlanOptions
    digest: str
    version: str = __version__

    @property
    def file(self) -> str:
        """Name of the planned model in the folder."""
        return f"{self.name}{PLANNED}"

    @property
    def key(self) -> str:
        """A key made from everything that the result depends on."""
        model = hashlib.sha256(self.data).hexdigest()
        return " ".join((self.version, model, self.digest, self.name))


@dataclass(frozen=True)
class FinishedJob:
    """The result of a job. files: what is to be written, by file name in the folder."""

    row: BatchRow
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Batch:
    """The outcome of a batch. rows: the rows of the finished jobs, in the order of the jobs.
    unfinished: the names of the other jobs. resumed: how many rows come from an earlier run."""

    rows: tuple[BatchRow, ...]
    unfinished: tuple[str, ...] = ()
    resumed: int = 0

    @property
    def exit_code(self) -> int:
        """130 if interrupted, 0 if all models fit, else the gravest exit code of any model. From
        gravest to least grave: 1, 4, 5, 2, 3."""
        if self.unfinished:
            return 130
        codes = {row.exit_code for row in self.rows}
        return next((code for code in (1, 4, 5, 2, OVER) if code in codes), 0)


def options_digest(words: Sequence[str]) -> str:
    """A digest of the words of options, and of the files that they name."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(word.encode("utf-8", "surrogateescape") + b"\0")
        for name in (word, word.partition("=")[2]):  # --target own.toml, --target=own.toml
            with suppress(OSError):  # a word longer than any name of a file
                if name and Path(name).is_file():
                    digest.update(Path(name).read_bytes())
    return digest.hexdigest()


def model_paths(given: Sequence[Path]) -> list[Path]:
    """The paths of the models: a file stands for itself, a folder for its .tflite files, sorted by
    name. Raises UsageError if a folder has none, or if nothing was given."""
    paths: list[Path] = []
    for path in given:
        inside = sorted(path.glob("*.tflite")) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"{path} has no .tflite file in it")
        paths += inside
    if not paths:
        raise UsageError("nothing to plan; name models, or folders with models")
    return paths


def names_of(paths: Sequence[Path]) -> list[str]:
    """A file name for each model: its stem or, if several models share a stem, the stem preceded by
    as few parent folders as make it unique. Raises UsageError if a model is given twice, or if two
    paths differ only in their ending."""
    parts = [(*path.resolve().parent.parts[1:], path.stem) for path in paths]
    for own, path in zip(parts, paths, strict=True):
        if parts.count(own) > 1:
            raise UsageError(f"{path} is named twice, or one beside it differs in its ending alone")
    return ["-".join(own[-_depth(own, parts) :]) for own in parts]


def check_names(jobs: Sequence[PlanJob]) -> None:
    """Raise UsageError if two jobs, or a job and the summary, would write the same files."""
    sources: dict[str, str] = {}
    for job in jobs:
        if job.name == SUMMARY:
            raise UsageError(f"the files of {job.source} would be those of the summary; rename it")
        if job.name in sources:
            raise UsageError(
                f"{sources[job.name]} and {job.source} would both be written as {job.file}; "
                "rename one, or plan them into two folders"
            )
        sources[job.name] = job.source


def _depth(own: tuple[str, ...], parts: Sequence[tuple[str, ...]]) -> int:
    """The smallest number of last parts of a path in which no other path ends."""
    return next(
        depth
        for depth in range(1, len(own) + 1)
        if sum(other[-depth:] == own[-depth:] for other in parts) == 1
    )


def run_batch(
    jobs: Sequence[PlanJob],
    folder: Path,
    engine: JobEngine,
    on_progress: Progress,
    *,
    fresh: bool = False,
) -> Batch:
    """Plan each job that an earlier run in this folder did not finish. Ctrl-C ends the run and
    keeps what was finished by then. fresh: discard the results of an earlier run. Raises UsageError
    if the folder cannot be used."""
    _check_folder(folder, fresh=fresh)
    with ResultStore(folder / STORE) as store:
        if fresh:
            store.clear()
        rows = {k: row for k, job in enumerate(jobs) if (row := _kept(store, job, folder))}
        resumed = len(rows)
        missing = [k for k in range(len(jobs)) if k not in rows]
        todo = f"{resumed} of {len(jobs)} done already" if resumed else f"{len(jobs)} to be planned"
        on_progress(todo)
        try:
            with closing(engine.results(plan_job, [jobs[k] for k in missing])) as outcomes:
                for place, outcome in outcomes:
                    job = jobs[missing[place]]
                    rows[missing[place]] = row = _keep(store, job, outcome, folder)
                    on_progress(f"{len(rows)} of {len(jobs)}: {job.name}: {row.words}")
        except KeyboardInterrupt:
            on_progress("stopping: what is done is kept, and the same command goes on")
    unfinished = tuple(job.name for k, job in enumerate(jobs) if k not in rows)
    return Batch(tuple(rows[k] for k in sorted(rows)), unfinished, resumed)


def plan_job(job: PlanJob) -> FinishedJob:
    """Do a job in the current process."""
    if job.version != __version__:
        raise RuntimeError(f"this worker has tflm-plan {__version__}, the job is of {job.version}")
    started = time.monotonic()
    reports: dict[str, bytes] = {}

    def render(report: Report) -> Mapping[Path, bytes]:
        shown = replace(report, destination=job.file)
        for suffix in REPORTS:
            reports[f"{job.name}{suffix}"] = RENDERERS[suffix](shown).encode("utf-8", "replace")
        return {}

    try:
        model = api.NamedModel(job.source, job.data)
        result = api.plan(model, None, job.options, beside=render)
    except PlannerError as error:
        row = _row_without_plan(job, "refused", str(error), error.exit_code)
        return FinishedJob(_with_seconds(row, started), {})
    row = _row(job, result.report, len(result.data), list(reports))
    return FinishedJob(_with_seconds(row, started), {job.file: result.data, **reports})


def _check_folder(folder: Path, *, fresh: bool) -> None:
    """Raise UsageError unless the folder is empty or holds an earlier run."""
    make_folder(folder)
    if not (folder / STORE).exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} holds files of something else; name an empty or a new folder")
    if fresh and not (folder / STORE).exists():
        raise UsageError(f"--fresh does nothing here: no earlier run was in {folder}")


def _kept(store: ResultStore, job: PlanJob, folder: Path) -> BatchRow | None:
    """The row of a job from an earlier run. None if there is none, if the job failed, if one of its
    files is missing, or if the planned model has changed."""
    text = store.get(job.key)
    row = None if text is None else row_of(text)
    if row is None or row.outcome == "failed":
        return None
    files = [folder / name for name in (row.file, *row.reports) if name]
    if not all(path.is_file() for path in files):
        return None
    if row.file and hashlib.sha256(files[0].read_bytes()).hexdigest() != row.sha256_after:
        return None
    return row


def _keep(
    store: ResultStore, job: PlanJob, outcome: FinishedJob | JobFailure, folder: Path
) -> BatchRow:
    """Write the files of a job, then put its row into the database."""
    if isinstance(outcome, JobFailure):
        outcome = FinishedJob(_row_without_plan(job, "failed", outcome.reason, 1), {})
    write_files({folder / name: data for name, data in outcome.files.items()})
    store.put(job.key, row_text(outcome.row))
    return outcome.row


def _row_without_plan(job: PlanJob, outcome: Outcome, words: str, exit_code: int) -> BatchRow:
    digest = hashlib.sha256(job.data).hexdigest()
    words = " ".join(words.split())
    return BatchRow(
        job.name, job.source, job.label, outcome, words, exit_code, sha256_before=digest
    )


def _row(job: PlanJob, report: Report, file_bytes: int, reports: list[str]) -> BatchRow:
    after = report.after.arena
    outcome = _outcome(report)
    slowdown = next((rung.slowdown for rung in report.ladder if rung.taken), None)
    return BatchRow(
        name=job.name,
        source=job.source,
        options=job.label,
        outcome=outcome,
        words=verdict_line(report),
        exit_code=0 if report.may_fit else OVER,
        target=report.target if report.board is None else report.board.id,
        arena_before=report.before.arena.arena,
        arena_after=after.arena,
        bound=report.bound,
        arena_limit=report.arena_limit,
        slowdown=slowdown,
        file_bytes=file_bytes,
        verified=report.verified,
        sha256_before=report.sha256_before,
        sha256_after=report.sha256_after,
        file=job.file,
        reports=reports,
    )


def _outcome(report: Report) -> Outcome:
    if report.cannot_run:
        return "cannot run"
    if not report.may_fit:
        return "not known to fit" if report.is_in_doubt else "does not fit"
    if report.arena_limit is None:
        return "planned"
    return "fits" if report.fits else "not known to fit"


def _with_seconds(row: BatchRow, started: float) -> BatchRow:
    row.seconds = round(time.monotonic() - started, 3)
    return row
