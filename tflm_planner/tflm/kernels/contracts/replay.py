"""Finds whether a kernel still computes the right bits with its output at a given distance.

It replays the kernel's order of reads and writes. Every input byte gets the time of its last read,
every output byte the time of its first write. At distance D (the output starts D bytes below the
input) output byte i + D lies on input byte i, so

    safe at D   <=>   first_write[i + D] > last_read[i]   for every i for which both exist

This is exact to the byte for any D, also where the bounds give none. Times come from the output
that reads an input *last*, whereas the bounds start from the input that is needed *first*.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.window import Window, window_of
from tflm_planner.support.deferred import defer
from tflm_planner.tflm.kernels.access_order import AccessOrder, Restart
from tflm_planner.tflm.kernels.base import KernelBuild

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Times = npt.NDArray[np.int64]
    Clock = Callable[[Times, Times], Times]
else:
    np = defer("numpy")

NEVER = -1


@dataclass(frozen=True, slots=True)
class AccessReplay:
    """last_read: for each byte of the operand, NEVER if it is not read. first_write: for each byte
    of the result. Both are in the same arbitrary unit of time, which only increases."""

    last_read: Times
    first_write: Times

    def safe(self, below: int) -> bool:
        """Whether no byte is overwritten before its last read when the result starts `below` bytes
        below the operand (negative: above)."""
        low = max(0, -below)
        high = min(len(self.last_read), len(self.first_write) - below)
        if high <= low:
            return True
        reads = self.last_read[low:high]
        writes = self.first_write[low + below : high + below]
        return bool(np.all(writes > reads))

    def smallest(self, step: int = 1) -> int:
        """The smallest multiple of `step`, at least 0, that is safe and above which all multiples
        are safe too."""
        distance = -(-(self._largest_unsafe() + 1) // step) * step
        while distance >= step and self.safe(distance - step):
            distance -= step
        return distance

    def _largest_unsafe(self) -> int:
        """The largest distance that is not safe; -1 if all distances from 0 on are."""
        # earliest[i], the first write of byte i or a higher one, ascends: it can be searched.
        earliest = np.minimum.accumulate(self.first_write[::-1])[::-1]
        read_places = np.flatnonzero(self.last_read >= 0)
        below = np.searchsorted(earliest, self.last_read[read_places], side="right") - 1
        return max(int((below - read_places)[below >= 0].max(initial=-1)), -1)


def replay_safe(op: Op, operand: Tensor, build: KernelBuild, below: int) -> bool:
    """Whether `op` computes the right bits in `build` if its result starts `below` bytes below an
    operand (negative: above). If the order of its reads and writes is unknown, the result and the
    operand must share no byte."""
    kernel_replay = replays(op, operand, build)
    if kernel_replay:
        return all(replay.safe(below) for replay in kernel_replay)
    if len(op.outputs) != 1:
        return False
    return -below >= operand.nbytes or below >= op.outputs[0].nbytes


def replays(op: Op, operand: Tensor, build: KernelBuild) -> list[AccessReplay]:
    """A replay for each order in which the kernel may read an operand and write the result; empty
    if no order is known."""
    movements = build.movements_of(op)
    if movements:
        return [AccessReplay(*m.times()) for m in movements if m.operand is operand]
    window = window_of(op)
    if window is None or operand is not op.inputs[0]:
        return []
    return [replay_of(window, order) for order in build.access_orders(op, window) or ()]


def replay_of(window: Window, order: AccessOrder) -> AccessReplay:
    """The times of the reads and writes of a kernel that slides `window` in this order."""
    clock = _clock(window, order)
    pixels = np.arange(window.batch * window.output[0] * window.output[1])
    writes = 3 * clock(pixels[:, None], np.arange(window.channels[1])[None, :]) + 1
    readers = _last_readers(window)
    reads = 3 * clock(readers[:, None], _last_users(window)[None, :])
    if order.accumulates:
        reads += np.where(_reads_first(window, readers), 0, 2)[:, None]
    reads = np.where(readers[:, None] < 0, NEVER, reads)
    return AccessReplay(
        np.repeat(reads.ravel(), window.element), np.repeat(writes.ravel(), window.element)
    )


def _last_readers(window: Window) -> Times:
    """For each input pixel the last output pixel whose window contains it; NEVER if there is
    none."""
    last_by_axis: list[Times] = []
    for axis in (0, 1):
        last_outputs = np.full(window.input[axis], NEVER)
        for k in range(window.kernel[axis]):
            outputs = np.arange(window.output[axis])
            inputs = outputs * window.stride[axis] - window.pad[axis] + k * window.dilation[axis]
            inside = (inputs >= 0) & (inputs < window.input[axis])
            np.maximum.at(last_outputs, inputs[inside], outputs[inside])
        last_by_axis.append(last_outputs)
    rows, columns = last_by_axis[0][:, None], last_by_axis[1][None, :]
    image = np.where((rows < 0) | (columns < 0), NEVER, rows * window.output[1] + columns).ravel()
    area = window.output[0] * window.output[1]
    starts = np.arange(window.batch)[:, None] * area
    return np.where(image[None, :] < 0, NEVER, starts + image[None, :]).ravel()


def _last_users(window: Window) -> Times:
    """For each input channel the last output channel that depends on it."""
    ci, co = window.channels
    group = np.arange(ci) // (ci // window.groups)
    return (group + 1) * (co // window.groups) - 1


def _reads_first(window: Window, readers: Times) -> npt.NDArray[np.bool_]:
    """For each input pixel, whether it is the first one in the window of its last reader."""
    area, size = window.output[0] * window.output[1], window.input[0] * window.input[1]
    pixels = np.arange(len(readers))
    output = readers % area
    rows = np.maximum(0, output // window.output[1] * window.stride[0] - window.pad[0])
    columns = np.maximum(0, output % window.output[1] * window.stride[1] - window.pad[1])
    return pixels % size == rows * window.input[1] + columns


def _clock(window: Window, order: AccessOrder) -> Clock:
    """(output pixel, output channel) -> the time at which its chunk is computed, counted along the
    loops of `order`."""
    co = window.channels[1]
    width = order.passes or co
    passes = -(-co // width)
    start, end = _group_table(window, order, order.pixels)
    lone = (end - start) < order.pixels
    unit, ahead = _unit_table(window, order), _ahead(window, order)

    def chunk(pixel: Times, channel: Times) -> Times:
        if order.chunk is None:
            return 0 * (pixel + channel)
        times = channel // order.chunk
        if order.loose_tail:
            chunk_start = co - co % order.chunk
            times = np.where(
                channel < chunk_start, times, chunk_start // order.chunk + channel - chunk_start
            )
        if order.tail_chunk is not None:
            times = np.where(lone[pixel], channel // order.tail_chunk, times)
        return np.where(ahead[pixel], 0, times)

    def when(pixel: Times, channel: Times) -> Times:
        pass_number = channel // width
        group_start = start[pixel]
        if order.passes is not None and window.groups == 1 and co % width:
            # The last channel of an odd number is computed alone.
            group_start = np.where(pass_number == passes - 1, pixel, group_start)
        time = unit[pixel] * passes + pass_number
        return (time * (len(start) + 1) + group_start) * (co + 1) + chunk(pixel, channel)

    return when


def _unit_table(window: Window, order: AccessOrder) -> Times:
    pixels = np.arange(window.batch * window.output[0] * window.output[1])
    if order.restart is Restart.NEVER:
        return 0 * pixels
    area = window.output[0] * window.output[1]
    return pixels // (area if order.restart is Restart.BATCH else window.output[1])


def _ahead(window: Window, order: AccessOrder) -> npt.NDArray[np.bool_]:
    """Output pixels at an edge, whose windows are copied before that edge is written."""
    width = window.output[1]
    column = np.arange(window.batch * window.output[0] * width) % width
    if order.edges is None:
        return np.zeros(len(column), bool)
    left, right = order.edges
    return (column < left) | (column >= width - right)


def _group_table(window: Window, order: AccessOrder, size: int) -> tuple[Times, Times]:
    """First and end output pixel of the group of each output pixel."""
    pixels = np.arange(window.batch * window.output[0] * window.output[1])
    unit = _unit_table(window, order)
    begin = np.searchsorted(unit, unit, side="left")
    stop = np.searchsorted(unit, unit, side="right")
    if order.edges is None:
        start = begin + (pixels - begin) // size * size
        return _split(start, np.minimum(start + size, stop), pixels, order)
    left, right = order.edges
    width = window.output[1]
    row = pixels // width * width
    low, high = row + left, row + width - right
    start = low + (pixels - low) // size * size
    end = np.minimum(start + size, high)
    start, end = _split(start, end, pixels, order)
    start = np.where(pixels < low, row, np.where(pixels >= high, high, start))
    end = np.where(pixels < low, low, np.where(pixels >= high, row + width, end))
    return start, end


def _split(start: Times, end: Times, pixels: Times, order: AccessOrder) -> tuple[Times, Times]:
    """Make a group of its own from each pixel that is left over by groups and computed
    separately."""
    if order.tail_chunk is None:
        return start, end
    lone = end - start < order.pixels
    return np.where(lone, pixels, start), np.where(lone, pixels + 1, end)
