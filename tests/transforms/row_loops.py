"""Streamed models for tests: random chains and blocks, random regions, planned and compared."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.models.build import Net
from tests.models.maker import Value
from tests.models.operators import Operators
from tests.placed_replay import replay_planned
from tests.tflm.wheel import Wheel
from tests.transforms.tiled import quick_differences
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.model_planner import ModelPlanner
from tflm_planner.support.stopping import Stop
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import (
    LOOP_BORDERS,
    LoopedRegion,
    LoopGeometry,
    NotStreamableError,
)
from tflm_planner.transforms.row_loop.geometry import loop_geometry

KINDS = {
    "conv_2d": 12, "depthwise_conv_2d": 8, "max_pool_2d": 2, "average_pool_2d": 2, "pad": 2,
    "add": 6, "sub": 1, "mul": 2, "relu": 1, "logistic": 1, "softmax": 1, "leaky_relu": 1,
    "concatenation": 3, "quantize": 1,
}  # fmt: skip
"""What can be streamed, with weights."""


class Blocks(Operators):
    """Operators that mostly follow each other."""

    def pick(self, accept: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """The newest value that is acceptable, mostly."""
        choices = [v for v in self.values if accept(v)]
        if choices and self.chance(0.7):
            return choices[-1]
        return super().pick(accept)

    def cut(self) -> bool:
        """SLICE, STRIDED_SLICE or SPLIT of columns and channels, of all rows."""
        x = self.pick()
        assert x is not None
        if self.chance(0.3):
            return self.parts(x)
        begin = [0, 0, *(self.integer(0, n // 2) for n in x.shape[2:])]
        begin = [min(b, n - 1) for b, n in zip(begin, x.shape, strict=True)]
        size = [self.integer(1, n - b) for n, b in zip(x.shape, begin, strict=True)]
        size[:2] = x.shape[:2]
        if tuple(size) == x.shape:  # clean-up would drop it
            return False
        if self.chance(0.5):
            out = self.value(tuple(size), x.mean, x.std, like=x)
            said = [-1 if n == b + s and self.chance(0.5) else s
                    for n, b, s in zip(x.shape, begin, size, strict=True)]  # fmt: skip
            return self.emit(
                "SLICE", [x, self.constant(begin), self.constant(said)], [out], "SliceOptions"
            )
        strides = [1, 1, self.integer(1, 2), 1]
        end = [b + s for b, s in zip(begin, size, strict=True)]
        size = [-(-s // step) for s, step in zip(size, strides, strict=True)]
        out = self.value(tuple(size), x.mean, x.std, like=x)
        full = sum(1 << a for a, n in enumerate(x.shape) if (begin[a], end[a]) == (0, n))
        mask = full if self.chance(0.5) else 0
        inputs = [x, *map(self.constant, (begin, end, strides))]
        return self.emit(
            "STRIDED_SLICE", inputs, [out], "StridedSliceOptions", beginMask=mask, endMask=mask
        )

    def parts(self, x: Value) -> bool:
        """SPLIT or SPLIT_V of columns or channels."""
        axis = self.integer(2, 3)
        if self.chance(0.5) and x.shape[axis] % 2 == 0:
            outs = self._parts(x, axis, [x.shape[axis] // 2] * 2)
            return self.emit("SPLIT", [self.constant(axis), x], outs, "SplitOptions", numSplits=2)
        if x.shape[axis] < 2:
            return False
        first = self.integer(1, x.shape[axis] - 1)
        sizes = [first, x.shape[axis] - first]
        inputs = [x, self.constant(sizes), self.constant(axis)]
        outs = self._parts(x, axis, sizes)
        return self.emit("SPLIT_V", inputs, outs, "SplitVOptions", numSplits=2)


def random_blocks(seed: int, steps: int, *, cuts: int = 0) -> bytes:
    """A random graph of image operators on one image: chains, residuals, joined branches. cuts: the
    weight of operators that cut columns and channels."""
    rng = np.random.default_rng(seed)
    maker = Blocks(rng, str(rng.choice(["int8", "int16", "float32"], p=[0.7, 0.15, 0.15])))
    missing = {"int16": {"leaky_relu", "quantize"}, "float32": {"quantize"}}
    weighted = {**KINDS, "cut": cuts} if cuts else KINDS
    kinds = {k: w for k, w in weighted.items() if k not in missing.get(maker.dtype, set[str]())}
    shape = (1, maker.integer(5, 22), maker.integer(2, 10), maker.integer(1, 6))
    x = maker.value(shape, 0.0, 1.0)
    maker.graph.table.inputs.append(x.index)
    maker.values.append(x)
    weights = np.array(list(kinds.values()), float)
    for kind in rng.choice(list(kinds), steps, p=weights / weights.sum()):
        getattr(maker, kind)()
    if not maker.graph.table.operators:
        maker.relu()
    unread = [v.index for v in maker.values if v.index not in (*maker.used, x.index)]
    maker.graph.outputs(*unread)
    return maker.net.finish()


def chain(*layers: tuple[int, int, int], size: int = 12, same: bool = True) -> bytes:
    """Convolutions (kernel, stride, channels) on an image of `size` by 5 by 3."""
    net = Net()
    graph = net.graph()
    x, rows, columns, depth = graph.input("x", (1, size, 5, 3), scale=0.1), size, 5, 3
    for i, (kernel, stride, channels) in enumerate(layers):
        weights = graph.constant(
            f"w{i}", [[[[(3 * a + b + i) % 7 - 3] * depth for b in range(kernel)]
                       for _ in range(kernel)] for a in range(channels)], "int8", scale=0.1,
        )  # fmt: skip
        bias = graph.constant(f"b{i}", list(range(channels)), "int32", scale=0.01)
        rows = -(-rows // stride) if same else (rows - kernel) // stride + 1
        columns = -(-columns // stride) if same else (columns - kernel) // stride + 1
        y = graph.tensor(f"y{i}", (1, rows, columns, channels), scale=0.1)
        graph.op("CONV_2D", [x, weights, bias], [y], "Conv2DOptions", padding=0 if same else 1,
                 strideH=stride, strideW=stride, dilationHFactor=1, dilationWFactor=1)  # fmt: skip
        x, depth = y, channels
    graph.outputs(x)
    return net.finish()


def cut_block(kind: str, *, stride: int = 1) -> bytes:
    """A block whose channels are cut in two by operators of a kind; one half goes through a
    convolution of 3x3, the other one through one of 5x5, and both are joined."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 14, 5, 6), scale=0.1)
    parts = [graph.tensor(f"part{i}", (1, 14, 5, 3), scale=0.1) for i in range(2)]
    if kind == "SPLIT":
        axis = graph.constant("axis", 3)
        graph.op(kind, [axis, x], parts, "SplitOptions", numSplits=2)
    elif kind == "SPLIT_V":
        places = [graph.constant("sizes", [3, -1]), graph.constant("axis", -1)]
        graph.op(kind, [x, *places], parts, "SplitVOptions", numSplits=2)
    for i, part in enumerate(parts):
        begin = graph.constant(f"begin{i}", [0, 0, 0, 3 * i])
        if kind == "SLICE":
            size = graph.constant(f"size{i}", [1, -1, 5, 3] if i else [1, 14, 5, 3])
            graph.op(kind, [x, begin, size], [part], "SliceOptions")
        elif kind == "STRIDED_SLICE":
            ends = [graph.constant(f"end{i}", [1, 14, 5, 3 * i + 3]),
                    graph.constant(f"steps{i}", [1, 1, 1, 1])]  # fmt: skip
            graph.op(kind, [x, begin, *ends], [part], "StridedSliceOptions", endMask=7 * i)
    made: list[int] = []
    rows, columns = -(-14 // stride), -(-5 // stride)
    for size, part in zip((3, 5), parts, strict=True):
        values = [[[[(3 * a + b + size) % 7 - 3] * 3 for b in range(size)] for a in range(size)]
                  for _ in range(4)]  # fmt: skip
        weights = graph.constant(f"w{size}", values, "int8", scale=0.1)
        bias = graph.constant(f"b{size}", [1, 2, 3, 4], "int32", scale=0.01)
        made.append(graph.tensor(f"y{size}", (1, rows, columns, 4), scale=0.1))
        graph.op("CONV_2D", [part, weights, bias], [made[-1]], "Conv2DOptions", strideH=stride,
                 strideW=stride, dilationHFactor=1, dilationWFactor=1)  # fmt: skip
    y = graph.tensor("y", (1, rows, columns, 8), scale=0.1)
    graph.op("CONCATENATION", made, [y], "ConcatenationOptions", axis=3)
    graph.outputs(y)
    return net.finish()


def between(graph: Graph, first: Op, last: Op) -> list[int]:
    """Positions of the operators on paths from `first` to `last`, both included."""
    after, before = {first}, {last}
    for op in graph.ops:
        if any(t.producer is not None and t.producer in after for t in op.operands()):
            after.add(op)
    for op in reversed(graph.ops):
        if any(c in before for t in op.outputs for c in t.consumers):
            before.add(op)
    return [i for i, op in enumerate(graph.ops) if op in after & before]


def from_input(graph: Graph, last: Op) -> list[int]:
    """Positions of the operators that `last` depends on, itself included."""
    before = {last}
    for op in reversed(graph.ops):
        if any(c in before for t in op.outputs for c in t.consumers):
            before.add(op)
    return [i for i, op in enumerate(graph.ops) if op in before]


def random_loop(
    data: bytes, rng: random.Random, taken: frozenset[int] = frozenset()
) -> LoopedRegion:
    """A random region, one that can be streamed if a few tries find it; not of `taken`."""
    model = read_model(data)
    ops = model.main.ops
    found: list[LoopedRegion] = []
    loop = LoopedRegion((0,), 1)
    for _ in range(60):
        first = rng.randrange(len(ops))
        last = ops[rng.randrange(first, len(ops))]
        chosen = between(model.main, ops[first], last) or [first]
        chosen = from_input(model.main, last) if rng.random() < 0.4 else chosen
        if taken & {*chosen}:
            continue
        loop = LoopedRegion(
            tuple(chosen), rng.choice((1, 1, 1, 2, 2, 3, 4, 5)), rng.choice(LOOP_BORDERS)
        )
        try:
            geometry_of(model, loop)
        except NotStreamableError:
            continue
        found.append(loop)
        if len(found) == 8:
            break
    if not found:
        return loop
    return max(found, key=lambda f: len(f.ops)) if rng.random() < 0.6 else rng.choice(found)


def random_loops(data: bytes, rng: random.Random) -> tuple[LoopedRegion, ...]:
    """One loop or two."""
    one = random_loop(data, rng)
    if rng.random() < 0.7:
        return (one,)
    other = random_loop(data, rng, frozenset(one.ops))
    return (one,) if {*other.ops} & {*one.ops} else (one, other)


def streamed(data: bytes, *loops: LoopedRegion) -> tuple[bytes, list[str]]:
    """The model with the loops applied, and the notes."""
    model = read_model(data)
    notes = run(model, Normalize(), Regions(loops))
    return write_model(model), notes


@dataclass
class Planned:
    """A planned file, the head predicted for this machine's TFLM, and the arena."""

    data: bytes
    head: int
    arena: int


def planned(data: bytes, *, overlap: bool = True, seconds: float = 1.0) -> Planned:
    """The model planned for this machine's TFLM. Without `overlap`, only aliases that hold for
    every kernel: what the replay understands."""
    on = api.kernels_of(api.load_target("x86-64/wheel"))
    options = MemoryOptions(allocator="greedy", time_limit=seconds, kernels=on, overlap=overlap)
    made = ModelPlanner(options, Stop(seconds)).plan(data, read_model(data)).file
    return Planned(made.data, made.inspection.arena.head, made.inspection.arena.arena)


def faults(original: bytes, made: bytes, *, host: bool = True) -> list[str]:
    """What is wrong with a rewritten model: its bits; its bits with a plan, and that plan byte by
    byte; with `wheel`, its bits with overlaps, the head that TFLM really takes, and whether the
    smallest arena is one."""
    wrong = quick_differences(original, made)
    if wrong:
        return wrong
    rigid = planned(made, overlap=False)
    wrong += [f"planned: {d}" for d in quick_differences(original, rigid.data, ("TFLM",))]
    wrong += [f"replay: {f}" for f in replay_planned(rigid.data)]
    if host:
        plan = planned(made)
        wrong += [f"overlapped: {d}" for d in quick_differences(original, plan.data, ("TFLM",))]
        runtime = Wheel(plan.data)
        found = runtime.run(plan.arena + (1 << 16))
        if found is None or found[0] != plan.head:
            wrong.append(f"head {plan.head}, really {found}")
        if runtime.run(plan.arena) is None:
            wrong.append(f"does not work in the predicted arena of {plan.arena}")
        runtime.close()
    return wrong


__all__ = [
    "Planned", "between", "chain", "faults", "planned", "random_blocks", "random_loop",
    "random_loops", "streamed",
]  # fmt: skip


def geometry_of(model: Model, loop: LoopedRegion) -> LoopGeometry:
    """The loop as it would be: delays, halos, turns, and where the result goes. Raises
    NotStreamableError."""
    ops = model.main.ops
    return loop_geometry(model.main, [ops[i] for i in sorted(set(loop.ops))], loop)
