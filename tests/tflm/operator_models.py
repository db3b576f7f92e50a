"""One small model for every operator that TFLM registers, in the types its kernel takes.

They are for sizes, not for values: constants are zeros or small numbers.
"""

from collections.abc import Callable

import numpy as np

from tests.models.build import Graph, Net

FLOAT, INT8, INT16, INT32, BOOL = "float32", "int8", "int16", "int32", "bool"
IMAGE = (1, 6, 8, 4)
Build = Callable[[Graph], list[int]]

MODELS: dict[str, Callable[[], bytes]] = {}
"""Every model by name."""


def register(name: str, build: Build, models: dict[str, Callable[[], bytes]] = MODELS) -> None:
    def make() -> bytes:
        net = Net("one operator")
        graph = net.graph()
        graph.outputs(*build(graph))
        return net.finish()

    models[name] = make


def value(graph: Graph, kind: str, shape: tuple[int, ...], *, given: bool = False) -> int:
    name = f"value{len(graph.table.tensors)}"
    scale = {"scale": 0.0625} if kind in (INT8, INT16) else {}
    make = graph.input if given else graph.tensor
    return make(name, shape, kind, **scale)


def _operator(
    name: str,
    kinds: list[str],
    shapes: list[tuple[int, ...]],
    result: tuple[int, ...],
    options: str | None = None,
    constants: tuple[object, ...] = (),
    to: str | None = None,
    tag: str = "",
    **fields: object,
) -> None:
    """Register `name` for each element type: inputs of `shapes`, then int32 `constants`."""
    for kind in kinds:

        def build(graph: Graph, kind: str = kind) -> list[int]:
            inputs = [value(graph, kind, shape, given=True) for shape in shapes]
            inputs += [graph.constant(f"constant{i}", v) for i, v in enumerate(constants)]
            output = value(graph, to or kind, result)
            graph.op(name, inputs, [output], options, **fields)
            return [output]

        register(f"{name.lower()}{tag}_{kind}", build)


def _elementwise() -> None:
    for name in ("CEIL", "COS", "EXP", "FLOOR", "LOG", "ROUND", "SIN", "SQRT", "SQUARE", "NEG"):
        _operator(name, [FLOAT], [IMAGE], IMAGE)
    _operator("ABS", [FLOAT, INT8, INT16], [IMAGE], IMAGE)
    _operator("RSQRT", [FLOAT, INT8], [IMAGE], IMAGE)
    for name in ("ELU", "LOGISTIC", "TANH", "RELU", "RELU6", "ZEROS_LIKE", "HARD_SWISH"):
        integers = [] if name in ("LOGISTIC", "ZEROS_LIKE") else [INT8]
        _operator(name, [FLOAT, *integers], [IMAGE], IMAGE)
    register("logistic_int8", _logistic)
    _operator("LEAKY_RELU", [FLOAT, INT8, INT16], [IMAGE], IMAGE, "LeakyReluOptions", alpha=0.1)
    _operator("SOFTMAX", [FLOAT], [(1, 12)], (1, 12), "SoftmaxOptions", beta=1.0)
    _operator("LOG_SOFTMAX", [FLOAT], [(1, 12)], (1, 12))
    _operator("L2_NORMALIZATION", [FLOAT], [(1, 12)], (1, 12), "L2NormOptions")
    _operator("CAST", [FLOAT], [IMAGE], IMAGE, "CastOptions", to=INT8)
    _operator("DEQUANTIZE", [INT8, INT16], [IMAGE], IMAGE, to=FLOAT)
    _operator("QUANTIZE", [FLOAT], [IMAGE], IMAGE, to=INT8)
    _operator("LOGICAL_NOT", [BOOL], [IMAGE], IMAGE)
    _operator("SHAPE", [INT8], [IMAGE], (4,), "ShapeOptions", to=INT32, outType=2)


def _logistic(graph: Graph) -> list[int]:
    x = value(graph, INT8, IMAGE, given=True)
    output = graph.tensor("y", IMAGE, INT8, scale=1 / 256, zero=-128)
    graph.op("LOGISTIC", [x], [output])
    return [output]


def _pairs() -> None:
    two = [IMAGE, IMAGE]
    for name, options in (("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")):
        _operator(name, [FLOAT, INT8, INT16], two, IMAGE, options)
    _operator("DIV", [FLOAT, INT8], two, IMAGE, "DivOptions")
    for name in ("FLOOR_DIV", "FLOOR_MOD"):
        _operator(name, [FLOAT], two, IMAGE)
    for name in ("MAXIMUM", "MINIMUM"):
        _operator(name, [FLOAT, INT8], two, IMAGE)
    _operator("SQUARED_DIFFERENCE", [FLOAT, INT8], two, IMAGE)
    _operator("PRELU", [FLOAT], [IMAGE, (1, 1, 4)], IMAGE)
    for name in ("LOGICAL_AND", "LOGICAL_OR"):
        _operator(name, [BOOL], two, IMAGE)
    for name in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"):
        _operator(name, [FLOAT, INT8], two, IMAGE, to=BOOL)
    _operator("ADD_N", [FLOAT, INT8], [IMAGE] * 3, IMAGE)


