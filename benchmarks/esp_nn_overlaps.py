"""What may overlap in ESP-NN's generic C: our contracts against the library's own kernels, run.

    PYTHONPATH=. python benchmarks/esp_nn_overlaps.py PATH_TO_ESP_NN [--shapes 300] [--seed 1]

PATH_TO_ESP_NN is a checkout of espressif/esp-nn. Its plain C (`*_ansi.c`, and `*_opt.c`, which runs
on chips without vector instructions) is compiled into a temporary folder by the host's compiler
(CC, or cc). Each window of random shapes is computed with its result at *every* distance below its
operand. Where the contract of generic C allows a distance and the bits are others than apart, it is
wrong, and the benchmark ends with 1. ADD and MUL run in place, on either operand. The last column
says how many bytes the contract gives away.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.tflm.kernel_loops import Shape
from tests.tflm.overlap_trials import model_of, op_of
from tflm_planner.tflm.kernels.contracts import exact_bound
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE

Bytes = npt.NDArray[np.int8]
_KINDS = {
    "conv": ("conv_s8_ansi", "conv_s8_opt"),
    "depthwise": ("depthwise_conv_s8_ansi", "depthwise_conv_s8_opt"),
    "average": ("avg_pool_s8_ansi",),
    "max": ("max_pool_s8_ansi",),
}
_LEFT_SHIFT, _HALF = 20, 1 << 30


class _Numbers(ctypes.Structure):
    """A structure of the library: int32 fields one after the other."""

    _fields_ = [("numbers", ctypes.c_int32 * 12)]


class _Quantization(ctypes.Structure):
    _fields_ = [("shift", ctypes.c_void_p), ("multiplier", ctypes.c_void_p)]


def _numbers(*values: int) -> Any:
    return ctypes.byref(_Numbers((ctypes.c_int32 * 12)(*values)))


@dataclass
class Kernel:
    """A window operator with constants, ready to run."""

    shape: Shape
    function: Any
    draw: np.random.Generator

    def __post_init__(self) -> None:
        s = self.shape
        depth = s.ci if s.kind == "conv" else 1
        self._filter = self.draw.integers(-127, 128, s.kh * s.kw * depth * s.co, np.int8)
        self._bias = self.draw.integers(-999, 999, s.co, np.int32)
        self._multiplier = np.full(s.co, _HALF, np.int32)
        self._shift = np.full(s.co, -5 if s.kind == "depthwise" else -7, np.int32)

    def run(self, operand: int, result: int) -> None:
        """Read at one address, write at another."""
        s = self.shape
        pad = s._axis(s.w, s.kw, s.sw, s.dw)[1], s._axis(s.h, s.kh, s.sh, s.dh)[1]
        data, out = ctypes.c_void_p(operand), ctypes.c_void_p(result)
        if s.kind in ("average", "max"):
            shorts = map(ctypes.c_uint16, (s.wo, s.ho, s.sw, s.sh, s.kw, s.kh, *pad))
            self.function(data, ctypes.c_uint16(s.w), ctypes.c_uint16(s.h), out, *shorts,
                          -128, 127, ctypes.c_uint16(s.ci))  # fmt: skip
            return
        more = (s.co // s.ci,) if s.kind == "depthwise" else ()
        quantization = _Quantization(self._shift.ctypes.data, self._multiplier.ctypes.data)
        self.function(
            _numbers(s.w, s.h, s.ci, 1), data,
            _numbers(s.kw, s.kh, s.ci, 1), ctypes.c_void_p(self._filter.ctypes.data),
            ctypes.c_void_p(self._bias.ctypes.data), _numbers(s.wo, s.ho, s.co, 1), out,
            _numbers(3, -2, *more, s.sw, s.sh, *pad, s.dw, s.dh, -128, 127),
            ctypes.byref(quantization),
        )  # fmt: skip


def main() -> int:
    """Compare, and say what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shapes", type=int, default=300, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        library = _compiled(arguments.folder, Path(temporary))
        print(f"{'kernel':28}{'shapes':>8}{'distances':>12}{'wrong':>8}  bytes given away")
        wrong = sum(
            _swept(library, kind, name, arguments.shapes, arguments.seed)
            for kind, names in _KINDS.items()
            for name in names
        )
        wrong += sum(_in_place(library, name, arguments.shapes) for name in ("add", "mul"))
    return 1 if wrong else 0


