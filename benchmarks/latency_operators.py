"""Random operators for the latency model: models of many independent operators each.

    python benchmarks/latency_operators.py FOLDER [--models 60] [--seed 1]

Every model is a row of operators that share nothing, so that one run of an instrumented TFLM gives
as many measurements. Shapes are those of small vision and audio networks: few and many rows,
channels that are and are not multiples of 4, strides, dilations. What such runs gave lies in
latency_measured.jsonl.gz beside this file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.latency_draw import Draw, reach, window

MOST_MACS = 1_500_000
KERNELS = ((1, 1), (1, 1), (3, 3), (3, 3), (3, 3), (5, 5), (7, 7), (1, 3), (3, 1), (2, 2), (1, 7))


def conv(d: Draw) -> None:
    """CONV_2D."""
    shape = d.image()
    if d.rng.random() < 0.08:
        shape = (1, 1, d.between(4, 60), d.channels(40))
    kernel, stride, dilation, valid, height, width = window(d, shape, KERNELS)
    groups = 2 if d.dtype == "int8" and shape[3] % 2 == 0 and d.rng.random() < 0.05 else 1
    out = d.channels(128)
    if d.dtype == "int16" and d.rng.random() < 0.3:  # a column of more than 512
        kernel = (min(3, shape[1]), min(4, shape[2]))
        shape, valid, stride, dilation = (*shape[:3], d.pick(48, 64, 96, 150)), 1, 1, 1
        height, width = shape[1] - kernel[0] + 1, shape[2] - kernel[1] + 1
    out += out % groups
    while height * width * out * kernel[0] * kernel[1] * shape[3] > MOST_MACS and out > 2:
        out = max(2, out // 2)
        out += out % groups
    x = d.given(shape)
    weights = d.weights((out, *kernel, shape[3] // groups), 0, out)
    y = d.result((1, height, width, out))
    steps = {"strideH": stride, "strideW": stride, "dilationHFactor": dilation, "dilationWFactor": dilation}  # noqa: E501  # fmt: skip
    d.op("CONV_2D", [x, *weights], [y], "Conv2DOptions", padding=valid, **steps)


def depthwise(d: Draw) -> None:
    """DEPTHWISE_CONV_2D, with and without a multiplier."""
    many = d.rng.random() < 0.2
    shape = d.image(channels=d.pick(1, 1, d.between(2, 8)) if many else d.channels(200))
    multiplier = d.between(2, 16) if many else 1
    kernel, stride, dilation, valid, height, width = window(d, shape, ((3, 3), *KERNELS[2:]))
    depth = shape[3] * multiplier
    x = d.given(shape)
    weights = d.weights((1, *kernel, depth), 3, depth)
    y = d.result((1, height, width, depth))
    steps = {"strideH": stride, "strideW": stride, "dilationHFactor": dilation, "dilationWFactor": dilation}  # noqa: E501  # fmt: skip
    options = {"padding": valid, "depthMultiplier": multiplier, **steps}
    d.op("DEPTHWISE_CONV_2D", [x, *weights], [y], "DepthwiseConv2DOptions", **options)


def dense(d: Draw) -> None:
    """FULLY_CONNECTED, of rank 2 and 3, per tensor and per channel."""
    depth, out = d.channels(512), d.channels(160)
    rows = d.pick(1, 1, 1, d.between(1, 12))
    rank3 = d.rng.random() < 0.2
    shape = (1, rows, depth) if rank3 else (rows, depth)
    x = d.given(shape)
    many = d.dtype == "int8" and d.rng.random() < 0.3
    weights = d.weights((out, depth), 0, out if many else 1)
    y = d.result((*shape[:-1], out))
    d.op("FULLY_CONNECTED", [x, *weights], [y], "FullyConnectedOptions", keepNumDims=rank3)


def transpose_conv(d: Draw) -> None:
    """TRANSPOSE_CONV."""
    ci, co = d.channels(48), d.channels(32)
    h, w = d.between(1, 10), d.between(1, 10)
    k, s = d.pick(2, 3, 4), d.pick(1, 2, 2)
    shape = d.constant([1, h * s, w * s, co])
    weights, bias = d.weights((co, k, k, ci), 0, co)
    x = d.given((1, h, w, ci))
    y = d.result((1, h * s, w * s, co))
    d.op("TRANSPOSE_CONV", [shape, weights, x, bias], [y], "TransposeConvOptions", version=3, strideH=s, strideW=s)  # noqa: E501  # fmt: skip


def pool(d: Draw) -> None:
    """AVERAGE_POOL_2D and MAX_POOL_2D."""
    shape = d.image(12_000)
    whole = (shape[1], shape[2])
    kernel, _, _, valid, _, _ = window(d, shape, ((2, 2), (3, 3), (2, 2), whole))
    stride = d.pick(1, 2, kernel[0])
    height = reach(shape[1], kernel[0], stride, 1, bool(valid))
    width = reach(shape[2], kernel[1], stride, 1, bool(valid))
    name = d.pick("AVERAGE_POOL_2D", "MAX_POOL_2D")
    x, y = d.given(shape), d.result((1, height, width, shape[3]))
    d.op(name, [x], [y], "Pool2DOptions", padding=valid, strideH=stride, strideW=stride, filterHeight=kernel[0], filterWidth=kernel[1])  # noqa: E501  # fmt: skip


def pair(d: Draw) -> None:
    """ADD, SUB, MUL, MAXIMUM, MINIMUM, with and without broadcasting."""
    shape = d.image(8_000)
    name, options = d.pick(("ADD", "AddOptions"), ("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions"), ("MAXIMUM", None), ("MINIMUM", None))  # noqa: E501  # fmt: skip
    if options is None and d.dtype == "int16":
        name, options = "ADD", "AddOptions"
    small = d.pick((1, 1, 1, shape[3]), (1, 1, 1, 1), (shape[3],))
    second = small if d.rng.random() < 0.45 else shape
    x, z, y = d.given(shape), d.given(second, scale=0.04), d.result(shape, scale=0.08)
    d.op(name, [x, z], [y], options)


def single(d: Draw) -> None:
    """Element by element."""
    names = {
        "int8": ("RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "ABS"),
        "int16": ("LOGISTIC", "TANH", "LEAKY_RELU", "ABS"),
        "float32": ("RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "SQRT", "EXP"),
    }
    name = d.pick(*names[d.dtype])
    shape = d.image(6_000)
    fixed = name in ("LOGISTIC", "TANH")
    scale = {"int8": 1 / 256 if name == "LOGISTIC" else 1 / 128, "int16": 1 / 32768}.get(d.dtype, 1.0)  # noqa: E501  # fmt: skip
    zero = -128 if name == "LOGISTIC" and d.dtype == "int8" else 0
    y = d.result(shape, scale=scale, zero=zero) if fixed else d.result(shape)
    options: dict[str, Any] = (
        {"options": "LeakyReluOptions", "alpha": 0.1} if name == "LEAKY_RELU" else {}
    )
    d.op(name, [d.given(shape)], [y], **options)


def quantize(d: Draw) -> None:
    """QUANTIZE and DEQUANTIZE."""
    shape = d.image(8_000)
    source, target = d.pick(("float32", "int8"), ("int8", "int8"), ("int16", "int16"), ("int8", "int16"), ("float32", "int16"), ("int32", "int16"), ("int32", "int8"), ("int8", "float32"), ("int16", "float32"))  # noqa: E501  # fmt: skip
    x, y = d.given(shape, source), d.result(shape, target, scale=0.07)
    d.op("DEQUANTIZE" if target == "float32" else "QUANTIZE", [x], [y])


def softmax(d: Draw) -> None:
    """SOFTMAX."""
    shape = (d.between(1, 40), d.between(2, 200))
    scale, zero = {"int8": (1 / 256, -128), "int16": (1 / 32768, 0)}.get(d.dtype, (1.0, 0))
    y = d.result(shape, scale=scale, zero=zero)
    d.op("SOFTMAX", [d.given(shape)], [y], "SoftmaxOptions", beta=1.0)


def mean(d: Draw) -> None:
    """MEAN, SUM, REDUCE_MAX."""
    shape = d.image(12_000)
    name = d.pick("MEAN", "MEAN", "SUM", "REDUCE_MAX")
    if name == "REDUCE_MAX" and d.dtype == "int16":
        name = "MEAN"
    axes = d.pick([1, 2], [1, 2], [3], [1])
    out = tuple(1 if i in axes else n for i, n in enumerate(shape))
    y = d.result(out, scale=0.05 if name == "REDUCE_MAX" else 0.06)
    d.op(name, [d.given(shape), d.constant(axes)], [y], "ReducerOptions", keepDims=True)


def window_copy(d: Draw) -> None:
    """SLICE and STRIDED_SLICE, along any one axis."""
    shape = d.image(16_000)
    axis = d.pick(1, 1, 2, 3)
    size = d.between(1, shape[axis])
    begin = [0, 0, 0, 0]
    begin[axis] = shape[axis] - size
    out = list(shape)
    out[axis] = size
    if d.rng.random() < 0.5:
        operands = [d.given(shape), d.constant(begin), d.constant(out)]
        d.op("SLICE", operands, [d.result(tuple(out))])
        return
    step = d.pick(1, 1, 2)
    end = [b + n for b, n in zip(begin, out, strict=True)]
    strides = [1, 1, 1, 1]
    strides[axis] = step
    out[axis] = -(-size // step)
    operands = [d.given(shape), d.constant(begin), d.constant(end), d.constant(strides)]
    d.op("STRIDED_SLICE", operands, [d.result(tuple(out))], "StridedSliceOptions")


def gather(d: Draw) -> None:
    """GATHER of whole rows."""
    if d.dtype == "int16":
        return
    shape = d.image(16_000)
    axis, count = d.pick(1, 1, 2), d.between(1, 8)
    where = sorted(int(i) for i in d.rng.integers(0, shape[axis], count))
    out = list(shape)
    out[axis] = count
    d.op("GATHER", [d.given(shape), d.constant(where)], [d.result(tuple(out))], "GatherOptions", axis=axis)  # noqa: E501  # fmt: skip


def concatenation(d: Draw) -> None:
    """CONCATENATION of two to ten parts along any axis."""
    axis, parts = d.pick(1, 1, 2, 3), d.between(2, 10)
    shape = list(d.image(12_000 // parts))
    sizes = [d.between(1, 2 * shape[axis]) for _ in range(parts)]
    inputs: list[int] = []
    for size in sizes:
        shape[axis] = size
        inputs.append(d.given(tuple(shape)))
    shape[axis] = sum(sizes)
    d.op("CONCATENATION", inputs, [d.result(tuple(shape))], "ConcatenationOptions", axis=axis)


def pad(d: Draw) -> None:
    """PAD in height, width or channels."""
    shape = d.image(10_000)
    pads = [[0, 0], [0, d.between(1, 3)], [d.between(0 + 1, 2), 1], [0, 0]]
    pads[d.pick(1, 2)] = d.pick([0, 0], [1, 1])
    if d.rng.random() < 0.15:
        pads = [[0, 0], [0, 0], [0, 0], [0, d.between(1, 32)]]
    out = tuple(n + a + b for n, (a, b) in zip(shape, pads, strict=True))
    d.op("PAD", [d.given(shape), d.constant(pads)], [d.result(out)])


def split(d: Draw) -> None:
    """SPLIT and SPLIT_V."""
    axis, parts = d.pick(1, 2, 3), d.between(2, 4)
    shape = list(d.image(12_000))
    size = max(1, shape[axis] // parts)
    shape[axis] = size * parts
    part = list(shape)
    part[axis] = size
    outputs = [d.result(tuple(part)) for _ in range(parts)]
    x, where = d.given(tuple(shape)), d.constant(axis)
    if d.rng.random() < 0.5:
        d.op("SPLIT", [where, x], outputs, "SplitOptions", numSplits=parts)
    else:
        sizes = d.constant([size] * parts)
        d.op("SPLIT_V", [x, sizes, where], outputs, "SplitVOptions", numSplits=parts)


def reshape(d: Draw) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: a copy unless in place."""
    shape = d.image(16_000)
    x = d.given(shape)
    name = d.pick("RESHAPE", "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
    if name == "RESHAPE":
        flat = (1, int(np.prod(shape)))
        d.op(name, [x, d.constant(flat)], [d.result(flat)], "ReshapeOptions")
    elif name == "SQUEEZE":
        d.op(name, [x], [d.result(shape[1:])], "SqueezeOptions", squeezeDims=[0])
    elif d.dtype != "int16":
        d.op(name, [x, d.constant(0)], [d.result((1, *shape))])


def update(d: Draw) -> None:
    """DYNAMIC_UPDATE_SLICE, of one dimension or of rows of an image."""
    shape = d.image(12_000)
    if d.rng.random() < 0.5:
        total = int(np.prod(shape))
        whole, part = (total,), (d.between(1, total),)
    else:
        whole, part = shape, (1, d.between(1, shape[1]), shape[2], shape[3])
    start = d.constant([0] * len(whole))
    d.op("DYNAMIC_UPDATE_SLICE", [d.given(whole), d.given(part), start], [d.result(whole)])


def transpose(d: Draw) -> None:
    """TRANSPOSE."""
    shape = d.image(8_000)
    order = d.pick((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (0, 1, 3, 2))
    out = tuple(shape[i] for i in order)
    if d.dtype != "int16":
        d.op("TRANSPOSE", [d.given(shape), d.constant(order)], [d.result(out)])


def matmul(d: Draw) -> None:
    """BATCH_MATMUL of two inputs."""
    b, m, n, k = d.between(1, 4), d.between(1, 32), d.between(1, 32), d.between(1, 64)
    turn_x, turn_y = bool(d.rng.random() < 0.2), bool(d.rng.random() < 0.5)
    x = d.given((b, k, m) if turn_x else (b, m, k))
    y = d.given((b, n, k) if turn_y else (b, k, n))
    d.op("BATCH_MATMUL", [x, y], [d.result((b, m, n))], "BatchMatMulOptions", adjX=turn_x, adjY=turn_y)  # noqa: E501  # fmt: skip


def resize(d: Draw) -> None:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR to twice the size."""
    shape = d.image(3_000)
    if d.dtype == "int16":
        return
    size = (2 * shape[1], 2 * shape[2])
    name, options = d.pick(("RESIZE_BILINEAR", "ResizeBilinearOptions"), ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"))  # noqa: E501  # fmt: skip
    d.op(name, [d.given(shape), d.constant(size)], [d.result((1, *size, shape[3]))], options)


def pack(d: Draw) -> None:
    """PACK and UNPACK."""
    shape, parts = (d.between(1, 30), d.between(1, 60)), d.between(2, 6)
    if d.dtype == "int16":
        return
    axis = d.pick(0, 1)
    whole = (*shape[:axis], parts, *shape[axis:])
    if d.rng.random() < 0.5:
        inputs = [d.given(shape) for _ in range(parts)]
        d.op("PACK", inputs, [d.result(whole)], "PackOptions", valuesCount=parts, axis=axis)
    else:
        outputs = [d.result(shape) for _ in range(parts)]
        d.op("UNPACK", [d.given(whole)], outputs, "UnpackOptions", num=parts, axis=axis)


def index(d: Draw) -> None:
    """What a loop counts with: small int32 arithmetic, comparisons, rows of a table, FILL."""
    d.dtype = "int32"
    n = d.pick(1, 1, d.between(1, 40))
    name = d.pick(
        "ADD", "SUB", "MUL", "MINIMUM", "MAXIMUM", "LESS", "SLICE", "STRIDED_SLICE", "FILL"
    )
    if name == "FILL":
        shape = (1, d.between(1, 9000))
        value = d.graph.constant(d.name(), np.array(3), "int8", scale=0.05)
        d.op(name, [d.constant(shape), value], [d.result(shape, "int8")])
    elif name == "SLICE":
        rows = d.between(2, 40)
        d.op(name, [d.given((rows, n)), d.constant([1, 0]), d.constant([1, n])], [d.result((1, n))])
    elif name == "STRIDED_SLICE":
        places = [d.constant([1, 0]), d.constant([2, n]), d.constant([1, 1])]
        d.op(name, [d.given((4, n)), *places], [d.result((1, n))], "StridedSliceOptions")
    else:
        options = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}.get(name)
        y = d.result((n,), "bool" if name == "LESS" else "int32")
        d.op(name, [d.given((n,)), d.given((1,) if d.rng.random() < 0.3 else (n,))], [y], options)


KINDS: tuple[tuple[Callable[[Draw], None], int], ...] = (
    (conv, 9), (depthwise, 7), (dense, 4), (transpose_conv, 2), (pool, 3), (pair, 4), (single, 3),
    (quantize, 2), (softmax, 1), (mean, 2), (window_copy, 3), (gather, 1), (concatenation, 2),
    (pad, 2), (split, 2), (reshape, 1), (update, 2), (transpose, 1), (matmul, 2), (resize, 1),
    (pack, 1), (index, 3),
)  # fmt: skip


def random_operators(seed: int, count: int = 30, even: bool = False) -> bytes:
    """A model of about `count` operators that share nothing; `even`: all kinds alike, and types."""
    rng = np.random.default_rng(seed)
    draw = Draw(rng)
    weights = np.array([1 if even else w for _, w in KINDS], float)
    types = [0.4, 0.3, 0.3] if even else [0.7, 0.15, 0.15]
    for number in rng.choice(len(KINDS), count, p=weights / weights.sum()):
        draw.dtype = str(rng.choice(["int8", "int16", "float32"], p=types))
        KINDS[int(number)][0](draw)
    draw.graph.outputs(*draw.results)
    return draw.net.finish()


def main() -> None:
    """Write the models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)  # noqa: E501  # fmt: skip
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--even", action="store_true", help="all kinds and types alike")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number in range(options.models):
        seed = options.seed * 1000 + number
        (options.folder / f"operators_{seed}.tflite").write_bytes(
            random_operators(seed, even=options.even)
        )


if __name__ == "__main__":
    main()