def _movement() -> None:
    kinds = [FLOAT, INT8]
    space = {"constants": ([2, 2], [[0, 0], [0, 0]])}
    _operator("SPACE_TO_BATCH_ND", kinds, [IMAGE], (4, 3, 4, 4), **space)
    _operator("BATCH_TO_SPACE_ND", kinds, [(4, 3, 4, 4)], IMAGE, **space)
    depth = "DepthToSpaceOptions"
    _operator("DEPTH_TO_SPACE", kinds, [IMAGE], (1, 12, 16, 1), depth, blockSize=2)
    _operator("SPACE_TO_DEPTH", kinds, [IMAGE], (1, 3, 4, 16), "SpaceToDepthOptions", blockSize=2)
    _operator("BROADCAST_TO", kinds, [(1, 1, 1, 4)], IMAGE, constants=(IMAGE,))
    _operator("FILL", [INT8], [], (3, 4), constants=([3, 4], 7), to=INT32)
    _operator("GATHER", kinds, [IMAGE], (1, 2, 8, 4), "GatherOptions", ([0, 3],), axis=1)
    _operator("GATHER_ND", kinds, [(5, 4)], (2, 4), constants=([[0], [3]],))
    _operator("MIRROR_PAD", kinds, [(4, 4)], (6, 6), "MirrorPadOptions", ([[1, 1], [1, 1]],))
    pads = ([[0, 0], [1, 1], [1, 1], [0, 0]],)
    _operator("PAD", kinds, [IMAGE], (1, 8, 10, 4), constants=pads)
    for name, options in (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    ):
        _operator(name, kinds, [IMAGE], (1, 12, 16, 4), options, ([12, 16],))
    _operator("REVERSE_V2", kinds, [IMAGE], IMAGE, constants=([1],))
    _operator("TRANSPOSE", kinds, [IMAGE], (1, 8, 6, 4), constants=([0, 2, 1, 3],))
    _operator("EXPAND_DIMS", kinds, [(6, 4)], (1, 6, 4), constants=(0,))
    _operator("SQUEEZE", kinds, [IMAGE], IMAGE[1:], "SqueezeOptions", squeezeDims=[0])
    _operator("RESHAPE", kinds, [IMAGE], (1, 192), "ReshapeOptions", ([1, 192],))
    _operator("SLICE", kinds, [IMAGE], (1, 2, 8, 4), constants=([0, 1, 0, 0], [1, 2, 8, 4]))
    strided = ([0, 0, 0, 0], [1, 6, 8, 4], [1, 2, 1, 1])
    _operator("STRIDED_SLICE", kinds, [IMAGE], (1, 3, 8, 4), "StridedSliceOptions", strided)
    _operator("CUMSUM", kinds, [IMAGE], IMAGE, "CumsumOptions", (1,))
    _operator("PACK", kinds, [(4, 4)] * 2, (2, 4, 4), "PackOptions", valuesCount=2, axis=0)
    _operator("CONCATENATION", kinds, [IMAGE] * 3, (1, 18, 8, 4), "ConcatenationOptions", axis=1)
    register("broadcast_args", _broadcast_args)
    register("unpack", _unpack)
    register("split", _split)
    register("split_v", _split_v)
    register("padv2", _padv2)
    register("select_v2", _select_v2)
    register("dynamic_update_slice", _dynamic_update_slice)
    register("embedding_lookup", _embedding_lookup)


def _broadcast_args(graph: Graph) -> list[int]:
    inputs = [graph.input(name, (3,), INT32) for name in "xy"]
    output = graph.tensor("shape", (3,), INT32)
    graph.op("BROADCAST_ARGS", inputs, [output])
    return [output]


def _unpack(graph: Graph) -> list[int]:
    outputs = [value(graph, INT8, (4, 4)) for _ in range(3)]
    x = value(graph, INT8, (3, 4, 4), given=True)
    graph.op("UNPACK", [x], outputs, "UnpackOptions", num=3, axis=0)
    return outputs


def _split(graph: Graph) -> list[int]:
    axis = graph.constant("axis", 1)
    x = value(graph, INT8, IMAGE, given=True)
    outputs = [value(graph, INT8, (1, 3, 8, 4)) for _ in range(2)]
    graph.op("SPLIT", [axis, x], outputs, "SplitOptions", numSplits=2)
    return outputs


