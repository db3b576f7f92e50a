"""Byte-accurate models of kernels: their loops, written out, telling each read and write.

Nothing of the package's arithmetic is used here: `Shape` and the loops stand for themselves.
An event is (is_write, byte): bytes count from the start of the input or of the output tensor.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

Event = tuple[bool, int]


@dataclass(frozen=True)
class Shape:
    """A window in plain numbers; `mult` is Co / Ci of depthwise kernels, `groups` of CONV_2D."""

    kind: str
    h: int
    w: int
    ci: int
    co: int
    kh: int = 1
    kw: int = 1
    sh: int = 1
    sw: int = 1
    dh: int = 1
    dw: int = 1
    same: bool = True
    groups: int = 1
    element: int = 1
    batch: int = 1

    def __str__(self) -> str:
        marks = [f"s{self.sh}{self.sw}" if max(self.sh, self.sw) > 1 else ""]
        marks += [f"d{self.dh}{self.dw}" if max(self.dh, self.dw) > 1 else ""]
        marks += ["" if self.same else "valid", f"g{self.groups}" if self.groups > 1 else ""]
        marks += [f"e{self.element}" if self.element > 1 else "", f"n{self.batch}"]
        size = f"{self.h}x{self.w}x{self.ci}-{self.co}"
        return "-".join([self.kind, f"{self.kh}x{self.kw}", size, *filter(None, marks)])

    def _axis(self, n: int, k: int, s: int, d: int) -> tuple[int, int]:
        """Output size and padding in front."""
        reach = (k - 1) * d + 1
        out = (n + s - 1) // s if self.same else (n + s - reach) // s
        return out, max(0, (out - 1) * s + reach - n) // 2

    @property
    def ho(self) -> int:
        return self._axis(self.h, self.kh, self.sh, self.dh)[0]

    @property
    def wo(self) -> int:
        return self._axis(self.w, self.kw, self.sw, self.dw)[0]

    @property
    def ph(self) -> int:
        return self._axis(self.h, self.kh, self.sh, self.dh)[1]

    @property
    def pw(self) -> int:
        return self._axis(self.w, self.kw, self.sw, self.dw)[1]

    @property
    def bytes_in(self) -> int:
        return self.batch * self.h * self.w * self.ci * self.element

    @property
    def bytes_out(self) -> int:
        return self.batch * self.ho * self.wo * self.co * self.element

    def pixels(self) -> Iterator[tuple[int, int, int]]:
        for b in range(self.batch):
            for y in range(self.ho):
                for x in range(self.wo):
                    yield b, y, x

    def window(self, b: int, y: int, x: int) -> Iterator[int]:
        """Input pixels of an output pixel's window, in the order of the kernel's loops."""
        for ky in range(self.kh):
            for kx in range(self.kw):
                iy, ix = y * self.sh - self.ph + ky * self.dh, x * self.sw - self.pw + kx * self.dw
                if 0 <= iy < self.h and 0 <= ix < self.w:
                    yield (b * self.h + iy) * self.w + ix

    def read(self, pixel: int, channels: range) -> Iterator[Event]:
        for c in channels:
            for e in range(self.element):
                yield False, (pixel * self.ci + c) * self.element + e

    def write(self, pixel: int, channels: range) -> Iterator[Event]:
        for c in channels:
            for e in range(self.element):
                yield True, (pixel * self.co + c) * self.element + e

    def number(self, b: int, y: int, x: int) -> int:
        return (b * self.ho + y) * self.wo + x


def reference(s: Shape) -> Iterator[Event]:
    """reference_ops and reference_integer_ops: Conv, DepthwiseConv, MaxPool, AveragePool."""
    for b, y, x in s.pixels():
        for co in range(s.co):
            for pixel in s.window(b, y, x):
                if s.kind == "conv":
                    width = s.ci // s.groups
                    first = co // (s.co // s.groups) * width
                    yield from s.read(pixel, range(first, first + width))
                else:
                    c = co // (s.co // s.ci)
                    yield from s.read(pixel, range(c, c + 1))
            yield from s.write(s.number(b, y, x), range(co, co + 1))


def columns(s: Shape, size: int) -> Iterator[Event]:
    """arm_convolve_s8, _s16, _s4: `size` windows are copied, then their outputs written; group
    after group of channels."""
    for b in range(s.batch):
        for g in range(s.groups):
            ins = range(g * s.ci // s.groups, (g + 1) * s.ci // s.groups)
            outs = range(g * s.co // s.groups, (g + 1) * s.co // s.groups)
            waiting: list[int] = []
            for y in range(s.ho):
                for x in range(s.wo):
                    for pixel in s.window(b, y, x):
                        yield from s.read(pixel, ins)
                    waiting.append(s.number(b, y, x))
                    if len(waiting) == size:
                        for done in waiting:
                            yield from s.write(done, outs)
                        waiting = []
            for done in waiting:
                yield from s.write(done, outs)


def product(s: Shape, lhs: list[int], dst: list[int]) -> Iterator[Event]:
    """arm_nn_mat_mult_nt_t_s8 without MVE: pairs of output channels outside, pairs of rows of
    `lhs` (input pixels) inside; `dst` are the output pixels."""
    everything = range(s.ci)
    for first in range(0, s.co - 1, 2):
        for i in range(0, len(lhs), 2):
            for pixel in lhs[i : i + 2]:
                yield from s.read(pixel, everything)
            for pixel in dst[i : i + 2]:
                yield from s.write(pixel, range(first, first + 2))
    if s.co % 2:
        for source, target in zip(lhs, dst, strict=True):
            yield from s.read(source, everything)
            yield from s.write(target, range(s.co - 1, s.co))


def product_mve(s: Shape, lhs: list[int], dst: list[int]) -> Iterator[Event]:
    """arm_nn_mat_mult_nt_t_s8 with MVE: four rows by every output channel, then single rows
    whose outputs are stored four at a time."""
    everything, whole = range(s.ci), len(lhs) - len(lhs) % 4
    for i in range(0, whole, 4):
        for co in range(s.co):
            for pixel in lhs[i : i + 4]:
                yield from s.read(pixel, everything)
            for pixel in dst[i : i + 4]:
                yield from s.write(pixel, range(co, co + 1))
    for source, target in zip(lhs[whole:], dst[whole:], strict=True):
        for co in range(s.co):
            yield from s.read(source, everything)
            if co % 4 == 3:
                yield from s.write(target, range(co - 3, co + 1))
        yield from s.write(target, range(s.co - s.co % 4, s.co))


Product = Callable[[Shape, list[int], list[int]], Iterator[Event]]


def pointwise(s: Shape, multiply: Product) -> Iterator[Event]:
    """arm_convolve_1x1_s8_fast (stride 1) and arm_convolve_1x1_s8 (row by row)."""
    if (s.sh, s.sw) == (1, 1):
        everything = list(range(s.batch * s.h * s.w))
        yield from multiply(s, everything, everything)
        return
    for b in range(s.batch):
        for y in range(s.ho):
            lhs = [(b * s.h + y * s.sh) * s.w + x * s.sw for x in range(s.wo)]
            yield from multiply(s, lhs, [s.number(b, y, x) for x in range(s.wo)])


def one_by_n_mve(s: Shape) -> Iterator[Event]:
    """arm_convolve_1_x_n_s8: edges from a copy, the middle straight from the input."""
    total = (s.wo - 1) * s.sw + s.kw - s.w
    left, right = -(-s.pw // s.sw), -(-(s.pw + total % 2) // s.sw)
    if left + right > s.wo:
        yield from columns(s, 4)
        return
    middle = range(left, s.wo - right)
    for pixel in range(min(s.kw, s.w)) if left else ():
        yield from s.read(pixel, range(s.ci))
    for x in range(left):
        yield from s.write(x, range(s.co))
    for i in range(0, len(middle), 4):
        part = middle[i : i + 4]
        for some in [part] if len(part) == 4 else [[x] for x in part]:
            step = 1 if len(some) == 4 else 4
            for co in range(0, s.co, step):
                for x in some:
                    for pixel in s.window(0, 0, x):
                        yield from s.read(pixel, range(s.ci))
                for x in some:
                    yield from s.write(x, range(co, min(co + step, s.co)))
    for x in range(s.wo - right, s.wo):
        for pixel in s.window(0, 0, x):
            yield from s.read(pixel, range(s.ci))
    for x in range(s.wo - right, s.wo):
        yield from s.write(x, range(s.co))


def depthwise_3x3(s: Shape) -> Iterator[Event]:
    """arm_depthwise_conv_3x3_s8: four channels at a time, leftovers singly."""
    for b, y, x in s.pixels():
        whole = s.co - s.co % 4
        for part in [range(c, c + 4) for c in range(0, whole, 4)] + [
            range(c, c + 1) for c in range(whole, s.co)
        ]:
            for pixel in s.window(b, y, x):
                yield from s.read(pixel, part)
            yield from s.write(s.number(b, y, x), part)


def depthwise_mult_4(s: Shape) -> Iterator[Event]:
    """depthwise_conv_s8_mult_4: four outputs of one input channel at a time."""
    mult = s.co // s.ci
    for b, y, x in s.pixels():
        for c in range(s.ci):
            for tile in range(0, mult, 4):
                for pixel in s.window(b, y, x):
                    yield from s.read(pixel, range(c, c + 1))
                first = c * mult + tile
                yield from s.write(s.number(b, y, x), range(first, first + 4))


def pixelwise(s: Shape) -> Iterator[Event]:
    """arm_depthwise_conv_s8_opt and arm_avgpool_s8 with DSP: a window, then a pixel."""
    for b, y, x in s.pixels():
        for pixel in s.window(b, y, x):
            yield from s.read(pixel, range(s.ci))
        yield from s.write(s.number(b, y, x), range(s.co))


def depthwise_mve(s: Shape) -> Iterator[Event]:
    """arm_depthwise_conv_s8_opt with MVE: blocks of 124 channels outside."""
    for block in range(0, s.co, 124):
        part = range(block, min(block + 124, s.co))
        yield from _blocked(s, part)


def _blocked(s: Shape, part: range) -> Iterator[Event]:
    waiting: list[int] = []
    for b, y, x in s.pixels():
        for pixel in s.window(b, y, x):
            yield from s.read(pixel, part)
        waiting.append(s.number(b, y, x))
        if len(waiting) == 4:
            for done in waiting:
                yield from s.write(done, part)
            waiting = []
    for done in waiting:
        yield from s.write(done, part)


def max_pool(s: Shape) -> Iterator[Event]:
    """arm_max_pool: the first pixel is copied, the others compared with the output in place;
    the last pass, which clamps, touches the output alone."""
    for b, y, x in s.pixels():
        for i, pixel in enumerate(s.window(b, y, x)):
            yield from s.read(pixel, range(s.ci))
            if i == 0:
                yield from s.write(s.number(b, y, x), range(s.co))
    for b, y, x in s.pixels():
        yield from s.write(s.number(b, y, x), range(s.co))


def average_mve(s: Shape) -> Iterator[Event]:
    """arm_avgpool with MVE: 16 bytes of channels at a time."""
    step = 16 // s.element
    for b, y, x in s.pixels():
        for c in range(0, s.co, step):
            part = range(c, min(c + step, s.co))
            for pixel in s.window(b, y, x):
                yield from s.read(pixel, part)
            yield from s.write(s.number(b, y, x), part)


def kernel(s: Shape, library: str) -> Iterator[Event]:
    """The events of `s` in a library, by the wrappers' own conditions."""
    if library == "reference" or s.element == 4:
        return reference(s)
    mve = library == "cmsis-nn-mve"
    if s.kind == "conv":
        return _convolution(s, library, mve)
    if s.kind == "max":
        return max_pool(s)
    if s.kind == "average":
        plain = reference if library == "cmsis-nn-plain" else pixelwise
        return average_mve(s) if mve else plain(s)
    if s.element == 2:
        return reference(s)
    if mve and s.ci == 1 and s.co > 1:
        return _convolution(replace(s, kind="conv"), library, mve)
    if s.ci == s.co and (s.dh, s.dw) == (1, 1) and s.batch == 1:
        if mve:
            return depthwise_mve(s)
        if (s.kh, s.kw) == (3, 3) and s.ph <= 1 and s.pw <= 1:
            return depthwise_3x3(s)
        return reference(s) if library == "cmsis-nn-plain" else pixelwise(s)
    fours = s.co // s.ci % 4 == 0 and (s.dh, s.dw) == (1, 1) and s.batch == 1
    return depthwise_mult_4(s) if fours else reference(s)


