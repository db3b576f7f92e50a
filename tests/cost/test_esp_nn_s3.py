"""What operators cost on an ESP32-S3: close to what Espressif measured, and dearer in bands."""

import pytest

from tests.conftest import published
from tflm_planner.cost import Case, Operand, cost_of_case, latency_of
from tflm_planner.cost.profiles import profiles_of
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.targets import load_target

S3 = load_target("esp32s3/esp-nn-1.2.3")
REFERENCE = load_target("esp32s3/reference")
HERTZ = 240e6
SAME, VALID = 0, 1


def conv(
    image: tuple[int, int], ci: int, co: int, kernel: int = 1, pad: int = VALID, type: str = "int8"
) -> Case:
    """A CONV_2D of stride 1."""
    shrinks = (kernel - 1) * (pad == VALID)
    height, width = (n - shrinks for n in image)
    return Case(
        "CONV_2D",
        (
            Operand(type, (1, *image, ci), False, 1),
            Operand("int8", (co, kernel, kernel, ci), True, co),
            Operand("int32", (co,), True, co),
        ),
        (Operand(type, (1, height, width, co), False, 1),),
        (("padding", pad), ("strideH", 1), ("strideW", 1)),
    )


def depthwise(image: int, out: int, kernel: int, channels: int, multiplier: int = 1) -> Case:
    wide = channels * multiplier
    return Case(
        "DEPTHWISE_CONV_2D",
        (
            Operand("int8", (1, image, image, channels), False, 1),
            Operand("int8", (1, kernel, kernel, wide), True, wide),
            Operand("int32", (wide,), True, wide),
        ),
        (Operand("int8", (1, out, out, wide), False, 1),),
        (("padding", VALID), ("strideH", 1), ("strideW", 1)),
    )


def elementwise(kind: str, count: int) -> Case:
    x = Operand("int8", (count,), False, 1)
    return Case(kind, (x, x), (x,))


def instructions(case: Case, target=S3) -> int:
    return cost_of_case(case, target).instructions


@pytest.mark.parametrize(
    ("case", "ticks"),
    [
        (elementwise("ADD", 1615), 74_440),
        (elementwise("MUL", 1615), 35_002),
        (conv((10, 10), 64, 64), 331_008),
        (conv((8, 8), 16, 16), 39_022),
        (conv((8, 8), 3, 64, kernel=3), 394_842),
        (depthwise(18, 16, 3, 16), 184_176),
        (depthwise(14, 10, 5, 4, multiplier=8), 372_435),
    ],
    ids=["add", "mul", "1x1 64", "1x1 16", "3x3x3", "depthwise 3x3", "depthwise 5x5"],
)
def test_kernels_that_espressif_measured(case: Case, ticks: int) -> None:
    """README.md of espressif/esp-nn d45b843, "ESP32-S3": ticks with operands in external memory. An
    instruction takes a cycle or more. (The 5x5 one has an image of 12x12 with padding all around,
    here one of 14x14.)"""
    assert 1.1 < ticks / instructions(case) < 2.2


def test_a_network_that_espressif_measured() -> None:
    """The same page: person detection, 47 ms at 240 MHz in internal memory. Its image is gray, that
    of vww_96_int8 in colour; all else is equal."""
    model = read_model(published("vww_96_int8"))
    cycles = 0.047 * HERTZ
    assert 0.85 < latency_of(model, S3).instructions / cycles < 1.15


def test_the_reference_kernels_take_many_times_the_instructions() -> None:
    case = conv((10, 10), 64, 64)
    assert instructions(case, REFERENCE) > 8 * instructions(case)


def test_every_band_of_rows_pays_for_the_filter() -> None:
    """64 filters of 3x3x64 are summed up at every call, 3.5 instructions a weight: a sixth of what
    a call takes that computes 8x8 pixels."""
    weights = 3 * 3 * 64 * 64
    whole, half = conv((10, 10), 64, 64, 3), conv((6, 10), 64, 64, 3)
    added = 2 * instructions(half) - instructions(whole)
    assert 3.5 * weights < added < 3.5 * weights + 6_000
    assert 0.1 < added / instructions(whole) < 0.2
    on_reference = 2 * instructions(half, REFERENCE) - instructions(whole, REFERENCE)
    assert on_reference < 0.01 * instructions(whole, REFERENCE)


def test_parts_of_channels_copy_the_padded_input_again() -> None:
    """The filter is parted with them, the input is not."""
    whole, half = conv((8, 8), 64, 64, 3, SAME), conv((8, 8), 64, 32, 3, SAME)
    added = 2 * instructions(half) - instructions(whole)
    assert 4 * 8 * 8 * 64 < added < 6 * 8 * 8 * 64


def test_pixels_of_1x1_convolutions_go_in_eights() -> None:
    """Two bands of four pixels are computed pixel by pixel."""
    eight, four = conv((2, 4), 64, 64), conv((1, 4), 64, 64)
    assert 2 * instructions(four) > 3 * instructions(eight)


def test_channels_are_rounded_up_where_each_has_one_result() -> None:
    """In vectors of eight: four results cost what eight do, but six channels are placed apart."""
    four, eight = depthwise(12, 10, 3, 1, multiplier=4), depthwise(12, 10, 3, 1, multiplier=8)
    assert instructions(four) <= instructions(eight)
    six, whole = depthwise(12, 10, 5, 6), depthwise(12, 10, 5, 8)
    assert instructions(six) > instructions(whole) + 6 * (12 * 12 + 10 * 10)


@pytest.mark.parametrize(
    "case",
    [
        conv((8, 8), 16, 16, 3, type="int16"),
        Case("MUL", (Operand("int8", (8, 8)), Operand("int8", (1,))), (Operand("int8", (8, 8)),)),
        Case("LOGISTIC", (Operand("int8", (64,)),), (Operand("int8", (64,)),)),
    ],
    ids=["int16", "broadcast", "not replaced"],
)
def test_all_else_costs_what_the_reference_kernels_do(case: Case) -> None:
    assert cost_of_case(case, S3) == cost_of_case(case, REFERENCE)


def test_generic_c_and_the_p4_count_as_the_reference_kernels() -> None:
    case = conv((10, 10), 64, 64, 3)
    for name in ("esp32c3/esp-nn-1.2.3", "esp32p4/esp-nn-1.2.3"):
        assert cost_of_case(case, load_target(name)) == cost_of_case(case, REFERENCE)


def test_what_was_counted_in_sources_is_an_estimate() -> None:
    assert not profiles_of(S3).measured
    assert cost_of_case(conv((10, 10), 64, 64), S3).estimated
