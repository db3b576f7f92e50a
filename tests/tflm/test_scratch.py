import pytest

from tests.tflm.custom_models import MODELS
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.kernels.scratch import reference_scratch, scratch_model
from tflm_planner.tflm.targets import load_target


def scratch(name: str, target: str) -> list[tuple[int, ...]]:
    model_of = scratch_model(load_target(target))
    return [model_of(op) for op in read_model(MODELS[name]()).ops()]


@pytest.mark.parametrize(
    ("name", "core", "expected"),
    [
        # K = 3 x 3 x 4 = 36: two columns of int16, or four of whole 16-byte lanes.
        ("conv_int8_3x3_1", "cortex-m4", (144,)),
        ("conv_int8_3x3_1", "cortex-m55", (192,)),
        ("conv_int8_1x1_1", "cortex-m4", ()),
        ("conv_int8_1x1_2", "cortex-m4", ()),
        ("conv_int16_3x3_1", "cortex-m3", (144,)),
        ("depthwise_int8_3x3_1", "cortex-m4", ()),
        ("depthwise_int8_5x3_1", "cortex-m4", (120,)),
        ("depthwise_int8_5x3_1", "cortex-m0plus", ()),
        ("depthwise_int8_3x3_1", "cortex-m85", (4464,)),
        ("average_pool_2d_int8", "cortex-m7", (16,)),
        ("average_pool_2d_int8", "cortex-m3", ()),
        ("dense_rank3", "cortex-m33", (56,)),
        ("dense_rank3_channels", "cortex-m33", ()),
        ("transpose_conv_deep_int8", "cortex-m4", (720, 900)),
    ],
)
def test_cmsis_nn(name: str, core: str, expected: tuple[int, ...]) -> None:
    assert scratch(name, f"{core}/cmsis-nn") == [expected]


def test_the_arduino_library_knows_no_narrow_depthwise() -> None:
    assert scratch("depthwise_int8_3x3_1", "arduino-2023") == [(72,)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.mostly_slow(fast=20)
def test_unknown_kernels_need_no_less_than_known_ones(name: str) -> None:
    (unknown,) = scratch(name, "cortex-m4/unknown")
    for target in ("x86-64/reference", "cortex-m4/cmsis-nn", "cortex-m55/cmsis-nn"):
        (known,) = scratch(name, target)
        wider = sorted(known, reverse=True)
        if target == "x86-64/reference":
            wider = sorted(scratch(name, "cortex-m4/reference")[0], reverse=True)
        assert len(unknown) >= len(wider)
        assert all(a >= b for a, b in zip(unknown, wider, strict=False))


@pytest.mark.parametrize("name", ["mean_int8", "add_n_float32", "transpose_conv_int16"])
def test_reference_kernels_by_either_name(name: str) -> None:
    (op,) = read_model(MODELS[name]()).ops()
    assert scratch(name, "x86-64/reference") == [reference_scratch(op)]