def _convolution(s: Shape, library: str, mve: bool) -> Iterator[Event]:
    if s.element == 2:
        return columns(s, 4 if mve else 2)
    one = (s.kh, s.kw, s.dh, s.dw, s.groups) == (1, 1, 1, 1, 1)
    if one and not (library == "cmsis-nn-2022" and (s.sh, s.sw) != (1, 1)):
        return pointwise(s, product_mve if mve else product)
    if mve and (s.h, s.kh, s.dw, s.groups) == (1, 1, 1, 1) and s.sw * s.ci % 4 == 0:
        return one_by_n_mve(s)
    return columns(s, 4 if mve else 2)


def safe_distances(s: Shape, events: Iterator[Event], distances: range) -> list[bool]:
    """For each distance, whether no byte is read after it was overwritten.

    The output starts `distance` bytes below the input, so output byte i + distance lies on
    input byte i.
    """
    last_read: dict[int, int] = {}
    first_write: dict[int, int] = {}
    for time, (is_write, byte) in enumerate(events):
        if is_write:
            first_write.setdefault(byte, time)
        else:
            last_read[byte] = time
    assert len(first_write) == s.bytes_out, "the model writes every output byte"
    never = 1 << 60
    return [
        all(first_write.get(i + d, never) > time for i, time in last_read.items())
        for d in distances
    ]


def smallest_safe(safe: list[bool], distances: range) -> int:
    """The smallest distance from 0 on from which on all of them are safe."""
    bad = (d for d, fine in zip(distances, safe, strict=True) if not fine)
    return max(0, max(bad, default=-1) + 1)
