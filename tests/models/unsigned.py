"""Small networks as the converter writes them for `inference_input_type=uint8`: int8 inside, with a
QUANTIZE from uint8 behind the input, and one to uint8 before the output if that is uint8 too.

    image uint8 --QUANTIZE--> int8 -- network -- int8 --QUANTIZE--> scores uint8
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.models.build import Net

SAME, VALID = 0, 1
NONE, RELU = 0, 1
SCALE = 0.05


class Network:
    """A network under construction, on one value after the other."""

    def __init__(self, shape: tuple[int, ...], dtype: str = "uint8", seed: int = 7) -> None:
        self.net, self.rng = Net("uint8 ends"), np.random.default_rng(seed)
        self.graph, self.shapes = self.net.graph(), dict[int, tuple[int, ...]]()
        zero = 128 if dtype == "uint8" else 0
        self.given = self.graph.input("image", shape, dtype, scale=SCALE, zero=zero)
        self.shapes[self.given] = shape
        self.x = self.given if dtype == "int8" else self.value(shape, "QUANTIZE", [self.given])

    def value(
        self, shape: tuple[int, ...], kind: str, inputs: list[int], options: str | None = None,
        **fields: object,
    ) -> int:  # fmt: skip
        """An operator with its int8 result."""
        made = self.graph.tensor(f"{kind.lower()}{len(self.shapes)}", shape, "int8", scale=SCALE)
        self.graph.op(kind, inputs, [made], options, **fields)
        self.shapes[made] = shape
        return made

    def _filter(self, shape: tuple[int, ...], axis: int) -> list[int]:
        terms = int(np.prod(shape)) // shape[axis] * (shape[axis] if axis == 3 else 1)
        terms = terms // shape[axis] if axis == 3 else terms
        scales = np.full(shape[axis], 0.8 / (73 * max(terms, 1) ** 0.5), np.float32)
        values = self.rng.integers(-127, 128, shape)
        bias = self.rng.integers(-200, 200, shape[axis])
        tag = len(self.graph.table.tensors)
        return [
            self.graph.constant(f"filter{tag}", values, "int8", scale=scales, axis=axis),
            self.graph.constant(f"bias{tag}", bias, "int32", scale=scales * SCALE),
        ]

    def conv(self, channels: int, kernel: int = 1, stride: int = 1, x: int | None = None) -> int:
        """A convolution with a fused RELU."""
        x = self.x if x is None else x
        _, rows, columns, depth = self.shapes[x]
        shape = (1, -(-rows // stride), -(-columns // stride), channels)
        fields = {"strideH": stride, "strideW": stride, "fusedActivationFunction": RELU}
        weights = self._filter((channels, kernel, kernel, depth), 0)
        self.x = self.value(shape, "CONV_2D", [x, *weights], "Conv2DOptions", padding=SAME,
                            dilationHFactor=1, dilationWFactor=1, **fields)  # fmt: skip
        return self.x

    def depthwise(self, kernel: int = 3, stride: int = 1) -> int:
        """A depthwise convolution with a fused RELU."""
        _, rows, columns, depth = self.shapes[self.x]
        shape = (1, -(-rows // stride), -(-columns // stride), depth)
        fields = {"strideH": stride, "strideW": stride, "fusedActivationFunction": RELU}
        weights = self._filter((1, kernel, kernel, depth), 3)
        self.x = self.value(shape, "DEPTHWISE_CONV_2D", [self.x, *weights],
                            "DepthwiseConv2DOptions", padding=SAME, depthMultiplier=1,
                            dilationHFactor=1, dilationWFactor=1, **fields)  # fmt: skip
        return self.x

    def pool(self, kind: str = "MAX_POOL_2D", size: int = 2) -> int:
        """A pool whose windows do not overlap."""
        _, rows, columns, depth = self.shapes[self.x]
        fields = {"strideH": size, "strideW": size, "filterHeight": size, "filterWidth": size}
        shape = (1, rows // size, columns // size, depth)
        self.x = self.value(shape, kind, [self.x], "Pool2DOptions", padding=VALID, **fields)
        return self.x

    def add(self, a: int, b: int) -> int:
        """A sum."""
        self.x = self.value(self.shapes[a], "ADD", [a, b], "AddOptions")
        return self.x

    def joined(self, *parts: int) -> int:
        """Channels of several, one behind the other."""
        shape = self.shapes[parts[0]]
        depth = sum(self.shapes[p][3] for p in parts)
        self.x = self.value((*shape[:3], depth), "CONCATENATION", list(parts),
                            "ConcatenationOptions", axis=3)  # fmt: skip
        return self.x

    def larger(self) -> int:
        """Twice as many rows and columns."""
        _, rows, columns, depth = self.shapes[self.x]
        size = self.graph.constant(f"size{self.x}", [2 * rows, 2 * columns])
        self.x = self.value((1, 2 * rows, 2 * columns, depth), "RESIZE_NEAREST_NEIGHBOR",
                            [self.x, size], "ResizeNearestNeighborOptions")  # fmt: skip
        return self.x

    def scores(self, classes: int = 4) -> None:
        """The mean of every channel, and a dense layer."""
        depth = self.shapes[self.x][3]
        axes = self.graph.constant("axes", [1, 2])
        mean = self.value((1, depth), "MEAN", [self.x, axes], "ReducerOptions")
        weights = self._filter((classes, depth), 0)
        scale = np.full(1, 0.02, np.float32)
        for i, factor in ((0, 1.0), (1, SCALE)):
            table = self.graph.table.tensors[weights[i]].quantization
            table.scale, table.zeroPoint = scale * factor, np.zeros(1, np.int64)
        self.x = self.value((1, classes), "FULLY_CONNECTED", [mean, *weights],
                            "FullyConnectedOptions")  # fmt: skip

    def finish(self, dtype: str = "int8") -> bytes:
        """The file; its output of this type."""
        if dtype == "uint8":
            shape = self.shapes[self.x]
            left = self.graph.tensor("left", shape, "uint8", scale=SCALE, zero=128)
            self.graph.op("QUANTIZE", [self.x], [left])
            self.x = left
        self.graph.outputs(self.x)
        return self.net.finish()


def mobilenet(dtype: str = "uint8") -> bytes:
    """Depthwise separable blocks on a fat first layer."""
    net = Network((1, 48, 48, 3), dtype)
    net.conv(12, 3, 2)
    for channels, stride in ((24, 1), (32, 2), (32, 1), (48, 2)):
        net.depthwise(3, stride)
        net.conv(channels)
    net.scores()
    return net.finish()


def mobilenet_v2(dtype: str = "uint8") -> bytes:
    """Inverted residuals, uint8 at both ends."""
    net = Network((1, 40, 40, 3), dtype)
    net.conv(8, 3, 2)
    for channels, stride in ((8, 1), (12, 2), (12, 1)):
        before, depth = net.x, net.shapes[net.x][3]
        net.conv(6 * depth)
        net.depthwise(3, stride)
        net.conv(channels)
        if stride == 1 and depth == channels:
            net.add(before, net.x)
    net.scores()
    return net.finish(dtype)


def resnet(dtype: str = "uint8") -> bytes:
    """Residual blocks at full size."""
    net = Network((1, 32, 32, 3), dtype)
    net.conv(16, 3)
    for channels, stride in ((16, 1), (24, 2)):
        before = net.x
        net.conv(channels, 3, stride)
        net.conv(channels, 3)
        after = net.x
        net.add(before if stride == 1 else net.conv(channels, 1, stride, before), after)
    net.scores()
    return net.finish()


def ds_cnn(dtype: str = "uint8") -> bytes:
    """Keyword spotting: a spectrogram of one channel."""
    net = Network((1, 49, 10, 1), dtype)
    net.conv(32, 5, 1)
    net.pool("AVERAGE_POOL_2D")
    for _ in range(2):
        net.depthwise()
        net.conv(32)
    net.scores()
    return net.finish(dtype)


def unet(dtype: str = "uint8") -> bytes:
    """Down, up again, and joined with what was there before; an image comes out."""
    net = Network((1, 32, 32, 3), dtype)
    first = net.conv(12, 3)
    net.pool()
    net.conv(16, 3)
    net.pool()
    net.conv(24, 3)
    net.larger()
    net.conv(16)
    net.larger()
    net.joined(first, net.x)
    net.conv(8, 3)
    net.conv(2)
    return net.finish(dtype)


def inception(dtype: str = "uint8") -> bytes:
    """Branches that are joined, behind a stem and a pool."""
    net = Network((1, 40, 40, 3), dtype)
    net.conv(16, 3)
    stem = net.pool()
    branches = [net.conv(8, 1, 1, stem)]
    net.conv(8, 1, 1, stem)
    branches.append(net.conv(12, 3))
    net.joined(*branches)
    net.conv(16, 1)
    net.scores()
    return net.finish()


def plain(dtype: str = "uint8") -> bytes:
    """Convolutions and pools, as a first course teaches them."""
    net = Network((1, 36, 36, 3), dtype)
    for channels in (12, 16, 24):
        net.conv(channels, 3)
        net.pool()
    net.scores()
    return net.finish()


NETWORKS: dict[str, Callable[[str], bytes]] = {
    make.__name__: make
    for make in (mobilenet, mobilenet_v2, resnet, ds_cnn, unet, inception, plain)
}
"""By name; asked for with "int8" they are the same networks without the QUANTIZEs."""
