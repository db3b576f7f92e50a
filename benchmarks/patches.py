"""Patches: MCUNetV2's figure 8 for MobileNetV2, and MOTES's table 3, with our tiles.

    python benchmarks/patches.py MOBILENET_V2.tflite [--svg docs/patches.svg] [--verify]
    python benchmarks/patches.py --table3

Figure 8: memory against n (blocks computed in patches) and p (p x p patches), the input image
not counted, as there. `paper`: the largest operand and result of any operator, depthwise
convolutions in place, residuals that wait not counted, the stage's whole result beside every
patch: what gives their 1372 and 172 KiB. `planned`: what our planner needs for the same tiles on
the target, with residuals, scratch, and the copies that cut out and put together patches.
`bands`: the same patches, then the blocks behind them in bands of rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chart import Chart, Line, svg

from tflm_planner.cost import latency_of
from tflm_planner.memory.allocators.greedy import GreedyPlacer
from tflm_planner.memory.allocators.items import Items, bind, choose_all
from tflm_planner.memory.problem import Problem
from tflm_planner.model.check import check
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops.macs import total_macs
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.axis_graph import blocks
from tflm_planner.transforms.base import run
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import Patch, TiledRegion, band

KIB = 1024
PATCHES = (2, 3, 4, 5, 6)
BLOCKS = range(1, 11)


@dataclass(frozen=True)
class Found:
    """n, p: what was done. paper, planned: bytes without the input. macs: relative."""

    n: int
    p: int
    paper: int
    planned: int
    macs: float


def as_published(model: Model, stage: int) -> int:
    """MCUNetV2's accounting of a model of which `stage` bytes are put together from patches."""
    given = set(model.main.inputs)
    image = given | {
        op.outputs[0]
        for op in model.main.ops
        if op.kind in ("SLICE", "PAD") and op.inputs[0] in given
    }
    last = max((i for i, op in enumerate(model.main.ops) if op.kind == "CONCATENATION"), default=0)
    largest = 0
    for i, op in enumerate(model.main.ops):
        if op.kind in ("SLICE", "PAD", "CONCATENATION"):
            continue  # their kernels read where the patch lies, and write where it belongs
        read = sum(t.nbytes for t in op.operands() if not t.is_constant and t not in image)
        made = sum(t.nbytes for t in op.outputs if t not in image)
        both = max(read, made) if op.kind == "DEPTHWISE_CONV_2D" else read + made
        largest = max(largest, both + (stage if i < last else 0))
    return largest


def memory(model: Model, on: TargetKernels, options: MemoryOptions) -> int:
    """Planned bytes of a model without its inputs."""
    line = timeline_of(model, on.scratch_of)
    problem = planning_problem(line, options.input_overlaps_of)
    given = set(model.main.inputs)
    inputs = {i for i, t in enumerate(line.planned) if t in given}
    kept = [i for i in range(len(problem.buffers)) if i not in inputs]
    counted = _only(problem, kept)
    return min(_first_fit(bind(counted, ())), _first_fit(choose_all(counted)))


def _first_fit(items: Items) -> int:
    """The lowest height that first fits find."""
    plans = (items.plan(offsets) for _, offsets in GreedyPlacer(items).first_fits())
    return min(plan.height(items.problem) for plan in plans)


def _only(problem: Problem, kept: list[int]) -> Problem:
    """The problem of some of its buffers."""
    at = {old: new for new, old in enumerate(kept)}
    overlaps = [
        replace(o, first=at[o.first], second=at[o.second])
        for o in problem.overlaps
        if o.first in at and o.second in at
    ]
    return Problem.of(tuple(problem.buffers[i] for i in kept), tuple(overlaps))


def patched(data: bytes, n: int, p: int, on: TargetKernels, options: MemoryOptions) -> Found | None:
    """Patches over the first n blocks; None where they cannot be made."""
    model = read_model(data)
    before, stage = total_macs(model.ops()), 0
    if n and p > 1:
        region = Patch(p, n, blocks=True).region(model.main)
        stage = model.main.ops[region.ops[-1]].outputs[0].nbytes
        (result,) = Regions((region,)).rewrite(model)
        if result.refusal:
            return None
        check(model)
    macs = total_macs(model.ops()) / before
    return Found(n, p, as_published(model, stage), memory(model, on, options), macs)


def with_bands(data: bytes, n: int, p: int, parts: tuple[int, ...], options: MemoryOptions) -> None:
    """Patches over n blocks, then each next block in some bands of rows; proved."""
    model = read_model(data)
    before = total_macs(model.ops())
    at = {op: i for i, op in enumerate(model.main.ops)}
    found = blocks(model.main)[n:]
    spans = [(at[b[0]], at[b[-1]]) for b in found[: len(parts)]]
    regions = [Patch(p, n, blocks=True).region(model.main)]
    regions += [band(*span, k) for span, k in zip(spans, parts, strict=True)]
    run(model, Regions(tuple(regions)))
    needed, macs = memory(model, options.kernels, options), total_macs(model.ops()) / before
    verdict = api.check_equal(data, write_model(model), api.VerifyOptions(inputs=2))
    said = "; ".join(f"{c.runtime} {c.status}" for c in verdict.checks)
    print(
        f"\nn = {n}, p = {p}, then bands {parts}: {needed / KIB:.1f} KiB, "
        f"{100 * (macs - 1):+.1f} % MACs; {said}"
    )


