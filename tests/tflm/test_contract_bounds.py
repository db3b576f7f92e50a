"""The closed bounds of contracts: the formula at the head of their module, pixel by pixel."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

import pytest

from tests.tflm.kernel_loops import Shape
from tests.tflm.overlap_trials import model_of, op_of
from tflm_planner.ops.window import Window
from tflm_planner.tflm.kernels.access_order import AccessOrder, Restart
from tflm_planner.tflm.kernels.contracts import bound, exact_bound
from tflm_planner.tflm.kernels.contracts.replay import replay_of
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE


def random_window(draw: random.Random) -> Window:
    """A small window that TFLM runs, SAME or VALID, in one image or several."""
    image, kernel, stride = (
        (draw.randint(low, high), draw.randint(low, high)) for low, high in ((5, 9), (1, 5), (1, 3))
    )
    same = draw.random() < 0.5
    output, pad = zip(*(
        (rows := -(-(n if same else n - k + 1) // s), max(0, (rows - 1) * s + k - n) // 2)
        for n, k, s in zip(image, kernel, stride, strict=True)
    ), strict=True)  # fmt: skip
    return Window(
        batch=draw.choice((1, 1, 2, 3)), input=image, output=output,
        channels=(draw.randint(1, 4), draw.randint(1, 8)), kernel=kernel, stride=stride,
        dilation=(1, 1), pad=pad, groups=1, element=draw.choice((1, 2)),
    )  # fmt: skip


def first_of_windows(window: Window) -> list[int]:
    """The lowest input pixel in the window of each output pixel."""
    (height, width), (rows, columns) = window.input, window.output
    lowest: list[int] = []
    for image, y, x in product(range(window.batch), range(rows), range(columns)):
        top = max(0, y * window.stride[0] - window.pad[0])
        left = max(0, x * window.stride[1] - window.pad[1])
        lowest.append((image * height + top) * width + left)
    return lowest


def still_needed(window: Window) -> list[int]:
    """M: the lowest input pixel that each output pixel, or a later one, reads."""
    lowest = first_of_windows(window)
    return [min(lowest[p:]) for p in range(len(lowest))]


def groups(window: Window, order: AccessOrder) -> Iterator[tuple[int, int]]:
    """First and end pixel of what is computed between two reads, as `AccessOrder` draws it."""
    rows, columns = window.output
    pixels = window.batch * rows * columns
    size = 1 if order.chunk is None else order.pixels
    unit = {Restart.NEVER: pixels, Restart.BATCH: rows * columns, Restart.ROW: columns}
    for begin in range(0, pixels, unit[order.restart]):
        stop = begin + unit[order.restart]
        yield from ((p, min(p + size, stop)) for p in range(begin, stop, size))


def written_out(window: Window, blocks: Iterable[tuple[int, int]]) -> int:
    """The least distance in bytes for kernels that read while they write these blocks of pixels."""
    ci, co = window.channels
    needed = still_needed(window)
    return in_bytes(window, [end * co - needed[first] * ci for first, end in blocks])


def written_when_read(window: Window) -> int:
    """The same for kernels that write a pixel when its window was read: later ones count."""
    ci, co = window.channels
    needed = still_needed(window)
    return in_bytes(window, [p * co - needed[p] * ci for p in range(1, len(needed))])


def written_channel_by_channel(window: Window) -> int:
    """The same where each channel of a pixel is written when that channel of its window was
    read."""
    ci, co = window.channels
    needed, own = still_needed(window), first_of_windows(window)
    reaches = [
        p * co + channel - (own[p] * ci + channel // (co // ci))
        for p in range(len(needed))
        for channel in range(1, co)
    ]
    return max(written_when_read(window), in_bytes(window, reaches))


def in_bytes(window: Window, reaches: list[int]) -> int:
    return min(max(0, *reaches, 0) * window.element, window.output_bytes)


ORDERS = [
    AccessOrder("made up", pixels=pixels, chunk=chunk, restart=restart)
    for pixels, chunk, restart in product((1, 2, 4), (1, 3, None), Restart)
]


def formula(window: Window, order: AccessOrder) -> int:
    """What the head of the module of bounds says of a kernel with one pass over its channels."""
    if order.chunk is None:
        return written_when_read(window)
    if order.pixels == 1 and window.groups == window.channels[0]:
        return written_channel_by_channel(window)
    return written_out(window, groups(window, order))


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_bounds_are_the_formula_and_safe(order: AccessOrder) -> None:
    """Of blocks of pixels in one pass, by the formula and by a replay of all reads and writes."""
    draw = random.Random(str(order))
    for _ in range(60):
        window = random_window(draw)
        if draw.random() < 0.5:  # depthwise
            ci = window.channels[0]
            window = replace(window, groups=ci, channels=(ci, ci * draw.randint(1, 3)))
        found = bound(window, order)
        assert found is not None and found.step == 1
        assert found.least == formula(window, order), window
        replay = replay_of(window, order)
        assert all(replay.safe(d) for d in range(found.least, window.output_bytes + 1)), window


@pytest.mark.parametrize("chunk", [1, 2, None])
def test_bounds_of_layers_as_networks_have_them_are_exact(chunk: int | None) -> None:
    """No smaller distance is safe where every pixel of the input is read, in each channel."""
    draw, order = random.Random(7), AccessOrder("made up", chunk=chunk)
    for _ in range(60):
        size, channels = (draw.randint(3, 8), draw.randint(3, 8)), draw.randint(2, 6)
        reach = draw.choice((1, 3))
        window = Window(
            batch=draw.randint(1, 2), input=size, output=size, channels=(channels, channels),
            kernel=(reach, reach), stride=(1, 1), dilation=(1, 1), pad=(reach // 2, reach // 2),
            groups=channels, element=1,
        )  # fmt: skip
        found = bound(window, order)
        assert found is not None and found.least == replay_of(window, order).smallest(), window


def test_max_pools_that_copy_the_first_pixel_never_copy_it_onto_itself() -> None:
    """The replay permits it, as bytes are read before they are written; C does not (memcpy)."""
    draw = random.Random(8)
    order = AccessOrder("made up", chunk=None, accumulates=True)
    for _ in range(40):
        window = replace(random_window(draw), groups=3, channels=(3, 3))
        found = bound(window, order)
        assert found is not None and found.step == 1
        assert found.least == written_out(window, groups(window, order)), window


def test_passes_over_all_channels_go_row_by_row() -> None:
    """Each pass reads every input channel again, so that a whole row is one block."""
    draw, order = random.Random(4), AccessOrder("made up", pixels=2, passes=2, restart=Restart.ROW)
    passes = 0
    for _ in range(80):
        window = random_window(draw)
        several = window.channels[1] > 2
        blocks = groups(window, replace(order, pixels=window.output[1] if several else 2))
        found = bound(window, order)
        assert found is not None and found.step == 1
        assert found.least == written_out(window, blocks), window
        in_images = bound(window, replace(order, restart=Restart.BATCH))
        assert (in_images is None) == several
        passes += several
    assert 20 < passes < 70


def test_passes_over_groups_of_channels_keep_to_multiples_of_a_pixel() -> None:
    draw = random.Random(5)
    order = AccessOrder("made up", pixels=2, passes=2, restart=Restart.BATCH)
    for _ in range(40):
        window = replace(random_window(draw), channels=(4, 4), groups=2)
        found = bound(window, order)
        if window.batch > 1:
            assert found is None
            continue
        assert found is not None and found.step == 4 * window.element
        assert found.least == written_out(window, groups(window, order)), window
        first = -(-found.least // found.step) * found.step
        replay = replay_of(window, order)
        distances = range(first, window.output_bytes + 1, found.step)
        assert all(replay.safe(d) for d in distances), window
    assert bound(replace(window, batch=1, channels=(4, 8)), order) is None
    assert bound(replace(window, batch=1, channels=(2, 2)), order) == bound(
        replace(window, batch=1, channels=(2, 2)), replace(order, passes=None)
    )


@pytest.mark.parametrize("restart", Restart)
def test_rows_with_edges_of_their_own_are_safe(restart: Restart) -> None:
    """Groups behind an edge begin anywhere, so that every pixel counts as the first of one."""
    draw = random.Random(6)
    for _ in range(60):
        window = random_window(draw)
        pixels = window.batch * window.output[0] * window.output[1]
        order = AccessOrder("made up", pixels=3, restart=restart, edges=(1, 1))
        found = bound(window, order)
        anywhere = [(p, min(p + 3, pixels)) for p in range(pixels)]
        assert found is not None and found.least == written_out(window, anywhere), window


def test_results_of_more_pixels_than_a_replay_takes_share_nothing() -> None:
    most, more = (op_of(model_of(Shape("conv", rows, 2048, 1, 1))) for rows in (2048, 2049))
    allowed = exact_bound(most, REFERENCE)
    assert allowed is not None and allowed.least == 0
    assert exact_bound(more, REFERENCE) is None
