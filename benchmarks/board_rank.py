"""Does the order of candidate plans by predicted latency agree with that by measured latency?

    python benchmarks/board_rank.py [MODEL ...] [--port PORT] [--candidates 16] [--rounds 5]

Candidates are tilings of a model: regions of one to nine operators, in two to twelve parts. They
run on a board (a virtual one without --port: stock TFLM on this machine), in rounds, so that a
busy machine disturbs all alike; the fastest run counts. Predicted are three ways: by built-in
instruction counts, by a profile of all operators, and by a profile in which half of the operator
shapes are missing (a model is fitted to the others). Printed: Spearman's rank correlation.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zlib
from contextlib import ExitStack
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tflm_planner.cost import HeldOut, latency_of, measured_of, profile_target
from tflm_planner.device.measuring.measure import target_of
from tflm_planner.device.measuring.timing import time_runs
from tflm_planner.device.profiling.database import ProfileDatabase
from tflm_planner.device.profiling.profile import Shapes, board_row, profile
from tflm_planner.device.protocol.station import Station
from tflm_planner.device.virtual.virtual_board import VirtualBoard
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.planning.tiled_file import tiled_model
from tflm_planner.support.progress import silent
from tflm_planner.tflm.targets import Target, load_target
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.tile.tile import band

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared" / "models"
MODELS = (
    HERE.parent / "tests/models/cnn_int8.tflite",
    SHARED / "vww_96_int8.tflite",
    SHARED / "pretrainedResnet_quant.tflite",
)
M4 = load_target("cortex-m4/cmsis-nn")
PARTS = (2, 3, 4, 6, 8, 12)


def candidates(data: bytes, count: int) -> list[bytes]:
    """The model itself and tilings of it: portable models, spread over the range of latencies
    that tilings of this model span (by counted instructions), so that few are ties."""
    pool = sorted((latency_of(read_model(d), M4).instructions, d) for d in drawn(data, 4 * count))
    low, high = pool[0][0], pool[-1][0]
    chosen: dict[bytes, None] = {}
    for step in range(count):
        wanted = low + (high - low) * step / (count - 1)
        rest = [entry for entry in pool if entry[1] not in chosen]
        if rest:
            chosen[min(rest, key=lambda entry: abs(entry[0] - wanted))[1]] = None
    return list(chosen)


def drawn(data: bytes, count: int) -> list[bytes]:
    """The model itself and tilings of it, drawn with a fixed seed."""
    rng = np.random.default_rng(1)
    plain = read_model(data)
    run(plain, Normalize())
    length = len(plain.main.ops)
    found: dict[bytes, None] = {write_model(plain): None}
    for _ in range(40 * count):
        if len(found) == count:
            break
        size = int(rng.integers(1, 10))
        first = int(rng.integers(0, max(1, length - size)))
        parts = int(rng.choice(PARTS))
        scheme = band(first, min(first + size, length) - 1, parts, border="pad")
        model, notes = tiled_model(data, (scheme,), crop=False)
        if not any(note.startswith("not tiled") for note in notes):
            found[write_model(model)] = None
    return list(found)


def spearman(a: list[float], b: list[float]) -> float:
    """Rank correlation; ties share their mean rank."""

    def ranks(values: list[float]) -> np.ndarray:
        array = np.array(values)
        return np.array([(array < v).sum() + ((array == v).sum() - 1) / 2 for v in array])

    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def measured_seconds(station: Station, files: list[bytes], rounds: int) -> list[float]:
    """The fastest run of every model."""
    best = [float("inf")] * len(files)
    for _ in range(rounds):
        for i, data in enumerate(files):
            board = station.board
            board.upload(data)
            board.arena(0)
            board.allocate()
            runs = time_runs(board, read_model(data), 0, 3)
            best[i] = min(best[i], *(r[0] / board.says.tick_hz for r in runs))
    return best


def predicted(files: list[bytes], target: Target) -> list[float]:
    """Cost of every model, in the target's unit."""
    return [float(latency_of(read_model(data), target).instructions) for data in files]


def fitted_to_half(whole: Target, plain: Target) -> tuple[Target, HeldOut | None]:
    """The profile without half of its shapes, chosen by a hash."""
    device = measured_of(whole)
    assert device is not None
    half = {c: n for c, n in device.exact.items() if zlib.crc32(repr(c).encode()) % 2}
    target = profile_target(plain, device.name, device.target, device.hertz, half)
    found = measured_of(target)
    assert found is not None
    return target, found.held_out


def study(station: Station, path: Path, count: int, rounds: int) -> None:
    """One line of the table."""
    files = candidates(path.read_bytes(), count)
    shapes = Shapes()
    for data in files:
        shapes.add_model(data)
    plain = target_of(station.board.says)
    row = board_row(station.board.says)
    with (
        tempfile.TemporaryDirectory() as folder,
        ProfileDatabase(Path(folder) / "profile.db", create=True) as db,
    ):
        profile(station, shapes, db, 10, False, silent)
        cycles = {r.case: r.minimum_ns * 1e-9 * row.clock_hz for r in db.latencies(row)}
    whole = profile_target(plain, row.board, row.target, row.clock_hz, cycles)
    half, held_out = fitted_to_half(whole, plain)
    seconds = measured_seconds(station, files, rounds)
    by = [spearman(predicted(files, t), seconds) for t in (plain, whole, half)]
    total = np.array(predicted(files, whole)) / row.clock_hz / np.array(seconds) - 1
    error = "" if held_out is None else f"{100 * held_out.median:8.1f} {100 * held_out.most:8.1f}"
    print(
        f"{path.name:32}{len(files):6}{len(cycles):8}{max(seconds) / min(seconds):9.2f}"
        f"{by[0]:10.3f}{by[1]:10.3f}{by[2]:10.3f}{100 * float(np.abs(total).max()):9.1f} {error}"
    )


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)  # noqa: E501  # fmt: skip
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--port")
    parser.add_argument("--candidates", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(
        f"{'model':32}{'plans':>6}{'shapes':>8}{'slowest':>9}{'counted':>10}{'profile':>10}"
        f"{'half':>10}{'worst %':>9} {'held out median, 9 of 10, %'}"
    )
    with ExitStack() as stack:
        port = options.port or stack.enter_context(VirtualBoard()).port
        station = stack.enter_context(Station(port, 115200))
        for path in options.models or [p for p in MODELS if p.exists()]:
            study(station, path, options.candidates, options.rounds)


if __name__ == "__main__":
    main()
