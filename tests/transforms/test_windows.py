"""Windows of a tile along one axis, against every run of rows tried out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from tflm_planner.model.options import SAME_PADDING, VALID_PADDING
from tflm_planner.ops.axis_rules import Range, Scatter, Slide
from tflm_planner.transforms.tile.boxes import NotTileableError
from tflm_planner.transforms.tile.windows import (
    Border,
    Form,
    Sliding,
    scatter_form,
    window_forms,
)


def taps(slide: Slide, row: int) -> list[int]:
    """The operand rows that a row of the result reads; those outside the image are padding."""
    return [row * slide.stride - slide.pad + k * slide.dilation for k in range(slide.kernel)]


def rows_read(slide: Slide, form: Form, row: int, padding: int) -> list[int | None]:
    """What row `row` of `form` reads when TFLM computes it over the tile alone: the image's rows,
    None for padding. padding: rows of it above the tile."""
    at = (row - form.out[0]) * slide.stride - padding
    inside = range(form.read[0], form.read[1])
    places = [form.read[0] + at + k * slide.dilation for k in range(slide.kernel)]
    return [place if place in inside else None for place in places]


def computes(slide: Slide, form: Form, wanted: Range, size: int, padding: int) -> bool:
    """Whether every wanted row reads what it reads in the whole image."""
    return all(
        rows_read(slide, form, row, padding)
        == [tap if 0 <= tap < size else None for tap in taps(slide, row)]
        for row in range(*wanted)
    )


def same_forms(slide: Slide, wanted: Range, size: int) -> Iterator[Form]:
    """Every run of rows over which SAME computes the wanted rows right. It has all rows from the
    first tap to the last, those between the taps of a dilated window too."""
    low, high = taps(slide, wanted[0])[0], taps(slide, wanted[1] - 1)[-1] + 1
    for first, end in product(range(max(low, 0) + 1), range(min(high, size), size + 1)):
        if first >= end:
            continue
        count = -(-(end - first) // slide.stride)
        padding = same_padding(slide, end - first)
        start, rest = divmod(first - padding + slide.pad, slide.stride)
        form = Form((start, start + count), (first, end))
        if rest or start > wanted[0] or start + count < wanted[1]:
            continue
        if computes(slide, form, wanted, size, padding):
            yield form


def same_padding(slide: Slide, rows: int) -> int:
    """Rows of padding that SAME adds above so many rows."""
    count = -(-rows // slide.stride)
    return max(0, (count - 1) * slide.stride + slide.reach - rows) // 2


def tiles() -> Iterator[tuple[Slide, int, Range, bool]]:
    """(window, rows of the image, rows wanted, whether those are all) for small windows."""
    for kernel, stride, dilation, size in product((1, 2, 3, 5), (1, 2, 3), (1, 2), (4, 7, 8)):
        reach = (kernel - 1) * dilation + 1
        rows = -(-size // stride)
        pads = {0, max(0, (rows - 1) * stride + reach - size) // 2}
        for pad in pads:
            count = rows if pad else (size - reach) // stride + 1
            for low, high in product(range(count), range(1, count + 1)):
                if low < high:
                    whole = (low, high) == (0, count)
                    yield Slide(kernel, stride, dilation, pad), size, (low, high), whole


def test_every_tile_reads_what_the_whole_image_does() -> None:
    """VALID with PAD, and SAME with as few wasted rows as any run of rows has."""
    options = {VALID_PADDING: 0, SAME_PADDING: 0}
    for slide, size, wanted, whole in tiles():
        ((valid,), padding), axis = forms(slide, size, wanted, whole, "pad")
        bare = valid.pads == (0, 0)
        if padding == VALID_PADDING:
            assert valid.out == wanted and min(valid.pads) >= 0, axis
            padded = valid.read[1] - valid.read[0] + sum(valid.pads)
            assert (padded - slide.reach) // slide.stride + 1 == valid.rows, axis
            assert computes(slide, valid, wanted, size, valid.pads[0]), axis
            assert whole or bare or valid.read[0] == 0 or valid.read[1] == size, axis
        ((wasted,), padding), axis = forms(slide, size, wanted, whole, "waste")
        options[padding] += 1
        if padding == VALID_PADDING:
            assert bare or not any(same_forms(slide, wanted, size)), axis
        else:
            least = min(form.rows for form in same_forms(slide, wanted, size))
            above = same_padding(slide, wasted.read[1] - wasted.read[0])
            assert computes(slide, wasted, wanted, size, above), axis
            assert wasted.rows == least, axis
            assert not bare or valid.rows == least, axis
    assert min(options.values()) > 100


def forms(slide: Slide, size: int, wanted: Range, whole: bool, border: Border):
    """The forms of one axis, and the axis for messages."""
    axis = Sliding(slide, wanted, size, whole)
    found = window_forms([axis], border, is_pool=False)
    assert found is not None
    return found, axis


def test_a_whole_result_keeps_the_rows_that_no_window_reads() -> None:
    """Two rows at a stride of 3 leave one of 6 rows unread: cutting it off would cost a copy."""
    slide = Slide(kernel=2, stride=3, dilation=1, pad=0)
    ((form,), padding), _ = forms(slide, 6, (0, 2), True, "pad")
    assert (form, padding) == (Form((0, 2), (0, 6)), VALID_PADDING)
    ((form,), _), _ = forms(slide, 6, (0, 2), False, "pad")
    assert form == Form((0, 2), (0, 5))


@pytest.mark.parametrize(("size", "wanted"), [(4, (0, 1)), (1, (4, 5))], ids=["above", "below"])
def test_a_tile_in_the_padding_alone_is_refused(size: int, wanted: Range) -> None:
    slide = Slide(kernel=3, stride=1, dilation=1, pad=3)
    with pytest.raises(NotTileableError, match="padding alone"):
        window_forms([Sliding(slide, wanted, size)], "pad", is_pool=False)


def test_a_tile_may_read_the_first_or_the_last_row_alone() -> None:
    slide = Slide(kernel=3, stride=1, dilation=1, pad=2)
    ((first,), _), _ = forms(slide, 4, (0, 1), False, "pad")
    assert first == Form((0, 1), (0, 1), (2, 0))
    ((last,), _), _ = forms(slide, 4, (5, 6), False, "pad")
    assert last == Form((5, 6), (3, 4), (0, 2))


def test_rows_of_a_transposed_convolution() -> None:
    """All that the operand's rows add to the wanted ones, and refusals where none does."""
    for kernel, stride, pad, size in product((1, 2, 3, 4), (1, 2, 3), (0, 1), (1, 3, 5)):
        rule, count = Scatter(kernel, stride, pad), (size - 1) * stride + kernel - 2 * pad
        for low, high in product(range(count), range(1, count + 1)):
            if low >= high:
                continue
            adding = [i for i in range(size)
                      if i * stride - pad < high and i * stride - pad + kernel > low]  # fmt: skip
            start = adding[0] * stride - pad if adding else 0
            end = adding[-1] * stride - pad + kernel if adding else 0
            if not adding or start > low or end < high:
                with pytest.raises(NotTileableError):
                    scatter_form(rule, (low, high), size)
                continue
            expected = Form((start, end), (adding[0], adding[-1] + 1))
            assert scatter_form(rule, (low, high), size) == expected
