"""Tiled models for tests: applied, planned, turned into the dialect, compared."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.model_replay import Place as ReplayPlace
from tests.model_replay import Ranges
from tests.models.generator import KINDS as ALL_KINDS
from tflm_planner.model.check import check
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.pipeline.planning.write import write_planned
from tflm_planner.tflm.liveness import timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import RegionResult, run
from tflm_planner.transforms.dialect import Dialect, scratch_faults
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.inputs import input_sets
from tflm_planner.verification.worker import load_litert, load_tflm

KINDS = {**ALL_KINDS, "conv_2d": 9, "depthwise_conv_2d": 6, "pad": 3, "max_pool_2d": 2}
"""More of what can be tiled."""
RARE_KINDS = {
    **KINDS, "strided_slice": 4, "transpose_conv": 4, "resize_bilinear": 4,
    "resize_nearest_neighbor": 4, "batch_matmul": 3, "sum": 3, "transpose": 3, "softmax": 2,
    "split": 4, "split_v": 3, "unpack": 3, "pack": 3, "mean": 2, "fully_connected": 3,
}  # fmt: skip
"""And what is rare in convolutional networks."""


SUM_KINDS = {
    "conv_2d": 6, "fully_connected": 6, "sum": 2, "mean": 2, "transpose_conv": 2,
    "depthwise_conv_2d": 3, "batch_matmul": 2, "relu": 1, "add": 1,
}  # fmt: skip
"""What sums up."""


Rewritten = RegionResult[TiledRegion | LoopedRegion]


def rewritten(
    data: bytes, *regions: TiledRegion | LoopedRegion, inexact: bool = False, clean: bool = False
) -> tuple[bytes, list[Rewritten]]:
    """The model with the regions in tiles or loops, and what became of each. clean: normalize
    first."""
    model = read_model(data)
    run(model, *([Normalize()] if clean else []))
    results = Regions(regions, inexact).rewrite(model)
    check(model)
    return write_model(model), results


def tiled(data: bytes, *schemes: TiledRegion, inexact: bool = False) -> tuple[bytes, list[str]]:
    """The model with the schemes applied, and the notes."""
    made, results = rewritten(data, *schemes, inexact=inexact)
    return made, [result.note for result in results]


def same_bits(
    original: bytes, result: bytes, *, inputs: int = 4, runtimes: tuple[str, ...] | None = None
) -> list[str]:
    """What differs between two models on the runtimes that can run the original."""
    more = {} if runtimes is None else {"runtimes": runtimes}
    verdict = verify(original, result, VerifyOptions(inputs=inputs, **more))
    return [f"{c.runtime}: {c.detail}" for c in verdict.checks if c.status == "different"]


def quick_differences(
    original: bytes, result: bytes, runtimes: tuple[str, ...] = ("LiteRT", "TFLM")
) -> list[str]:
    """As `same_bits`, in this process: for random models, which are known to run."""
    return [
        f"{name}: {label} input"
        for name, label, a, b in outputs_of_both(original, result, runtimes)
        if a.tobytes() != b.tobytes()
    ]


def outputs_of_both(
    original: bytes, result: bytes, runtimes: tuple[str, ...] = ("LiteRT", "TFLM")
) -> Iterator[tuple[str, str, Any, Any]]:
    """(runtime, which input, an output of the original, the same of the result)."""
    loaders = {"LiteRT": load_litert, "TFLM": load_tflm}
    graph = read_model(original).main
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "original.tflite", Path(folder) / "result.tflite"
        paths[0].write_bytes(original)
        paths[1].write_bytes(result)
        for name in runtimes:
            first, second = (loaders[name](str(p), 1 << 22, len(graph.outputs))[1] for p in paths)
            for label, values in input_sets(graph, 3, count=4):
                for a, b in zip(first(values), second(values), strict=True):
                    yield name, label, a, b


@dataclass
class Planned:
    """A portable model with its plan, the dialect made from it, which operators were dropped
    (indices in the portable model) and where the dialect's scratch lies."""

    portable: bytes
    dialect: bytes
    dropped: frozenset[int]
    scratch: Ranges


def dialect_of(data: bytes) -> Planned:
    """Plan with all views bound, for this machine's TFLM, and drop what copies onto itself."""
    on = api.kernels_of(api.load_target("x86-64/wheel"))
    options = MemoryOptions(
        order="file", time_limit=2.0, kernels=on, overlap=False, bind_views=True
    )
    memory_plan = plan_memory(read_model(data), options)
    portable = write_planned(memory_plan.placed, options).data
    for outputs in (True, False):  # where scratch would lie over a view, outputs keep their makers
        copy = memory_plan.placed.copy()
        model, offsets = copy.model, copy.offsets
        line = timeline_of(model, on.scratch_of)
        listed = list(model.main.ops)
        run(model, Dialect(offsets, outputs=outputs))
        faults = scratch_faults(line, model, offsets, on.scratch_of)
        if not faults:
            break
    else:  # no dialect
        copy = memory_plan.placed.copy()
        model, offsets, listed = copy.model, copy.offsets, list(copy.model.main.ops)
    left = set(model.main.ops)
    dropped = frozenset(i for i, op in enumerate(listed) if op not in left)
    made = timeline_of(model, on.scratch_of)
    places = placement_of(made, offsets).scratch_offsets
    at = {op: i for i, op in enumerate(listed)}
    scratch: dict[ReplayPlace, list[tuple[int, int]]] = {}
    for s, offset in zip(made.scratch, places, strict=True):
        scratch.setdefault((0, at[s.op]), []).append((offset, s.size))
    run(model, AttachPlan(offsets))
    dialect = write_model(model)
    assert carried_plan(read_model(dialect, dialect=True)) is not None
    return Planned(portable, dialect, dropped, scratch)


__all__ = [
    "KINDS",
    "RARE_KINDS",
    "SUM_KINDS",
    "Planned",
    "dialect_of",
    "outputs_of_both",
    "quick_differences",
    "rewritten",
    "same_bits",
    "tiled",
]
