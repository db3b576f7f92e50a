"""SHA-256 of every file that the tool writes for some models, to show that a change of the code
changes no output:

    python benchmarks/digests.py MODELS... [--random 20] > before.txt      # then change the code
    python benchmarks/digests.py MODELS... [--random 20] | diff before.txt -

One line for each model and way to plan it: the digest, or the exit code of a refusal. Nothing is
run on a runtime (`--no-verify`): only the bytes count. `--only` names the ways to look at.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import sys
import tempfile
from pathlib import Path

from tflm_planner.cli.app import main as command

PLAIN = ["--search", "none"]
ALL = ["--firmware", "more-ops"]
WAYS: dict[str, list[str]] = {
    "plan": PLAIN,
    "plan-x86": [*PLAIN, "--target", "x86-64/reference"],
    "plan-m55": [*PLAIN, "--target", "cortex-m55/cmsis-nn"],
    "strip": [*PLAIN, "--strip"],
    "spellings": ["--search", "spellings"],
    "portable": [*ALL, "--portable"],
    "tiles": [],
    "tiles-head": ["--objective", "head"],
    "loops": ALL,
    "lean": ["--firmware", "lean"],
    "motes": ["--search", "motes"],
}
STREAM = "stream"


def run(arguments: list[str]) -> int:
    """Run the command in this process; its exit code."""
    told = sys.argv
    sys.argv = ["tflm-plan", *arguments]
    silence = io.StringIO()
    try:
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            command()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    finally:
        sys.argv = told
    return 0


def digest(code: int, *files: Path) -> str:
    """The digest of the files that were written, or the exit code."""
    if not all(file.exists() for file in files):
        return f"exit {code}"
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def digests(source: Path, ways: list[str]) -> list[tuple[str, str]]:
    """(way, digest) of one model."""
    found: list[tuple[str, str]] = []
    for way in ways:
        with tempfile.TemporaryDirectory() as folder:
            first, second = Path(folder, "a.tflite"), Path(folder, "b.tflite")
            if way == STREAM:
                code = run(["stream-input", str(source), str(first), str(second), "--no-verify"])
                found.append((way, digest(code, first, second)))
            else:
                code = run([str(source), str(first), "--no-verify", "-q", *WAYS[way]])
                found.append((way, digest(code, first)))
    return found


def random_files(count: int, folder: Path) -> list[Path]:
    """Files of random models, the same for the same number."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import numpy as np

    from tests.models.generator import random_model

    files: list[Path] = []
    for seed in range(count):
        file = folder / f"random_{seed:03}.tflite"
        file.write_bytes(random_model(np.random.default_rng(seed)))
        files.append(file)
    return files


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--random", type=int, default=0, help="random models as well")
    parser.add_argument("--only", nargs="*", choices=[*WAYS, STREAM], default=[*WAYS, STREAM])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for source in [*given.models, *random_files(given.random, Path(folder))]:
            for way, text in digests(source, given.only):
                print(source.name, way, text, flush=True)


if __name__ == "__main__":
    main()
