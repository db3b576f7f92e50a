"""Reads and writes files; users get a one-line message on failure, and never a partial file."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from tflm_planner.support.errors import ModelError, UsageError

_TEMPORARY = ".tflm-plan."
"""Prefix of the names of temporary files. The file's own name is not part of them, because it may
already be as long as a folder permits."""
LARGEST_FILE = 1 << 30
"""Bytes. No microcontroller model is nearly as large; larger files are refused unread."""


def read_file(path: Path) -> bytes:
    """The bytes of `path`. UsageError when it cannot be read, ModelError when it is too large."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise UsageError(f"{path} is a directory; give the .tflite file in it")
        if not stat.S_ISREG(status.st_mode):  # a device or pipe may never end
            raise UsageError(f"{path} is not a regular file; save the model to one first")
        if status.st_size > LARGEST_FILE:
            raise ModelError(
                f"{path} has {status.st_size:,} bytes; that is no model for a microcontroller"
            )
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {_reason(error)}") from error


def holds(path: Path, data: bytes) -> bool:
    """Whether there is a regular file at `path` that holds exactly these bytes."""
    try:
        return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def check_writable(
    path: Path,
    *,
    force: bool,
    inputs: tuple[Path, ...] = (),
    why: str = "choose another name",
) -> None:
    """Raise UsageError unless a file may be written at `path`: its folder exists and is writable,
    it is none of `inputs`, and it does not exist yet or `force` is given. why: end of the message
    about a file that exists: what to do, or what the file is."""
    try:
        _check_destination(path, force=force, inputs=inputs, why=why)
    except OSError as error:  # a name too long, a folder that may not be searched
        raise UsageError(f"cannot write {path}: {_reason(error)}") from error


def _check_destination(path: Path, *, force: bool, inputs: tuple[Path, ...], why: str) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a directory; give the name of the file to write")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    for source in inputs:
        if _same_file(path, source):
            raise UsageError(
                f"{path} is named twice, or is the input; write to another name, so that "
                "the original stays for comparison"
            )
    exists = path.exists()
    if exists and not path.is_file():  # replacing it by a file would destroy a device
        raise UsageError(f"{path} is not a regular file; choose another name")
    if exists and not force:
        raise UsageError(f"{path} exists; {why}, or add --force to replace it")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: no permission to write in {path.parent}")


def _same_file(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def make_folder(path: Path) -> None:
    """Create a folder at `path` unless it exists. Raises UsageError if that is impossible."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {path}: {_reason(error)}") from error


def write_file(path: Path, data: bytes) -> None:
    """Write `data` to a temporary file beside `path`, then rename it: all or nothing."""
    write_files({path: data})


def write_files(files: Mapping[Path, bytes]) -> None:
    """Write the files of one run: all of them, or none; in that case earlier files stay.

    Each is written to a temporary file beside its path; all are renamed after all are complete.
    """
    with ExitStack() as stack:
        replacements = [
            _Replacement(path, _write_temporary(path, data, stack), _keep(path, stack))
            for path, data in files.items()
        ]
        try:
            for replacement in replacements:
                replacement.make()
        except BaseException:
            for replacement in replacements:
                replacement.undo()
            raise


@dataclass(frozen=True)
class _Replacement:
    """A complete temporary file and its final path. before: a second name of the file that is now
    at the final path, if there is one."""

    path: Path
    temporary: Path
    before: Path | None

    def make(self) -> None:
        """Rename the file to its path."""
        try:
            self.temporary.replace(self.path)
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {_reason(error)}") from error

    def undo(self) -> None:
        """Put the earlier file back, if it was replaced."""
        with suppress(OSError):
            if self.before is not None and not self.temporary.exists():
                if os.path.lexists(self.before):
                    self.before.replace(self.path)
                else:
                    self.path.unlink()


def _write_temporary(path: Path, data: bytes, stack: ExitStack) -> Path:
    """A temporary file with the data beside `path`; `stack` removes it unless it was renamed."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_TEMPORARY, delete=False) as file:
            temporary = Path(file.name)
            stack.callback(temporary.unlink, missing_ok=True)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_file_mode())
    except OSError as error:
        raise UsageError(f"cannot write {path}: {_reason(error)}") from error
    return temporary


def _keep(path: Path, stack: ExitStack) -> Path | None:
    """A second name for the file at `path`, if there is one, so that it survives when `path` is
    replaced. None if the file system has no hard links; the file then cannot be restored."""
    second_name = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
    stack.callback(second_name.unlink, missing_ok=True)
    if os.path.lexists(path):
        try:
            os.link(path, second_name)
        except OSError:
            return None
    return second_name


def _file_mode() -> int:
    """The permissions of a newly created file (those of temporary files are private)."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