def _split_v(graph: Graph) -> list[int]:
    x = value(graph, INT8, IMAGE, given=True)
    sizes, axis = graph.constant("sizes", [2, 4]), graph.constant("axis", 1)
    outputs = [value(graph, INT8, (1, rows, 8, 4)) for rows in (2, 4)]
    graph.op("SPLIT_V", [x, sizes, axis], outputs, "SplitVOptions", numSplits=2)
    return outputs


def _padv2(graph: Graph) -> list[int]:
    x = value(graph, INT8, IMAGE, given=True)
    pads = graph.constant("pads", [[0, 0], [1, 1], [1, 1], [0, 0]])
    fill = graph.constant("fill", np.array([3]), INT8, scale=0.0625)
    output = value(graph, INT8, (1, 8, 10, 4))
    graph.op("PADV2", [x, pads, fill], [output])
    return [output]


def _select_v2(graph: Graph) -> list[int]:
    condition = graph.input("condition", IMAGE, BOOL)
    x, y = (value(graph, INT8, IMAGE, given=True) for _ in range(2))
    output = value(graph, INT8, IMAGE)
    graph.op("SELECT_V2", [condition, x, y], [output])
    return [output]


def _dynamic_update_slice(graph: Graph) -> list[int]:
    x = value(graph, INT8, IMAGE, given=True)
    update = value(graph, INT8, (1, 2, 8, 4), given=True)
    start = graph.input("start", (4,), INT32)
    output = value(graph, INT8, IMAGE)
    graph.op("DYNAMIC_UPDATE_SLICE", [x, update, start], [output])
    return [output]


def _embedding_lookup(graph: Graph) -> list[int]:
    ids = graph.input("ids", (3,), INT32)
    table = graph.constant("table", np.zeros((9, 5)), FLOAT)
    output = graph.tensor("y", (3, 5), FLOAT)
    graph.op("EMBEDDING_LOOKUP", [ids, table], [output])
    return [output]


def _reductions() -> None:
    axes = ([1, 2],)
    for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
        kinds = [FLOAT, INT8, INT16] if name in ("MEAN", "SUM") else [FLOAT, INT8]
        _operator(name, kinds, [IMAGE], (1, 1, 1, 4), "ReducerOptions", axes, keepDims=True)
    _operator("REDUCE_ALL", [BOOL], [IMAGE], (1, 1, 1, 4), "ReducerOptions", axes, keepDims=True)
    for name, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        _operator(name, [FLOAT, INT8], [IMAGE], (1, 6, 8), options, (3,), INT32, outputType=2)
    _operator("L2_POOL_2D", [FLOAT], [IMAGE], (1, 3, 4, 4), "Pool2DOptions", **_pool())
    for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        _operator(
            name, [FLOAT, INT8, INT16], [IMAGE], (1, 3, 4, 4), "Pool2DOptions", **_pool()
        )  # fmt: skip


def _pool() -> dict[str, int]:
    return {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}


def _products() -> None:
    for kind, flags in ((INT8, (False, False)), (INT8, (True, False)), (INT8, (False, True)), (INT16, (False, False)), (FLOAT, (True, True))):  # noqa: E501  # fmt: skip
        register(f"batch_matmul_{kind}_{flags[0]:d}{flags[1]:d}", _batch_matmul(kind, *flags))
    for kind in (INT8, INT16, FLOAT):
        for kernel in ((1, 1), (3, 3), (5, 3)):
            for stride in (1, 2):
                register(
                    f"conv_{kind}_{kernel[0]}x{kernel[1]}_{stride}", _conv(kind, kernel, stride)
                )
                register(
                    f"depthwise_{kind}_{kernel[0]}x{kernel[1]}_{stride}",
                    _depthwise(kind, kernel, stride),
                )
        register(f"transpose_conv_{kind}", _transpose_conv(kind, 4))
        register(f"transpose_conv_deep_{kind}", _transpose_conv(kind, 20))
        register(f"dense_{kind}", _dense(kind, (1, 12), 1))
    register("conv_row", _conv(INT8, (1, 3), 1, (1, 1, 9, 4)))
    register("conv_row_wide", _conv(INT8, (1, 5), 2, (1, 1, 9, 8)))
    register("conv_grouped", _conv(INT8, (3, 3), 1, groups=2))
    register("depthwise_spread", _depthwise(INT8, (3, 3), 1, (1, 6, 8, 1), 8))
    register("dense_channels", _dense(INT8, (1, 12), 7))
    register("dense_rank3", _dense(INT8, (1, 3, 12), 1))
    register("dense_rank3_channels", _dense(INT8, (1, 3, 12), 7))
    register("dense_rank3_odd", _dense(INT8, (1, 3, 11), 1))
    register("softmax_int8", _softmax(INT8, 1 / 256, -128))
    register("softmax_int16", _softmax(INT16, 1 / 32768, 0))
    register("log_softmax_int8", _log_softmax)