def figure(data: bytes, options: MemoryOptions) -> list[Found]:
    """All n and p, as a Markdown table on stdout."""
    on = options.kernels
    print("| n | p | paper KiB | planned KiB | MACs |\n|---:|---:|---:|---:|---:|")
    found: list[Found] = []
    for n, p in [(0, 1), *((n, p) for p in PATCHES for n in BLOCKS)]:
        made = patched(data, n, p, on, options)
        if made is None:
            print(f"| {n} | {p} | not possible | | |", flush=True)
            continue
        found.append(made)
        print(
            f"| {n} | {p} | {made.paper / KIB:.1f} | {made.planned / KIB:.1f} | "
            f"{100 * (made.macs - 1):+.1f} % |",
            flush=True,
        )
    return found


def picture(found: list[Found]) -> str:
    """Memory against n, and what it costs against p."""
    by = {(f.n, f.p): f for f in found}
    stock = by[0, 1]

    def curve(p: int, what: str) -> list[tuple[float, float]]:
        ends = [stock, *(by[n, p] for n in BLOCKS if (n, p) in by)]
        return [(f.n, getattr(f, what) / KIB) for f in ends]

    paper, planned = (
        Chart(
            title,
            "blocks in patches (n)",
            "KiB, input not counted",
            [Line(f"p = {p}", curve(p, what)) for p in PATCHES],
            (("MCUNetV2: 172", 172.0),),
            logarithmic=True,
        )
        for what, title in (("paper", "As MCUNetV2 counts"), ("planned", "Planned, Cortex-M4"))
    )
    costs = [
        Line(f"n = {n}", [(p, 100 * (by[n, p].macs - 1)) for p in PATCHES if (n, p) in by])
        for n in (3, 4, 5, 6)
    ]
    macs = Chart(
        "Multiply-accumulates", "patches per side (p)", "% more", costs, (("MCUNetV2: 10 %", 10.0),)
    )
    return svg([paper, planned, macs])


def table3(options: MemoryOptions) -> None:
    """One 3x3 convolution, 32 x 32 x 8 to 8, in blocks of f x f: predicted overheads."""
    theirs = {16: 0.34, 8: 0.84, 4: 2.09, 2: 4.09, 1: 44.13}
    print("| block | MOTES measured | f x f tiles | of it copies | bands of f rows as views |")
    print("|---:|---:|---:|---:|---:|")
    data = convolution()
    target = options.kernels.target
    before = latency_of(read_model(data), target).instructions
    for side, measured in theirs.items():
        parts = 32 // side
        model = read_model(data)
        run(model, Regions((TiledRegion((1,), (Split(1, parts), Split(2, parts))),)))
        found = latency_of(model, target)
        moved = sum(
            row.each.instructions * row.runs
            for row in found.by_op
            if row.op.kind in ("SLICE", "CONCATENATION", "PAD")
        )
        share = 100 * moved / found.instructions
        more = 100 * (found.instructions / before - 1)
        views = 100 * (views_of(data, parts, options) / before - 1)
        print(f"| {side} | {measured:+.2f} % | {more:+.1f} % | {share:.1f} % | {views:+.2f} % |")


def views_of(data: bytes, parts: int, options: MemoryOptions) -> int:
    """Instructions of bands of rows in the TFLM dialect."""
    tiles = api.TilePermission(by_hand=(band(1, 1, parts, border="waste"),))
    made = api.plan(data, options=api.PlanOptions(options, tiles=tiles, verify=None))
    return latency_of(read_model(made.data, dialect=True), options.kernels.target).instructions


def convolution() -> bytes:
    """RELU, the convolution, RELU: so that its input and output are no graph inputs or outputs."""
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from tests.models.registry import relu, start

    net, graph, x = start((1, 32, 32, 8))
    import numpy as np

    shape = (1, 32, 32, 8)
    x = relu(graph, x, shape)
    rng = np.random.default_rng(0)
    weights = graph.constant("w", rng.integers(-9, 10, (8, 3, 3, 8)), "int8", scale=0.01)
    bias = graph.constant("b", rng.integers(-99, 100, 8), "int32", scale=0.001)
    y = graph.tensor("y", shape, scale=0.1)
    options: dict[str, Any] = {
        "strideH": 1,
        "strideW": 1,
        "dilationHFactor": 1,
        "dilationWFactor": 1,
    }
    graph.op("CONV_2D", [x, weights, bias], [y], "Conv2DOptions", padding=0, **options)
    graph.outputs(relu(graph, y, shape))
    return net.finish()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--target", default="cortex-m4/cmsis-nn")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--table3", action="store_true")
    arguments = parser.parse_args()
    target = "cortex-m7/cmsis-nn" if arguments.table3 else arguments.target
    on = api.kernels_of(api.load_target(target))
    options = MemoryOptions(kernels=on, order="file", time_limit=5.0)
    if arguments.table3:
        table3(options)
        return
    data = arguments.model.read_bytes()
    started = time.process_time()
    sizes = [len(b) for b in blocks(read_model(data).main)]
    print(f"blocks of {sizes} operators\n")
    found = figure(data, options)
    print(f"\n{time.process_time() - started:.0f} s")
    if arguments.svg is not None:
        arguments.svg.write_text(picture(found))
    if arguments.verify:
        with_bands(data, 4, 4, (), options)
        with_bands(data, 4, 4, (4, 4, 2, 2), options)


if __name__ == "__main__":
    main()