def _swept(library: ctypes.CDLL, kind: str, name: str, count: int, seed: int) -> int:
    """How many distances the contract allows and the kernel does not."""
    function = getattr(library, f"esp_nn_{name}")
    wrong = distances = 0
    spare: list[int] = []
    for i, shape in enumerate(_shapes(random.Random(f"{kind} {seed}"), kind, count)):
        allowed = exact_bound(op_of(model_of(shape)), REFERENCE)
        assert allowed is not None
        safe = _safe_distances(Kernel(shape, function, np.random.default_rng([seed, i])), seed)
        distances += len(safe)
        bad = [d for d, fine in enumerate(safe) if not fine]
        lost = [d for d in bad if d >= allowed.least and d % allowed.step == 0]
        if lost:
            wrong += len(lost)
            print(f"  {shape}: allowed from {allowed.least}, wrong at {lost[-1]}")
        spare.append(allowed.least - (bad[-1] + 1 if bad else 0))
    given = f"{min(spare)} to {max(spare)}, {sum(spare) / len(spare):.1f} on average"
    print(f"{name:28}{count:>8,}{distances:>12,}{wrong:>8}  {given}")
    return wrong


def _safe_distances(kernel: Kernel, seed: int) -> list[bool]:
    """For each distance of the result below its operand, in bytes from 0 on: whether it is as it is
    apart, for inputs over the whole range."""
    s = kernel.shape
    read, written = s.h * s.w * s.ci, s.ho * s.wo * s.co
    inputs = np.random.default_rng(seed).integers(-128, 128, (6, read), np.int8)
    memory = np.zeros(read + 2 * written + 64, np.int8)
    base = memory.ctypes.data
    wanted: list[Bytes] = []
    for data in inputs:
        memory[:read] = data
        kernel.run(base, base + read + 32)
        wanted.append(memory[read + 32 : read + 32 + written].copy())
    safe: list[bool] = []
    for distance in range(written + 1):
        fine = True
        for data, want in zip(inputs, wanted, strict=True):
            memory[distance : distance + read] = data
            kernel.run(base + distance, base)
            fine = fine and bool(np.array_equal(memory[:written], want))
        safe.append(fine)
    return safe


def _shapes(draw: random.Random, kind: str, count: int) -> Iterator[Shape]:
    while count:
        k, step = draw.choice((1, 2, 3, 5)), draw.choice((1, 1, 2))
        kh, kw = (k, k) if draw.random() < 0.7 else (k, draw.choice((1, 3)))
        ci = draw.choice((1, 2, 3, 4, 8, 16))
        co = draw.choice((1, 2, 3, 4, 8, 16)) if kind == "conv" else ci
        co = ci * draw.choice((1, 1, 2, 4)) if kind == "depthwise" else co
        size = draw.randint(1, 12), draw.randint(1, 12)
        shape = Shape(kind, *size, ci, co, kh, kw, step, step, same=draw.random() < 0.6)
        if min(shape.ho, shape.wo) < 1:
            continue
        count -= 1
        yield shape


def _in_place(library: ctypes.CDLL, name: str, count: int) -> int:
    """How many sizes give other bits where the result lies on an operand."""
    function, draw, wrong = (
        getattr(library, f"esp_nn_{name}_elementwise_s8_ansi"),
        random.Random(name),
        0,
    )
    for _ in range(count):
        size = draw.randint(1, 200)
        pair = np.random.default_rng(size).integers(-128, 128, (2, size), np.int8)
        apart = np.zeros(size, np.int8)
        _call(function, name, pair, apart)
        for onto in (0, 1):
            mine = pair.copy()
            _call(function, name, mine, mine[onto])
            wrong += not np.array_equal(mine[onto], apart)
    print(f"{name:28}{count:>8,}{2 * count:>12,}{wrong:>8}")
    return wrong


def _call(function: Callable[..., None], name: str, pair: Bytes, out: Bytes) -> None:
    first, second, result = (ctypes.c_void_p(a.ctypes.data) for a in (pair[0], pair[1], out))
    if name == "add":
        scales = (_HALF, _HALF, -1, -2, _LEFT_SHIFT)
        function(first, second, 3, -4, *scales, result, 1, _HALF, -18, -128, 127, out.size)
    else:
        function(first, second, 3, -4, result, 1, _HALF, -6, -128, 127, out.size)


def _compiled(folder: Path, temporary: Path) -> ctypes.CDLL:
    sources = sorted([*folder.glob("src/*/*_ansi.c"), *folder.glob("src/*/*_opt.c")])
    if not sources:
        raise SystemExit(f"{folder} holds no plain C of ESP-NN: is it a checkout of esp-nn?")
    library = temporary / "esp_nn.so"
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O2", "-w"]
    headers = [f"-I{folder / 'include'}", f"-I{folder / 'src' / 'common'}"]
    subprocess.run(
        [*command, "-DCONFIG_NN_OPTIMIZED", *headers, "-o", library, *sources], check=True
    )
    return ctypes.CDLL(str(library))


if __name__ == "__main__":
    sys.exit(main())
