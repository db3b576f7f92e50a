"""Options of operators in our words: what tables say, what they lack, and how they are changed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tests.conftest import CNN
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import set_option
from tflm_planner.model.options import (
    NO_OPTIONS,
    SAME_PADDING,
    VALID_PADDING,
    OperatorOptions,
    new_options,
)
from tflm_planner.model.schema import field_name
from tflm_planner.model.serde import read_model, write_model

CONV = new_options(
    "Conv2DOptions", padding=VALID_PADDING, stride_h=2, stride_w=3, dilation_h_factor=4,
    dilation_w_factor=5, fused_activation_function=1, quantized_bias_type=4,
)  # fmt: skip


def test_a_convolution_says_how_its_window_slides() -> None:
    assert CONV.name == "Conv2DOptions" and not CONV.is_absent
    assert (CONV.stride, CONV.dilation, CONV.padding) == ((2, 3), (4, 5), VALID_PADDING)
    assert (CONV.activation, CONV.bias_type) == (1, 4)
    pool = new_options("Pool2DOptions", filter_height=6, filter_width=7, stride_h=1, stride_w=0)
    assert (pool.pool_size, pool.stride) == ((6, 7), (1, 0)), "a stride of 0 is told, not mended"


def test_what_a_table_lacks_changes_nothing() -> None:
    for options in (NO_OPTIONS, new_options("SoftmaxOptions", beta=1.0)):
        assert (options.stride, options.dilation, options.pool_size) == ((1, 1),) * 3
        assert (options.depth_multiplier, options.padding) == (1, SAME_PADDING)
        assert (options.axis, options.batch_dims, options.activation) == (0, 0, 0)
        assert options.transposes == (False, False)
        assert not (options.may_have_activation or options.keeps_dims or options.is_time_major)
        assert (options.new_shape, options.squeezed_axes) == (None, ())
        assert options.variable == (None, None)
    assert (NO_OPTIONS.name, NO_OPTIONS.is_absent, NO_OPTIONS.fields()) == ("", True, {})


def test_a_box_with_steps() -> None:
    options = new_options(
        "StridedSliceOptions", begin_mask=1, end_mask=2, shrink_axis_mask=4, new_axis_mask=8
    )
    assert (options.begin_mask, options.end_mask, options.shrink_axis_mask) == (1, 2, 4)
    assert options.adds_axes and not options.counts_from_begin
    assert new_options("StridedSliceOptions", ellipsis_mask=1).adds_axes
    assert new_options("StridedSliceOptions", offset=True).counts_from_begin


def test_axes_and_shapes() -> None:
    assert new_options("GatherOptions", axis=-1, batch_dims=2).axis == -1
    assert new_options("GatherOptions", axis=-1, batch_dims=2).batch_dims == 2
    assert new_options("ReducerOptions", keep_dims=True).keeps_dims
    assert new_options("BatchMatMulOptions", adj_y=True).transposes == (False, True)
    assert new_options("ReshapeOptions", new_shape=(1, -1)).new_shape == (1, -1)
    assert new_options("SqueezeOptions", squeeze_dims=(2,)).squeezed_axes == (2,)
    assert new_options("FullyConnectedOptions", weights_format=1).has_shuffled_weights
    assert new_options("UnidirectionalSequenceLSTMOptions", time_major=True).is_time_major
    handle = new_options("VarHandleOptions", container=b"c", shared_name=b"s")
    assert handle.variable == (b"c", b"s")
    resize = new_options("ResizeBilinearOptions", align_corners=True)
    assert (resize.aligns_corners, resize.has_half_pixel_centers) == (True, False)


def test_a_change_makes_other_options() -> None:
    changed = CONV.changed(stride_h=7)
    assert (changed.stride, CONV.stride) == ((7, 3), (2, 3))
    assert changed.key() != CONV.key() == CONV.changed(stride_h=2).key()
    assert CONV.changed() is CONV
    with pytest.raises(AssertionError, match="Conv2DOptions has no field newShape"):
        CONV.changed(new_shape=(1,))
    with pytest.raises(AssertionError, match="no options has no field axis"):
        NO_OPTIONS.changed(axis=1)
    with pytest.raises(FrozenInstanceError):
        CONV.table = None  # pyright: ignore[reportAttributeAccessIssue]


def test_several_integers_are_stored_as_a_file_has_them() -> None:
    (stored,) = new_options("ReshapeOptions", new_shape=(2, 3)).fields().values()
    assert isinstance(stored, np.ndarray) and stored.dtype == np.int32


def test_keys_tell_tables_and_values_apart() -> None:
    shapes = [new_options("ReshapeOptions", new_shape=s) for s in ((2, 3), (3, 2), (2, 3))]
    assert shapes[0].key() == shapes[2].key() != shapes[1].key()
    assert hash(shapes[0].key()) == hash(shapes[2].key())
    assert new_options("AddOptions").key() != new_options("SubOptions").key()
    assert NO_OPTIONS.key() == OperatorOptions(None).key()


def test_names_of_the_schema() -> None:
    names = ("axis", "stride_h", "dilation_w_factor", "pot_scale_int16", "adj_x")
    expected = ["axis", "strideH", "dilationWFactor", "potScaleInt16", "adjX"]
    assert [field_name(n) for n in names] == expected


def test_a_change_of_a_clone_leaves_the_model_alone() -> None:
    model = read_model(CNN.read_bytes())
    twin = clone(model)
    op = next(op for op in twin.main.ops if op.options.may_have_activation)
    before = write_model(model)
    set_option(op, "fused_activation_function", 1 - op.options.activation)
    assert write_model(model) == before != write_model(twin)