def _batch_matmul(kind: str, turn_x: bool, turn_y: bool) -> Build:
    def build(graph: Graph) -> list[int]:
        x = value(graph, kind, (2, 3, 5)[:1] + ((5, 3) if turn_x else (3, 5)), given=True)
        y = value(graph, kind, (2, *((4, 5) if turn_y else (5, 4))), given=True)
        output = value(graph, kind, (2, 3, 4))
        graph.op("BATCH_MATMUL", [x, y], [output], "BatchMatMulOptions", adjX=turn_x, adjY=turn_y)
        return [output]

    return build


def _weights(graph: Graph, kind: str, shape: tuple[int, ...], axis: int, scales: int) -> list[int]:
    """Filter and bias; `scales` quantisation scales for integers."""
    channels = shape[axis]
    if kind == FLOAT:
        return [
            graph.constant("filter", np.zeros(shape), FLOAT),
            graph.constant("bias", np.zeros(channels), FLOAT),
        ]
    scale = np.full(scales, 0.01)
    bias = "int64" if kind == INT16 else INT32
    return [
        graph.constant("filter", np.ones(shape), INT8, scale=scale, axis=axis),
        graph.constant("bias", np.zeros(channels), bias, scale=scale * 0.0625),
    ]


def _conv(
    kind: str,
    kernel: tuple[int, int],
    stride: int,
    shape: tuple[int, ...] = IMAGE,
    groups: int = 1,
) -> Build:
    def build(graph: Graph) -> list[int]:
        x = value(graph, kind, shape, given=True)
        filter_shape = (6, *kernel, shape[3] // groups)
        weights = _weights(graph, kind, filter_shape, 0, 6)
        output = value(graph, kind, (1, -(-shape[1] // stride), -(-shape[2] // stride), 6))
        steps = {"strideH": stride, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1}
        graph.op("CONV_2D", [x, *weights], [output], "Conv2DOptions", **steps)
        return [output]

    return build


def _depthwise(
    kind: str,
    kernel: tuple[int, int],
    stride: int,
    shape: tuple[int, ...] = IMAGE,
    multiplier: int = 1,
) -> Build:
    def build(graph: Graph) -> list[int]:
        x = value(graph, kind, shape, given=True)
        depth = shape[3] * multiplier
        weights = _weights(graph, kind, (1, *kernel, depth), 3, depth)
        output = value(graph, kind, (1, -(-shape[1] // stride), -(-shape[2] // stride), depth))
        steps = {"strideH": stride, "strideW": stride, "dilationHFactor": 1, "dilationWFactor": 1}
        options = {"depthMultiplier": multiplier, **steps}
        graph.op(
            "DEPTHWISE_CONV_2D", [x, *weights], [output], "DepthwiseConv2DOptions", **options
        )  # fmt: skip
        return [output]

    return build


def _transpose_conv(kind: str, depth: int) -> Build:
    def build(graph: Graph) -> list[int]:
        x = value(graph, kind, (1, 3, 4, depth), given=True)
        shape = graph.constant("shape", [1, 6, 8, 5])
        weights, bias = _weights(graph, kind, (5, 3, 3, depth), 0, 5)
        output = value(graph, kind, (1, 6, 8, 5))
        steps = {"strideH": 2, "strideW": 2}
        operands = [shape, weights, x, bias]
        graph.op("TRANSPOSE_CONV", operands, [output], "TransposeConvOptions", version=3, **steps)
        return [output]

    return build


def _dense(kind: str, shape: tuple[int, ...], scales: int) -> Build:
    def build(graph: Graph) -> list[int]:
        x = value(graph, kind, shape, given=True)
        weights = _weights(graph, kind, (7, shape[-1]), 0, scales)
        output = value(graph, kind, (*shape[:-1], 7))
        keep = {"keepNumDims": len(shape) > 2}
        graph.op("FULLY_CONNECTED", [x, *weights], [output], "FullyConnectedOptions", **keep)
        return [output]

    return build


def _softmax(kind: str, scale: float, zero: int) -> Build:
    def build(graph: Graph) -> list[int]:
        x = value(graph, kind, (1, 12), given=True)
        output = graph.tensor("y", (1, 12), kind, scale=scale, zero=zero)
        graph.op("SOFTMAX", [x], [output], "SoftmaxOptions", beta=1.0)
        return [output]

    return build


def _log_softmax(graph: Graph) -> list[int]:
    x = value(graph, INT8, (1, 12), given=True)
    output = graph.tensor("y", (1, 12), INT8, scale=16 / 256, zero=127)
    graph.op("LOG_SOFTMAX", [x], [output])
    return [output]


_elementwise()
_pairs()
_movement()
_reductions()
_products()
