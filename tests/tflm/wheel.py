"""The tflite-micro wheel with arenas of any size: what TFLM prints, and the smallest that works.

Every trial runs in a fork of a child process, because TFLM may end the process it runs in.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import tempfile
from functools import cache

from tflm_planner.model.serde import read_model
from tflm_planner.tflm.arena.predict import Arena

PROBE = r"""
import hashlib, os, re, sys, tempfile
import numpy as np
from tflite_micro import runtime
def compute(it, inputs, outputs):
    # Small inputs, which are legal as indices and divisors too; a digest of all outputs.
    for i in range(inputs):
        about = it.get_input_details(i)
        values = 1 + np.arange(int(np.prod(about["shape"]))) % 2
        it.set_input(values.reshape(about["shape"]).astype(about["dtype"]), i)
    it.invoke()
    digest = hashlib.sha256()
    for i in range(outputs):
        digest.update(it.get_output(i).tobytes())
    return digest.hexdigest()
out = os.fdopen(os.dup(1), "w"); os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
sink = tempfile.TemporaryFile(); os.dup2(sink.fileno(), 2)
for line in sys.stdin:
    inputs, outputs, size, path = line.rstrip("\n").split(" ", 3)
    # A trial may end the process: TFLM does not check everything. So each runs in a fork.
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(20)
        sink.seek(0); sink.truncate()
        try:
            it = runtime.Interpreter.from_bytes(open(path, "rb").read(), arena_size=int(size))
            digest = compute(it, int(inputs), int(outputs))
            it.print_allocations()
            sink.seek(0)
            text = sink.read().decode("utf-8", "replace")
            found = dict(re.findall(r"Arena allocation (head|tail) (\d+) bytes", text))
            os.write(write, f"{found['head']} {found['tail']} {digest}".encode())
        except BaseException as error:
            os.write(write, b"")
        os._exit(0)
    os.close(write)
    answer = os.read(read, 200).decode(); os.close(read); os.waitpid(child, 0)
    print(answer or "-", file=out, flush=True)
"""


@cache
def probe() -> subprocess.Popen[str]:
    """The child process in which the wheel lives; it forks for every trial."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROBE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    atexit.register(process.kill)
    return process


class Wheel:
    """The wheel, one model, any arena sizes.

    An arena works if allocation and inference succeed and the outputs are those of a large one:
    TFLM does not notice everything that it overwrites.
    """

    def __init__(self, data: bytes) -> None:
        self._file = tempfile.NamedTemporaryFile(suffix=".tflite")  # noqa: SIM115 (closed in close)
        self._file.write(data)
        self._file.flush()
        main = read_model(data).main
        self._counts = f"{len(main.inputs)} {len(main.outputs)}"
        self._outputs: str | None = None

    def run(self, size: int) -> tuple[int, int] | None:
        """Head and tail with an arena of `size` bytes; None if it does not work. The first size
        that is tried must be ample."""
        process = probe()
        assert process.stdin and process.stdout
        process.stdin.write(f"{self._counts} {size} {self._file.name}\n")
        process.stdin.flush()
        answer = process.stdout.readline().split()
        if len(answer) != 3:
            return None
        self._outputs = self._outputs or answer[2]
        return (int(answer[0]), int(answer[1])) if answer[2] == self._outputs else None

    def smallest(self, guess: int, largest: int) -> int:
        """The smallest arena that works, as do those some 16 bytes larger, and below which none
        of the 16 sizes does.

        Still smaller ones may work: a few kernels overwrite some of their own structures, and
        whether those bytes matter need not depend on the size in one direction only.
        """
        if self._is_smallest(guess):
            return guess
        low, high = 0, largest
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.run(middle) else (middle, high)
        below = [size for size in range(max(high - 16, 1), high) if self.run(size)]
        found = below[0] if below else high
        return next((size for size in range(found, found + 128) if self._is_smallest(size)), found)

    def _is_smallest(self, size: int) -> bool:
        above = all(self.run(size + 16 * more) is not None for more in range(6))
        return above and all(self.run(size - lost) is None for lost in range(1, 17))

    def close(self) -> None:
        """Remove the model's file."""
        self._file.close()


def assert_needs(data: bytes, arena: Arena) -> None:
    """Head, tail and the smallest arena are those predicted, 0 bytes off; with the outputs of a
    large one."""
    host = Wheel(data)
    try:
        assert host.run((arena.arena + 65536) // 16 * 16) == (arena.head, arena.tail)
        assert [host.run(arena.arena + more) is not None for more in (0, 16, 32)] == [True] * 3
        assert [host.run(arena.arena - less) for less in (1, 4, 8, 12, 16)] == [None] * 5
    finally:
        host.close()
