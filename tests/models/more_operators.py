"""More operators for random models: those that move, stretch or sum up along axes.

Not in the usual draw (seeds stay the models that they were): `random_model(kinds=...)` names them.
"""

from __future__ import annotations

import math

import numpy as np

from tests.models.maker import MAX_ELEMENTS
from tests.models.operators import Operators


class MoreOperators(Operators):
    """One method an operator, as in `Operators`."""

    def _image(self, most: int = MAX_ELEMENTS // 4):
        return self.pick(lambda v: len(v.shape) == 4 and math.prod(v.shape) <= most)

    def strided_slice(self) -> bool:
        """STRIDED_SLICE forwards, at times with masks, at times of one index of an axis."""
        x = self.pick(lambda value: 1 <= len(value.shape) <= 4)
        if x is None:
            return False
        begin = [self.integer(0, (n - 1) // 2) if self.chance(0.5) else 0 for n in x.shape]
        end = [self.integer(b + 1, n) for b, n in zip(begin, x.shape, strict=True)]
        strides = [int(self.rng.choice([1, 1, 1, 2, 3])) for _ in x.shape]
        vanish = [len(x.shape) > 2 and self.chance(0.15) for _ in x.shape]
        masks = {"beginMask": 0, "endMask": 0, "shrinkAxisMask": 0}
        shape = []
        for axis, size in enumerate(x.shape):
            if vanish[axis]:
                masks["shrinkAxisMask"] |= 1 << axis
                end[axis], strides[axis] = begin[axis] + 1, 1
                continue
            if self.chance(0.2):
                masks["beginMask"] |= 1 << axis
            if self.chance(0.2):
                masks["endMask"] |= 1 << axis
            first = 0 if masks["beginMask"] >> axis & 1 else begin[axis]
            last = size if masks["endMask"] >> axis & 1 else end[axis]
            shape.append(-(-(last - first) // strides[axis]))
            if self.chance(0.2):
                begin[axis] -= size
        if not shape:
            return False
        out = self.value(tuple(shape), x.mean, x.std, like=x)
        inputs = [x, *map(self.constant, (begin, end, strides))]
        return self.emit("STRIDED_SLICE", inputs, [out], "StridedSliceOptions", **masks)

    def transpose_conv(self) -> bool:
        """TRANSPOSE_CONV with strides of 1 to 3, SAME or VALID."""
        x = self._image()
        if x is None:
            return False
        batch, height, width, channels = x.shape
        kernel = [self.integer(1, 4), self.integer(1, 4)]
        stride = [self.integer(1, min(3, k)) if self.chance(0.9) else 2 for k in kernel]
        padding, filters = self.integer(0, 1), self.integer(1, 5)
        size = [
            n * s if padding == 0 else (n - 1) * s + k
            for n, s, k in zip((height, width), stride, kernel, strict=True)
        ]
        if batch * math.prod(size) * filters > MAX_ELEMENTS:
            return False
        std = self.rng.uniform(0.5, 2.0)
        taps = max(math.prod(kernel) * channels // math.prod(stride), 1)
        weights, bias = self.weights((filters, *kernel, channels), 0, x, taps, std)
        shape = (batch, *size, filters)
        operands = [self.constant(list(shape)), weights, x]
        operands += [bias] if self.chance(0.7) else []
        fields = {"padding": padding, "strideH": stride[0], "strideW": stride[1]}
        out = self.value(shape, 0.0, std)
        return self.emit("TRANSPOSE_CONV", operands, [out], "TransposeConvOptions", **fields)

    def _resize(self, name: str, options: str) -> bool:
        x = self._image()
        if x is None:
            return False
        size = []
        for n in x.shape[1:3]:
            factor = float(self.rng.choice([2, 2, 3, 4, 1.5, 0.5, 1, 0]))
            size.append(max(int(n * factor), 1) if factor else self.integer(1, 2 * n))
        align = self.chance(0.25)
        if align and self.chance(0.7):
            size = [2 * n - 1 for n in x.shape[1:3]]
        if math.prod(size) * x.shape[0] * x.shape[3] > MAX_ELEMENTS:
            return False
        fields = {"alignCorners": align, "halfPixelCenters": not align and self.chance(0.5)}
        out = self.value((x.shape[0], *size, x.shape[3]), x.mean, x.std, like=x)
        return self.emit(name, [x, self.constant(size)], [out], options, **fields)

    def resize_bilinear(self) -> bool:
        """RESIZE_BILINEAR; TFLM has no int16 kernel."""
        if self.dtype == "int16":
            return False
        return self._resize("RESIZE_BILINEAR", "ResizeBilinearOptions")

    def resize_nearest_neighbor(self) -> bool:
        """RESIZE_NEAREST_NEIGHBOR."""
        return self._resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")

    def batch_matmul(self) -> bool:
        """BATCH_MATMUL of a value with itself turned, or with another one that fits."""
        x = self.pick(lambda v: 2 <= len(v.shape) <= 4 and math.prod(v.shape) <= MAX_ELEMENTS // 4)
        if x is None:
            return False
        y = self.pick(
            lambda v: (
                v.shape[:-2] == x.shape[:-2]
                and len(v.shape) == len(x.shape)
                and v.shape[-1] == x.shape[-1]
            )
        )
        turned = self.chance(0.3)
        y = y or x
        rows, inner, columns = x.shape[-2], x.shape[-1], y.shape[-2]
        if turned:
            if y.shape[-2] != x.shape[-2]:
                return False
            rows, inner, columns = x.shape[-1], x.shape[-2], y.shape[-1]
        if math.prod(x.shape[:-2]) * rows * columns > MAX_ELEMENTS:
            return False
        std = math.sqrt(inner) * (x.std + abs(x.mean)) * (y.std + abs(y.mean))
        out = self.value((*x.shape[:-2], rows, columns), 0.0, std)
        fields = {"adjX": turned, "adjY": not turned, "asymmetricQuantizeInputs": False}
        return self.emit("BATCH_MATMUL", [x, y], [out], "BatchMatMulOptions", **fields)

    def sum(self) -> bool:
        """SUM or MEAN over any axes; LiteRT's SUM of int16 is never twice the same."""
        x = self.pick(lambda value: 2 <= len(value.shape) <= 4)
        if x is None:
            return False
        count = self.integer(1, len(x.shape) - 1)
        axes = sorted(int(a) for a in self.rng.choice(len(x.shape), count, replace=False))
        keep, name = (
            self.chance(0.5),
            "MEAN" if self.dtype == "int16" or self.chance(0.4) else "SUM",
        )
        left = [1 if a in axes else n for a, n in enumerate(x.shape) if keep or a not in axes]
        many = math.prod(x.shape[a] for a in axes)
        grow = 1 / math.sqrt(many) if name == "MEAN" else math.sqrt(many)
        mean = x.mean if name == "MEAN" else x.mean * many
        out = self.value(tuple(left), mean, abs(mean) / 4 + x.std * grow)
        written = [a - len(x.shape) if self.chance(0.3) else a for a in axes]
        constant = self.constant(np.array(written, np.int32))
        return self.emit(name, [x, constant], [out], "ReducerOptions", keepDims=keep)
