"""ESP-NN: which results may overlap their operands, chip by chip and release by release."""

from __future__ import annotations

import pytest

from tests.tflm.esp_nn_loops import convolution_on_s3, pointwise_fallback_on_s3
from tests.tflm.kernel_loops import Shape, reference, safe_distances
from tests.tflm.overlap_trials import model_of, op_of
from tflm_planner.model.ir import Op
from tflm_planner.ops.window import window_of
from tflm_planner.tflm.kernels.access_order import ELEMENTWISE
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target

EVERY = ("1.1.2", "1.2.1", "1.2.3", "1.2.6")
LATER = EVERY[1:]
GENERIC = ("esp32", "esp32s2", "esp32c3", "esp32c6", "esp32h2")


def of(shape: Shape) -> Op:
    return op_of(model_of(shape))


def test_generic_c_has_the_orders_of_the_reference() -> None:
    for chip in GENERIC:
        assert (
            kernels_of(load_target(f"{chip}/esp-nn")).builds
            == kernels_of(load_target("xtensa-lx7/reference")).builds
        )


@pytest.mark.parametrize(
    ("shape", "releases"),
    [
        (Shape("conv", 8, 8, 16, 16), EVERY),  # eight pixels are read before a store
        (Shape("conv", 8, 8, 12, 16), ("1.1.2", "1.2.1")),  # copied to fill vectors
        (Shape("conv", 9, 9, 16, 16, 3, 3), EVERY),  # padded copy
        (Shape("conv", 9, 9, 16, 16, 3, 3, same=False), EVERY),  # a window, then a store
        (Shape("conv", 8, 8, 16, 16, 3, 3, 2, 2), EVERY),
        (Shape("conv", 9, 9, 3, 16, 3, 3, same=False), EVERY),  # windows copied from 1.2.1 on
        (Shape("conv", 9, 9, 16, 16, 3, 3, dh=2, dw=2), EVERY),
        (Shape("conv", 9, 9, 16, 16, groups=2), ()),  # computed wrong
        (Shape("depthwise", 9, 9, 16, 16, 3, 3), EVERY),
        (Shape("depthwise", 9, 9, 16, 16, 3, 3, same=False), ()),
        (Shape("depthwise", 9, 9, 16, 16, 5, 5), LATER),
        (Shape("depthwise", 9, 9, 8, 8, 3, 3), EVERY),
        (Shape("depthwise", 9, 9, 6, 6, 3, 3), LATER),
        (Shape("depthwise", 9, 9, 3, 3, 3, 3), LATER),
        (Shape("depthwise", 9, 9, 2, 8, 3, 3), EVERY),
        (Shape("max", 8, 8, 16, 16, 2, 2, 2, 2), ()),
        (Shape("max", 8, 8, 16, 16, 2, 2, 2, 2, element=2), EVERY),
    ],
    ids=str,
)
def test_the_s3_shares_only_where_its_kernels_read_no_later(
    shape: Shape, releases: tuple[str, ...]
) -> None:
    op = of(shape)
    window = window_of(op)
    assert window is not None
    for release in EVERY:
        (build,) = kernels_of(load_target(f"esp32s3/esp-nn-{release}")).builds
        wanted = (ELEMENTWISE,) if release in releases else None
        assert build.access_orders(op, window) == wanted, release


@pytest.mark.parametrize(
    "shape",
    [
        Shape("conv", 4, 5, 8, 8),
        Shape("conv", 3, 3, 8, 5),
        Shape("conv", 3, 7, 16, 24),
        Shape("conv", 2, 3, 24, 9),
        Shape("conv", 5, 4, 8, 3, batch=2),
        Shape("conv", 5, 5, 16, 8, 3, 3, same=False),
        Shape("conv", 6, 5, 16, 24, 2, 3, 2, 1, same=False),
        Shape("conv", 6, 6, 16, 20, 1, 1, 2, 2, same=False),
    ],
    ids=str,
)
def test_convolutions_of_the_s3_allow_what_the_reference_kernels_do(shape: Shape) -> None:
    """At every distance, byte by byte: those that read straight from their operand."""
    distances = range(-shape.bytes_in, shape.bytes_out + 1)
    by_reference = safe_distances(shape, reference(shape), distances)
    on_s3 = safe_distances(shape, convolution_on_s3(shape), distances)
    assert all(s3 or not other for s3, other in zip(on_s3, by_reference, strict=True))


def test_the_fallback_for_odd_depths_reads_what_the_reference_has_read() -> None:
    """Results of the eighth pixel are stored before the second channel of the first one reads."""
    shape = Shape("conv", 2, 8, 12, 4)
    distances = range(shape.bytes_out + 1)
    by_reference = safe_distances(shape, reference(shape), distances)
    on_s3 = safe_distances(shape, pointwise_fallback_on_s3(shape), distances)
    assert any(other and not s3 for s3, other in zip(on_s3, by_reference, strict=True))


def test_the_p4_shares_what_the_reference_kernels_compute() -> None:
    (build,) = kernels_of(load_target("esp32p4/esp-nn")).builds
    for shape in (Shape("conv", 9, 9, 16, 16, 3, 3), Shape("max", 8, 8, 16, 16, 2, 2, 2, 2)):
        op = of(shape)
        window = window_of(op)
        assert window is not None and build.access_orders(op, window) is None
    wide = of(Shape("conv", 9, 9, 16, 16, 3, 3, element=2))
    window = window_of(wide)
    assert window is not None and build.access_orders(wide, window) == (ELEMENTWISE,)
