"""The operators random models are made of, with what both runtimes demand of each.

Equal scales where kernels do not rescale, fixed scales where they insist, constant shapes, SAME or
VALID padding, few inputs to CONCATENATION. Knows no weights of the draw: see `generator`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.models.maker import MAX_ELEMENTS, Maker, Value


class Operators(Maker):
    """One method an operator: it appends the operator, or declines with False."""

    def _dilation(self, padding: int, stride: list[int]) -> list[int]:
        """Of a convolution with such a window: 1 mostly."""
        if stride == [1, 1] and padding == 0 and self.chance(0.3):
            return [self.integer(1, 2), self.integer(1, 2)]
        return [1, 1]

    def conv_2d(self) -> bool:
        """CONV_2D: stride above kernel, dilation and groups included."""
        x = self.pick(lambda value: len(value.shape) == 4)
        if x is None:
            return False
        batch, _, _, channels = x.shape
        padding, kernel, stride, size = self.window(x, 5)
        dilation = self._dilation(padding, stride)
        groups = 2 if channels % 2 == 0 and self.dtype == "int8" and self.chance(0.15) else 1
        filters = groups * self.integer(1, 8 // groups)
        if batch * math.prod(size) * filters > MAX_ELEMENTS:
            return False
        depth = channels // groups
        std = self.rng.uniform(0.5, 2.0)
        shape = (filters, *kernel, depth)
        constants = self.weights(shape, 0, x, math.prod(kernel) * depth, std)
        out, activation = self.activated((batch, *size, filters), std)
        options = self._strides(padding, stride, dilation, activation)
        return self.emit("CONV_2D", [x, *constants], [out], "Conv2DOptions", **options)

    def depthwise_conv_2d(self) -> bool:
        """DEPTHWISE_CONV_2D with a depth multiplier of 1 to 3."""
        x = self.pick(lambda value: len(value.shape) == 4)
        if x is None:
            return False
        batch, _, _, channels = x.shape
        padding, kernel, stride, size = self.window(x, 5)
        dilation = self._dilation(padding, stride)
        multiplier = int(self.rng.choice([1, 1, 1, 2, 3]))
        filters = channels * multiplier
        if batch * math.prod(size) * filters > MAX_ELEMENTS or filters > 24:
            return False
        std = self.rng.uniform(0.5, 2.0)
        constants = self.weights((1, *kernel, filters), 3, x, math.prod(kernel), std)
        out, activation = self.activated((batch, *size, filters), std)
        options = self._strides(padding, stride, dilation, activation)
        options["depthMultiplier"] = multiplier
        name = "DEPTHWISE_CONV_2D"
        return self.emit(name, [x, *constants], [out], "DepthwiseConv2DOptions", **options)

    @staticmethod
    def _strides(
        padding: int, stride: list[int], dilation: list[int], activation: int
    ) -> dict[str, int]:
        return {
            "padding": padding,
            "strideH": stride[0],
            "strideW": stride[1],
            "dilationHFactor": dilation[0],
            "dilationWFactor": dilation[1],
            "fusedActivationFunction": activation,
        }

    def fully_connected(self) -> bool:
        """FULLY_CONNECTED over all axes but the first."""
        x = self.pick(lambda value: len(value.shape) >= 2 and math.prod(value.shape[1:]) <= 600)
        if x is None:
            return False
        depth, units = math.prod(x.shape[1:]), self.integer(1, 12)
        std = self.rng.uniform(0.5, 2.0)
        constants = self.weights((units, depth), 0, x, depth, std)
        out, activation = self.activated((x.shape[0], units), std)
        options = {"fusedActivationFunction": activation}
        return self.emit(
            "FULLY_CONNECTED", [x, *constants], [out], "FullyConnectedOptions", **options
        )

    def _pool(self, name: str) -> bool:
        x = self.pick(lambda value: len(value.shape) == 4)
        if x is None:
            return False
        padding, kernel, stride, size = self.window(x, 4)
        shrink = 1 / math.prod(kernel) ** 0.25
        shape = (x.shape[0], *size, x.shape[3])
        # Pooling kernels do not rescale.
        out = self.value(shape, x.mean, x.std * shrink, like=x)
        options = {
            "padding": padding,
            "strideH": stride[0],
            "strideW": stride[1],
            "filterHeight": kernel[0],
            "filterWidth": kernel[1],
        }
        return self.emit(name, [x], [out], "Pool2DOptions", **options)

    def average_pool_2d(self) -> bool:
        """AVERAGE_POOL_2D."""
        return self._pool("AVERAGE_POOL_2D")

    def max_pool_2d(self) -> bool:
        """MAX_POOL_2D."""
        return self._pool("MAX_POOL_2D")

    def _binary(self, name: str, options: str, std: Callable[[Value, Value], float]) -> bool:
        x = self.pick()
        assert x is not None
        y = self.pick(lambda value: value.shape == x.shape and value is not x)
        # x - x is always 0, and would show no corruption.
        if y is None and (name == "SUB" or not self.chance(0.2)):
            return False
        y = y or x
        out, activation = self.activated(x.shape, std(x, y))
        fields: dict[str, Any] = {"fusedActivationFunction": activation}
        if name != "MUL":
            fields["potScaleInt16"] = False
        return self.emit(name, [x, y], [out], options, **fields)

    def add(self) -> bool:
        """ADD of two values of one shape, at times the same value twice."""
        return self._binary("ADD", "AddOptions", lambda x, y: x.std + y.std)

    def sub(self) -> bool:
        """SUB of two values of one shape."""
        return self._binary("SUB", "SubOptions", lambda x, y: x.std + y.std)

    def mul(self) -> bool:
        """MUL of two values of one shape."""

        def std(x: Value, y: Value) -> float:
            return math.sqrt((x.std**2 + x.mean**2) * (y.std**2 + y.mean**2))

        return self._binary("MUL", "MulOptions", std)

    def _unary(self, name: str, mean: float, std: float, options: str | None = None) -> bool:
        x = self.pick()
        assert x is not None
        grow = x.std + abs(x.mean)
        out = self.value(x.shape, mean * grow, std * grow)
        fields = {"alpha": 0.125} if options else {}
        return self.emit(name, [x], [out], options, **fields)

    def relu(self) -> bool:
        """RELU that rescales."""
        return self._unary("RELU", 0.4, 0.6)

    def relu6(self) -> bool:
        """RELU6 at one scale: TFLM's kernel clamps but does not rescale, LiteRT's does."""
        x = self.pick()
        assert x is not None
        return self.emit("RELU6", [x], [self.value(x.shape, x.mean, x.std, like=x)])

    def hard_swish(self) -> bool:
        """HARD_SWISH."""
        return self._unary("HARD_SWISH", 0.2, 0.6)

    def leaky_relu(self) -> bool:
        """LEAKY_RELU."""
        return self._unary("LEAKY_RELU", 0.3, 0.7, "LeakyReluOptions")

    def logistic(self) -> bool:
        """LOGISTIC; kernels demand the scale."""
        x = self.pick()
        assert x is not None
        scale, zero = (1 / 256, -128) if self.dtype == "int8" else (1 / 32768, 0)
        out = self.fixed(x.shape, 0.5, max(0.02, min(0.3, x.std / 4)), scale, zero)
        return self.emit("LOGISTIC", [x], [out])

    def tanh(self) -> bool:
        """TANH; kernels demand the scale."""
        x = self.pick()
        assert x is not None
        scale = 1 / 128 if self.dtype == "int8" else 1 / 32768
        out = self.fixed(x.shape, 0.0, max(0.02, min(0.7, x.std)), scale, 0)
        return self.emit("TANH", [x], [out])

    def softmax(self) -> bool:
        """SOFTMAX over the last axis."""
        x = self.pick(lambda value: 2 <= len(value.shape) <= 4 and value.shape[-1] > 1)
        if x is None:
            return False
        scale, zero = (1 / 256, -128) if self.dtype == "int8" else (1 / 32768, 0)
        out = self.fixed(x.shape, 1 / x.shape[-1], 0.6 / x.shape[-1], scale, zero)
        beta = self.rng.uniform(0.5, 1.5)
        return self.emit("SOFTMAX", [x], [out], "SoftmaxOptions", beta=beta)

    def quantize(self) -> bool:
        """QUANTIZE from one scale to another."""
        x = self.pick()
        assert x is not None
        return self.emit("QUANTIZE", [x], [self.value(x.shape, x.mean, x.std)], "QuantizeOptions")

    def mean(self) -> bool:
        """MEAN over height and width."""
        x = self.pick(lambda value: len(value.shape) == 4 and math.prod(value.shape[1:3]) > 1)
        if x is None:
            return False
        keep = self.chance(0.5)
        batch, height, width, channels = x.shape
        shape = (batch, 1, 1, channels) if keep else (batch, channels)
        out = self.value(shape, x.mean, x.std / math.sqrt(height * width) ** 0.5)
        return self.emit("MEAN", [x, self.constant([1, 2])], [out], "ReducerOptions", keepDims=keep)

    def pad(self) -> bool:
        """PAD around height and width, sometimes channels."""
        x = self.pick(
            lambda value: len(value.shape) == 4 and math.prod(value.shape) < MAX_ELEMENTS // 2
        )
        if x is None:
            return False
        most = np.array([0, 2, 2, self.integer(0, 1)])
        pads = self.rng.integers(0, most[:, None] + 1, (4, 2))
        shape = tuple(int(n) for n in np.array(x.shape) + pads.sum(axis=1))
        out = self.value(shape, x.mean, x.std, like=x)
        return self.emit("PAD", [x, self.constant(pads)], [out], "PadOptions")

    def reshape(self) -> bool:
        """RESHAPE that moves factors between axes, to rank 2 or 4."""
        x = self.pick()
        assert x is not None
        rest = math.prod(x.shape)
        shape = []
        for _ in range(self.integer(1, 3)):
            factors = [n for n in range(1, min(rest, 12) + 1) if rest % n == 0]
            shape.append(int(self.rng.choice(factors)))
            rest //= shape[-1]
        shape = tuple([*shape, rest] if self.chance(0.5) else [rest, *shape])
        out = self.value(shape, x.mean, x.std, like=x)
        constant = self.constant(shape)
        return self.emit("RESHAPE", [x, constant], [out], "ReshapeOptions", newShape=list(shape))

    def squeeze(self) -> bool:
        """SQUEEZE of one axis of length 1."""
        x = self.pick(lambda value: len(value.shape) > 2 and 1 in value.shape)
        if x is None:
            return False
        axis = int(self.rng.choice([i for i, n in enumerate(x.shape) if n == 1]))
        out = self.value((*x.shape[:axis], *x.shape[axis + 1 :]), x.mean, x.std, like=x)
        return self.emit("SQUEEZE", [x], [out], "SqueezeOptions", squeezeDims=[axis])

    def expand_dims(self) -> bool:
        """EXPAND_DIMS, up to rank 4."""
        x = self.pick(lambda value: len(value.shape) < 4)
        if x is None:
            return False
        axis = self.integer(0, len(x.shape))
        out = self.value((*x.shape[:axis], 1, *x.shape[axis:]), x.mean, x.std, like=x)
        return self.emit("EXPAND_DIMS", [x, self.constant(axis)], [out], "ExpandDimsOptions")

    def transpose(self) -> bool:
        """TRANSPOSE by a random permutation."""
        x = self.pick(lambda value: 2 <= len(value.shape) <= 4)
        if x is None:
            return False
        order = self.rng.permutation(len(x.shape))
        out = self.value(tuple(x.shape[i] for i in order), x.mean, x.std, like=x)
        return self.emit("TRANSPOSE", [x, self.constant(order)], [out], "TransposeOptions")

    def slice(self) -> bool:
        """SLICE of a random box."""
        x = self.pick()
        assert x is not None
        begin = [self.integer(0, (n - 1) // 2) if self.chance(0.6) else 0 for n in x.shape]
        size = [
            self.integer(max(1, (n - b) // 2), n - b) for n, b in zip(x.shape, begin, strict=True)
        ]
        out = self.value(tuple(size), x.mean, x.std, like=x)
        inputs = [x, self.constant(begin), self.constant(size)]
        return self.emit("SLICE", inputs, [out], "SliceOptions")

    def _parts(self, x: Value, axis: int, sizes: list[int]) -> list[Value]:
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
        return [self.value(shape, x.mean, x.std, like=x) for shape in shapes]

    def split(self) -> bool:
        """SPLIT into equal parts."""
        x = self.pick(lambda value: any(n % 2 == 0 or n % 3 == 0 for n in value.shape))
        if x is None:
            return False
        cuts = [(axis, k) for axis, n in enumerate(x.shape) for k in (2, 3) if n % k == 0]
        axis, count = cuts[self.integer(0, len(cuts) - 1)]
        outs = self._parts(x, axis, [x.shape[axis] // count] * count)
        inputs = [self.constant(axis), x]
        return self.emit("SPLIT", inputs, outs, "SplitOptions", numSplits=count)

    def split_v(self) -> bool:
        """SPLIT_V into unequal parts."""
        x = self.pick(lambda value: max(value.shape) > 1)
        if x is None:
            return False
        axis = int(self.rng.choice([i for i, n in enumerate(x.shape) if n > 1]))
        first = self.integer(1, x.shape[axis] - 1)
        sizes = [first, x.shape[axis] - first]
        outs = self._parts(x, axis, sizes)
        inputs = [x, self.constant(sizes), self.constant(axis)]
        return self.emit("SPLIT_V", inputs, outs, "SplitVOptions", numSplits=2)

    def _companions(self, x: Value, fits: Callable[[Value], bool], most: int) -> list[Value]:
        """Draw values to join with `x`, all brought to one scale."""
        group = [x]
        for _ in range(self.integer(1, most - 1)):
            other = self.pick(fits)
            group.append(other if other is not None else x)
        if self.dtype == "float32":
            return group
        target = max(group, key=lambda value: value.scale)
        joined = []
        for item in group:
            if (item.scale, item.zero) != (target.scale, target.zero):
                out = self.value(item.shape, item.mean, item.std, like=target)
                self.emit("QUANTIZE", [item], [out], "QuantizeOptions")
                item = out
            joined.append(item)
        return joined

    def concatenation(self) -> bool:
        """CONCATENATION on any axis, outermost and innermost included."""
        x = self.pick(lambda value: math.prod(value.shape) < MAX_ELEMENTS // 4)
        if x is None:
            return False
        axis = self.integer(0, len(x.shape) - 1)

        def fits(value: Value) -> bool:
            if len(value.shape) != len(x.shape) or math.prod(value.shape) > MAX_ELEMENTS // 4:
                return False
            return all(value.shape[i] == n for i, n in enumerate(x.shape) if i != axis)

        group = self._companions(x, fits, 4)
        length = sum(value.shape[axis] for value in group)
        shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
        out = self.value(shape, x.mean, max(v.std for v in group), like=group[0])
        written = axis if self.chance(0.7) else axis - len(shape)
        return self.emit("CONCATENATION", [*group], [out], "ConcatenationOptions", axis=written)

    def pack(self) -> bool:
        """PACK along a new axis, up to rank 4."""
        x = self.pick(
            lambda value: len(value.shape) < 4 and math.prod(value.shape) < MAX_ELEMENTS // 3
        )
        if x is None:
            return False
        group = self._companions(x, lambda value: value.shape == x.shape, 3)
        axis = self.integer(0, len(x.shape))
        shape = (*x.shape[:axis], len(group), *x.shape[axis:])
        out = self.value(shape, x.mean, max(v.std for v in group), like=group[0])
        fields = {"valuesCount": len(group), "axis": axis}
        return self.emit("PACK", [*group], [out], "PackOptions", **fields)

    def unpack(self) -> bool:
        """UNPACK of a short axis."""
        x = self.pick(lambda value: len(value.shape) > 2 and min(value.shape) <= 4)
        if x is None:
            return False
        axis = int(self.rng.choice([i for i, n in enumerate(x.shape) if n <= 4]))
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        outs = [self.value(shape, x.mean, x.std, like=x) for _ in range(x.shape[axis])]
        return self.emit("UNPACK", [x], outs, "UnpackOptions", num=x.shape[axis], axis=axis)
