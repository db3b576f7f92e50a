"""The same bytes cold on a busy machine as warm on an idle one, and how long either takes.

    python -m benchmarks.same_bytes [tests/models/cnn_int8.tflite] [--busy 2]

`cold, busy`: no kernel is compiled yet (a cache of numba's own that is empty), and so many other
processes take all the time that they can get. `warm, idle`: the same cache, and nobody else. Prints
seconds and the digest of the planned file for each, without proof; exits with 1 when they differ.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "tests" / "models" / "cnn_int8.tflite"
_COMMAND = "from tflm_planner.cli.app import main; main()"


@contextmanager
def busy(processes: int) -> Generator[None]:
    """So many processes that count as fast as they can."""
    started = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def planned(model: Path, cache: Path) -> tuple[float, str]:
    """Seconds of one run of the command, and the digest of what it wrote."""
    out = cache / "planned.tflite"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    words = ["plan", str(model), str(out), "--force", "--quiet", "--no-verify"]
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", _COMMAND, *words], env=environment, check=True)
    return time.perf_counter() - started, hashlib.sha256(out.read_bytes()).hexdigest()[:16]


def main() -> int:
    """Print both; 1 if the bytes differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", nargs="?", type=Path, default=MODEL)
    parser.add_argument("--busy", type=int, default=2, help="processes beside the cold run")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with busy(wanted.busy):
            cold = planned(wanted.model, Path(folder))
        warm = planned(wanted.model, Path(folder))
    for name, (seconds, digest) in (("cold, busy", cold), ("warm, idle", warm)):
        print(f"{wanted.model.name}  {name}  {seconds:6.1f} s  {digest}")
    return cold[1] != warm[1]


if __name__ == "__main__":
    sys.exit(main())
