"""How close the overlap contracts come to what kernels really need.

    PYTHONPATH=. python benchmarks/overlap.py [--wheel]

For every window of the measured set and each kernel library: the smallest distance in bytes
between output and input that the contract allows (`bound`, before it is rounded up to 16; `xN`:
multiples of N only; `-`: disjoint), the smallest that the replay of the kernel's loops finds
safe, and the one measured on an emulated Cortex-M. `--wheel` adds what the reference kernels of
the installed TFLM wheel do. The last table says what whole layers gain.
"""

from __future__ import annotations

import argparse
import time

from tests.tflm import measured_overlaps
from tests.tflm.kernel_loops import Shape
from tests.tflm.overlap_trials import Runner, model_of, op_of, random_inputs
from tflm_planner.tflm.kernels import KernelBuild, known_builds
from tflm_planner.tflm.kernels.contracts import (
    exact_bound,
    input_overlap_contract,
    replay_safe,
    replays,
)
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE

LAYERS = {
    "ResNet8 conv 3x3, 32x32x16": Shape("conv", 32, 32, 16, 16, 3, 3),
    "ResNet8 conv 3x3 s2, 32x32x16->32": Shape("conv", 32, 32, 16, 32, 3, 3, 2, 2),
    "VWW depthwise 3x3, 48x48x8": Shape("depthwise", 48, 48, 8, 8, 3, 3),
    "VWW depthwise 3x3 s2, 48x48x16": Shape("depthwise", 48, 48, 16, 16, 3, 3, 2, 2),
    "VWW pointwise, 24x24x32": Shape("conv", 24, 24, 32, 32),
    "VWW depthwise 3x3, 6x6x128": Shape("depthwise", 6, 6, 128, 128, 3, 3),
    "MobileNet depthwise 3x3, 112x112x32": Shape("depthwise", 112, 112, 32, 32, 3, 3),
    "MobileNet pointwise, 56x56x64": Shape("conv", 56, 56, 64, 64),
    "first conv 3x3 s2, 96x96x3->8": Shape("conv", 96, 96, 3, 8, 3, 3, 2, 2),
    "max pool 2x2, 32x32x32": Shape("max", 32, 32, 32, 32, 2, 2, 2, 2),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wheel", action="store_true", help="sweep the wheel's kernels too")
    wheel = parser.parse_args().wheel
    _measured()
    if wheel:
        _swept()
    _gains()


def _measured() -> None:
    print(f"{'operator':24}{'library':16}{'bound':>10}{'replay':>8}{'measured':>10}")
    close: list[int] = []
    exact = total = 0
    for record in measured_overlaps.records():
        shape = measured_overlaps.SHAPES.get(record["op"])
        if shape is None:
            continue
        op, library = op_of(model_of(shape)), measured_overlaps.TARGETS[record["target"]]
        smallest = _replayed(shape, library)
        measured = record["min_safe_D"]
        total += 1
        exact += smallest == measured
        allowed = exact_bound(op, library)
        if allowed is not None and allowed.step == 1:
            close.append(allowed.least - measured)
        cells = f"{_bound(shape, library):>10}{smallest if smallest is not None else '-':>8}"
        print(f"{record['op']:24}{library.name:16}{cells}{measured:>10}")
    if total:
        print(f"replay equals the measured smallest distance in {exact} of {total} records")
        print(f"bound less measured: {min(close)} to {max(close)} bytes\n")


def _bound(shape: Shape, library: KernelBuild) -> str:
    allowed = exact_bound(op_of(model_of(shape)), library)
    if allowed is None:
        return "-"
    return f"{allowed.least}" + (f" x{allowed.step}" if allowed.step > 1 else "")


def _replayed(shape: Shape, library: KernelBuild) -> int | None:
    op = op_of(model_of(shape))
    return max((r.smallest() for r in replays(op, op.operands()[0], library)), default=None)


def _swept() -> None:
    print(f"{'reference kernels of the wheel':56}{'bound':>8}{'replay':>8}{'wheel':>8}")
    with Runner() as runner:
        for name, shape in measured_overlaps.SHAPES.items():
            size = (shape.batch, shape.h, shape.w, shape.ci)
            least = _replayed(shape, REFERENCE) or 0
            distances = list(range(max(0, least - 40), min(shape.bytes_out, least + 40) + 1))
            safe = runner.safe_distances(
                model_of(shape), model_of(shape, planned=True),
                random_inputs(size, 1, 8), distances,
            )  # fmt: skip
            bad = [d for d, fine in zip(distances, safe, strict=True) if not fine]
            found = bad[-1] + 1 if bad else distances[0]
            print(f"{name:56}{_bound(shape, REFERENCE):>8}{least:>8}{found:>8}")
    print()


def _gains() -> None:
    print(f"{'bytes of input and output together':40}{'apart':>10}", end="")
    print("".join(f"{library.name:>16}" for library in (*known_builds(),)), f"{'any':>14}")
    for name, shape in LAYERS.items():
        op = op_of(model_of(shape))
        print(f"{name:40}{shape.bytes_in + shape.bytes_out:>10}", end="")
        for libraries in [(library,) for library in known_builds()] + [known_builds()]:
            input_overlap = next(input_overlap_contract(op, *libraries), None)
            together = "-"
            if input_overlap is not None:
                assert all(
                    replay_safe(op, op.operands()[0], library, input_overlap.low)
                    for library in libraries
                )
                together = str(max(shape.bytes_in + input_overlap.low, shape.bytes_out))
            print(f"{together:>16}", end="")
        print()
    before = time.perf_counter()
    op = op_of(model_of(LAYERS["MobileNet depthwise 3x3, 112x112x32"]))
    for library in known_builds():
        replay_safe(op, op.operands()[0], library, 3648)
    seconds = (time.perf_counter() - before) / len(known_builds())
    print(f"replay of 112x112x32: {seconds * 1000:.0f} ms")


if __name__ == "__main__":
    main()
