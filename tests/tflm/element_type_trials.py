"""Models of one operator in every combination of element types, and what stock TFLM runs of them.

    "CONV_2D"  "a b bias -> a"   a, b: any of `UNIVERSE`      -> table: ["float32 float32", ...]

`python -m tests.tflm.element_type_trials` runs all of them on the wheel, each in a process of its
own (TFLM aborts on some), and writes `tflm_planner/tflm/data/element_types.toml`, which says what
ran.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tests.models.build import Graph, Net
from tests.tflm.pickled_jobs import serve

UNIVERSE = ("float32", "float16", "int4", "int8", "uint8", "int16", "int32", "int64", "bool")
"""Element types that are tried; of others the table says nothing."""
IMAGE = (1, 6, 8, 4)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Typed:
    """An operator in any types. types: of operands and results, "a b -> a": letters stand for
    any type, `bias` for what goes with a; names for themselves. values: of constant operands by
    position; all other operands are tried as inputs and as constants of ones. results: scale and
    zero point of results by type, where a kernel demands them."""

    kind: str
    types: str
    shapes: tuple[Shape | None, ...]
    result: tuple[Shape, ...]
    options: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    values: Mapping[int, Any] = field(default_factory=dict[int, Any])
    results: Mapping[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    states: tuple[int, ...] = ()

    @property
    def words(self) -> tuple[list[str], list[str]]:
        """Types of operands and of results."""
        before, _, after = self.types.partition("->")
        return before.split(), after.split()

    @property
    def decided_by(self) -> dict[str, str]:
        """Letter -> the tensor that it is read from, the first that has it."""
        operands, results = self.words
        places = [(w, f"operand {i}") for i, w in enumerate(operands)]
        places += [(w, f"result {i}") for i, w in enumerate(results)]
        found: dict[str, str] = {}
        for word, place in places:
            if len(word) == 1:
                found.setdefault(word, place)
        return found

    def combinations(self) -> Iterator[tuple[str, ...]]:
        """Types of the letters, in the order of `decided_by`."""
        yield from product(UNIVERSE, repeat=len(self.decided_by))

    def models(self, types: tuple[str, ...]) -> Iterator[bytes]:
        """Models of one combination: if one of them runs, it runs."""
        for quantised, constant in product((True, False), repeat=2):
            yield self._model(dict(zip(self.decided_by, types, strict=True)), quantised, constant)

    def _model(self, letters: dict[str, str], quantised: bool, constant: bool) -> bytes:
        net = Net(self.kind)
        graph = net.graph()
        operands, results = self.words
        inputs: list[int] = []
        for i, (word, shape) in enumerate(zip(operands, self.shapes, strict=True)):
            kind = _bias(letters["a"]) if word == "bias" else letters.get(word, word)
            if shape is None:
                inputs.append(-1)
            elif i in self.values:
                inputs.append(_constant(graph, f"v{i}", self.values[i], kind, quantised))
            elif i in self.states:
                inputs.append(graph.tensor(f"s{i}", shape, kind, isVariable=True,
                                           **_scale(kind, quantised)))  # fmt: skip
            elif constant or _is_filter(self.kind, i):
                fine = 0.0625**2 if word == "bias" else None
                inputs.append(_constant(graph, f"c{i}", np.ones(shape), kind, quantised, fine))
            else:
                inputs.append(graph.input(f"x{i}", shape, kind, **_scale(kind, quantised)))
        made: list[int] = []
        for i, (word, shape) in enumerate(zip(results, self.result, strict=True)):
            kind = letters.get(word, word)
            special = self.results.get(f"{letters.get('a')} {kind}", self.results.get(kind))
            made.append(graph.tensor(f"y{i}", shape, kind, **_scale(kind, quantised, special)))
        graph.op(self.kind, inputs, made, self.options, **self.fields)
        graph.outputs(*made)
        return net.finish()


_FILTERS = {
    "CONV_2D": (1, 2), "DEPTHWISE_CONV_2D": (1, 2), "FULLY_CONNECTED": (1, 2),
    "TRANSPOSE_CONV": (1, 3), "SVDF": (1, 2, 3), "EMBEDDING_LOOKUP": (1,),
}  # fmt: skip


def _is_filter(kind: str, place: int) -> bool:
    return place in _FILTERS.get(kind, ())


def _bias(of: str) -> str:
    return {"float32": "float32", "int16": "int64"}.get(of, "int32")


def _scale(kind: str, quantised: bool, special: tuple[float, int] | None = None) -> dict[str, Any]:
    if not quantised or kind in ("float32", "bool"):
        return {}
    scale, zero = special or (0.0625, 0)
    return {"scale": scale, "zero": zero}


def _constant(
    graph: Graph, name: str, values: Any, kind: str, quantised: bool, scale: float | None = None
) -> int:
    array = np.asarray(values)
    how = _scale(kind, quantised, None if scale is None else (scale, 0))
    if kind == "int4":
        data = np.full(max(1, -(-array.size // 2)), 0x11, np.uint8)
        return graph.tensor(name, array.shape, kind, data=data, **how)
    return graph.constant(name, array, kind, **how)


OPERATORS: list[Typed] = []
"""Every operator whose types are tried."""


def _add(
    kinds: str,
    types: str,
    shapes: tuple[Shape | None, ...],
    result: Shape | tuple[Shape, ...],
    options: str | None = None,
    values: Mapping[int, Any] | None = None,
    results: Mapping[str, tuple[float, int]] | None = None,
    states: tuple[int, ...] = (),
    **fields: Any,
) -> None:
    shaped: Any = result if result and isinstance(result[0], tuple) else (result,)
    for kind in kinds.split():
        OPERATORS.append(
            Typed(kind, types, shapes, shaped, options, fields, values or {}, results or {}, states)
        )


def _element_wise() -> None:
    one, two = (IMAGE,), (IMAGE, IMAGE)
    _add("CEIL COS EXP FLOOR LOG ROUND SIN SQRT SQUARE NEG ABS RSQRT ELU RELU RELU6 HARD_SWISH "
         "ZEROS_LIKE LOGICAL_NOT", "a -> a", one, IMAGE)  # fmt: skip
    narrow = {"int8": (1 / 256, -128), "int16": (1 / 32768, 0), "uint8": (1 / 256, 0)}
    _add("LOGISTIC", "a -> a", one, IMAGE, results=narrow)
    _add("TANH", "a -> a", one, IMAGE, results={**narrow, "int8": (1 / 128, 0)})
    _add("LEAKY_RELU", "a -> a", one, IMAGE, "LeakyReluOptions", alpha=0.1)
    flat = (1, 12)
    _add("SOFTMAX", "a -> b", (flat,), flat, "SoftmaxOptions",
         results={**narrow, "int8 int16": (1 / 65536, -32768)}, beta=1.0)  # fmt: skip
    _add("LOG_SOFTMAX", "a -> a", (flat,), flat, results={"int8": (16 / 256, 127)})
    _add("L2_NORMALIZATION", "a -> a", (flat,), flat, "L2NormOptions",
         results={"int8": (1 / 128, 0)})  # fmt: skip
    _add("CAST", "a -> b", one, IMAGE, "CastOptions")
    _add("QUANTIZE DEQUANTIZE", "a -> b", one, IMAGE)
    _add("SHAPE", "a -> b", one, (4,), "ShapeOptions")
    for kind in ("ADD", "SUB", "MUL", "DIV"):
        _add(kind, "a a -> a", two, IMAGE, f"{kind.title()}Options",
             values={1: np.ones(IMAGE)})  # fmt: skip
    _add("FLOOR_DIV FLOOR_MOD MAXIMUM MINIMUM SQUARED_DIFFERENCE LOGICAL_AND LOGICAL_OR",
         "a a -> a", two, IMAGE, values={1: np.ones(IMAGE)})  # fmt: skip
    _add("EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL", "a a -> bool", two, IMAGE)
    _add("ADD_N", "a a a -> a", (IMAGE,) * 3, IMAGE)
    _add("PRELU", "a b -> a", (IMAGE, (1, 1, 4)), IMAGE, values={1: np.ones((1, 1, 4))})
    _add("SELECT_V2", "bool a a -> a", (IMAGE,) * 3, IMAGE)


def _movement() -> None:
    four = (0,) * 4
    _add("SPACE_TO_BATCH_ND", "a int32 int32 -> a", (IMAGE, (2,), (2, 2)), (4, 3, 4, 4),
         values={1: [2, 2], 2: [[0, 0], [0, 0]]})  # fmt: skip
    _add("BATCH_TO_SPACE_ND", "a int32 int32 -> a", ((4, 3, 4, 4), (2,), (2, 2)), IMAGE,
         values={1: [2, 2], 2: [[0, 0], [0, 0]]})  # fmt: skip
    _add("DEPTH_TO_SPACE", "a -> a", (IMAGE,), (1, 12, 16, 1), "DepthToSpaceOptions", blockSize=2)
    _add("SPACE_TO_DEPTH", "a -> a", (IMAGE,), (1, 3, 4, 16), "SpaceToDepthOptions", blockSize=2)
    _add("BROADCAST_TO", "a b -> a", ((1, 1, 1, 4), (4,)), IMAGE, values={1: IMAGE})
    _add("BROADCAST_ARGS", "a a -> a", ((3,), (3,)), (3,))
    _add("FILL", "a b -> b", ((2,), ()), (3, 4), values={0: [3, 4], 1: 7})
    _add("GATHER", "a b -> a", (IMAGE, (2,)), (1, 2, 8, 4), "GatherOptions",
         values={1: [0, 3]}, axis=1)  # fmt: skip
    _add("GATHER_ND", "a b -> a", ((5, 4), (2, 1)), (2, 4), values={1: [[0], [3]]})
    _add("MIRROR_PAD", "a int32 -> a", ((4, 4), (2, 2)), (6, 6), "MirrorPadOptions",
         values={1: [[1, 1], [1, 1]]})  # fmt: skip
    pads, larger = [[0, 0], [1, 1], [1, 1], [0, 0]], (1, 8, 10, 4)
    _add("PAD", "a b -> a", (IMAGE, (4, 2)), larger, values={1: pads})
    _add("PADV2", "a int32 a -> a", (IMAGE, (4, 2), (1,)), larger, values={1: pads, 2: [1]})
    _add("RESIZE_BILINEAR", "a int32 -> a", (IMAGE, (2,)), (1, 12, 16, 4),
         "ResizeBilinearOptions", values={1: [12, 16]})  # fmt: skip
    _add("RESIZE_NEAREST_NEIGHBOR", "a int32 -> a", (IMAGE, (2,)), (1, 12, 16, 4),
         "ResizeNearestNeighborOptions", values={1: [12, 16]})  # fmt: skip
    _add("REVERSE_V2", "a int32 -> a", (IMAGE, (1,)), IMAGE, values={1: [1]})
    _add("TRANSPOSE", "a int32 -> a", (IMAGE, (4,)), (1, 8, 6, 4), values={1: [0, 2, 1, 3]})
    _add("EXPAND_DIMS", "a b -> a", ((6, 4), ()), (1, 6, 4), values={1: 0})
    _add("SQUEEZE", "a -> a", (IMAGE,), IMAGE[1:], "SqueezeOptions", squeezeDims=[0])
    _add("RESHAPE", "a int32 -> a", (IMAGE, (2,)), (1, 192), "ReshapeOptions",
         values={1: [1, 192]})  # fmt: skip
    _add("SLICE", "a b b -> a", (IMAGE, (4,), (4,)), (1, 2, 8, 4),
         values={1: [0, 1, 0, 0], 2: [1, 2, 8, 4]})  # fmt: skip
    _add("STRIDED_SLICE", "a int32 int32 int32 -> a", (IMAGE, (4,), (4,), (4,)), (1, 3, 8, 4),
         "StridedSliceOptions", values={1: four, 2: IMAGE, 3: [1, 2, 1, 1]})  # fmt: skip
    _add("CUMSUM", "a int32 -> a", (IMAGE, ()), IMAGE, "CumsumOptions", values={1: 1})
    _add("PACK", "a a -> a", ((4, 4),) * 2, (2, 4, 4), "PackOptions", valuesCount=2, axis=0)
    _add("UNPACK", "a -> a a a", ((3, 4, 4),), ((4, 4),) * 3, "UnpackOptions", num=3, axis=0)
    _add("CONCATENATION", "a a -> a", (IMAGE,) * 2, (1, 12, 8, 4), "ConcatenationOptions", axis=1)
    _add("SPLIT", "int32 a -> a a", ((), IMAGE), ((1, 3, 8, 4),) * 2, "SplitOptions",
         values={0: 1}, numSplits=2)  # fmt: skip
    _add("SPLIT_V", "a int32 int32 -> a a", (IMAGE, (2,), ()), ((1, 2, 8, 4), (1, 4, 8, 4)),
         "SplitVOptions", values={1: [2, 4], 2: 1}, numSplits=2)  # fmt: skip
    _add("DYNAMIC_UPDATE_SLICE", "a a b -> a", (IMAGE, (1, 2, 8, 4), (4,)), IMAGE,
         values={2: four})  # fmt: skip
    _add("EMBEDDING_LOOKUP", "int32 a -> b", ((3,), (9, 5)), (3, 5), values={0: [0, 1, 2]})


def _sums() -> None:
    _add("MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_ALL", "a int32 -> a", (IMAGE, (2,)), (1, 1, 1, 4),
         "ReducerOptions", values={1: [1, 2]}, keepDims=True)  # fmt: skip
    for name in ("Max", "Min"):
        _add(f"ARG_{name.upper()}", "a int32 -> b", (IMAGE, ()), (1, 6, 8), f"Arg{name}Options",
             values={1: 3}, outputType=2)  # fmt: skip
    pool = {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
    _add("L2_POOL_2D AVERAGE_POOL_2D MAX_POOL_2D", "a -> a", (IMAGE,), (1, 3, 4, 4),
         "Pool2DOptions", **pool)  # fmt: skip


def _products() -> None:
    steps = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    _add("CONV_2D", "a b bias -> a", (IMAGE, (6, 3, 3, 4), (6,)), (1, 6, 8, 6), "Conv2DOptions",
         **steps)  # fmt: skip
    _add("DEPTHWISE_CONV_2D", "a b bias -> a", (IMAGE, (1, 3, 3, 4), (4,)), IMAGE,
         "DepthwiseConv2DOptions", depthMultiplier=1, **steps)  # fmt: skip
    _add("TRANSPOSE_CONV", "int32 b a bias -> a", ((4,), (4, 3, 3, 4), IMAGE, (4,)),
         (1, 12, 16, 4), "TransposeConvOptions", values={0: (1, 12, 16, 4)}, strideH=2,
         strideW=2)  # fmt: skip
    _add("FULLY_CONNECTED", "a b bias -> a", ((1, 12), (8, 12), (8,)), (1, 8),
         "FullyConnectedOptions")  # fmt: skip
    _add("BATCH_MATMUL", "a b -> a", ((2, 3, 4), (2, 4, 6)), (2, 3, 6), "BatchMatMulOptions")
    _add("SVDF", "a b a bias a -> a", ((1, 5), (6, 5), (6, 3), (6,), (1, 18)), (1, 6),
         "SVDFOptions", states=(4,), rank=1)  # fmt: skip


_element_wise()
_movement()
_sums()
_products()


# --- running them -----------------------------------------------------------------------------


def what_runs(operators: Sequence[Typed], every: int = 1) -> dict[str, list[str]]:
    """Kind -> the combinations of types that stock TFLM runs, in order. every: of how many
    combinations of an operator one is tried."""
    jobs = [(op, types) for op in operators for types in [*op.combinations()][::every]]
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.tflm.element_type_trials", "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
    )
    assert child.stdin is not None and child.stdout is not None
    found: dict[str, list[str]] = {op.kind: [] for op in operators}
    with child:
        for op, types in jobs:
            pickle.dump(list(op.models(types)), child.stdin)
            child.stdin.flush()
            if pickle.load(child.stdout):
                found[op.kind].append(" ".join(types))
        child.stdin.close()
    return found


def _runs(models: Sequence[bytes]) -> bool:
    """Whether TFLM runs one of the models."""
    from tflite_micro import runtime

    end = _ending(runtime, models)
    # One that aborts says nothing of those behind it.
    return end == 0 or (end > 1 and any(_ending(runtime, [m]) == 0 for m in models))


def _ending(runtime: Any, models: Sequence[bytes]) -> int:
    """0 if TFLM runs one of the models to the end, in a child; 1 if none; else it aborted."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 2
    signal.alarm(10)
    for model in models:
        with suppress(Exception):
            runtime.Interpreter.from_bytes(model, arena_size=1 << 17).invoke()
            os._exit(0)
    os._exit(1)


def table_text(found: Mapping[str, list[str]]) -> str:
    lines = [
        "# Element types that TFLM's reference kernels take: a combination that is not listed does",
        "# not run. Written by `python -m tests.tflm.element_type_trials` on the TFLM wheel: every",
        "# type of `tried` for every tensor that decides. What older TFLM lacks: history.toml.",
        "",
        f"tried = {list(UNIVERSE)!r}".replace("'", '"'),
        "",
    ]
    by = {op.kind: op.decided_by.values() for op in OPERATORS}
    for kind in sorted(found):
        lines += [
            f"[operator.{kind}]",
            f"decided_by = {list(by[kind])!r}".replace("'", '"'),
            "runs = [" if len(found[kind]) > 8 else f"runs = {found[kind]!r}".replace("'", '"'),
        ]
        if len(found[kind]) > 8:
            rows = [found[kind][i : i + 4] for i in range(0, len(found[kind]), 4)]
            lines += ["    " + " ".join(f'"{types}",' for types in row) for row in rows] + ["]"]
        lines.append("")
    return "\n".join(lines)


DATA = Path(__file__).parents[2] / "tflm_planner/tflm/data/element_types.toml"


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve(_runs)
    else:
        DATA.write_text(table_text(what_runs(OPERATORS)))
