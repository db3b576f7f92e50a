"""What an operator's options say, in our words.

The generated schema has a table for each kind of operator. Such a table is the storage; it is read
here, and nowhere above `model/`. Whoever changes options or makes new ones names fields as we
write names: `stride_h` is the schema's `strideH`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tflm_planner.model import schema
from tflm_planner.model.schema import members
from tflm_planner.support.deferred import defer

if TYPE_CHECKING:
    import numpy as np
else:
    np = defer("numpy")

SAME_PADDING, VALID_PADDING = 0, 1
"""What `padding` may say."""
CONDITION, BODY = "condSubgraphIndex", "bodySubgraphIndex"
THEN, ELSE = "thenSubgraphIndex", "elseSubgraphIndex"
INITIAL = "initSubgraphIndex"
"""Under which names `Op.graphs` holds the graphs of WHILE, of IF and of CALL_ONCE."""


@dataclass(frozen=True, slots=True, eq=False)
class OperatorOptions:
    """The options of one operator. What its table lacks reads as what changes nothing: a stride of
    1, no activation, axis 0.

    table: the generated object; None for an operator without options.
    """

    table: object | None = None

    @property
    def is_absent(self) -> bool:
        """Whether the operator has none."""
        return self.table is None

    @property
    def name(self) -> str:
        """The name of the table in the schema, such as "Conv2DOptions"; empty without one."""
        return "" if self.table is None else type(self.table).__name__.removesuffix("T")

    def fields(self) -> Mapping[str, Any]:
        """All fields, by the schema's names."""
        return {} if self.table is None else members(self.table)

    def key(self) -> Hashable:
        """Equal for equal options of one table."""
        kind, values = type(self.table), tuple(self.fields().values())
        try:
            hash(values)
        except TypeError:  # an array among them
            values = tuple(v if isinstance(v, Hashable) else tuple(v) for v in values)
        return kind, values

    def changed(self, **fields: object) -> OperatorOptions:
        """The same with other values of these fields, which the table must have. Several integers
        are stored as an array of int32, as reading a file makes them."""
        if not fields:
            return self
        table = copy(self.table)
        for name, value in fields.items():
            field = schema.field_name(name)
            assert hasattr(table, field), f"{self.name or 'no options'} has no field {field}"
            setattr(table, field, np.array(value, np.int32) if isinstance(value, tuple) else value)
        return OperatorOptions(table)

    def number(self, field: str, default: int = 0) -> int:
        """A field by its name in the schema."""
        return getattr(self.table, field, default)

    # --- windows: all pairs are (height, width) ---

    @property
    def stride(self) -> tuple[int, int]:
        """Rows and columns from one window to the next."""
        return getattr(self.table, "strideH", 1), getattr(self.table, "strideW", 1)

    @property
    def dilation(self) -> tuple[int, int]:
        """Rows and columns from one element of a window to the next."""
        table = self.table
        return getattr(table, "dilationHFactor", 1), getattr(table, "dilationWFactor", 1)

    @property
    def pool_size(self) -> tuple[int, int]:
        """The window of a pool; convolutions have theirs from their filters."""
        return getattr(self.table, "filterHeight", 1), getattr(self.table, "filterWidth", 1)

    @property
    def padding(self) -> int:
        """SAME_PADDING or VALID_PADDING; another number in a damaged file."""
        return self.number("padding")

    @property
    def depth_multiplier(self) -> int:
        """How many channels a depthwise convolution makes of one."""
        return self.number("depthMultiplier", 1)

    @property
    def bias_type(self) -> int:
        """The type of the bias, where a convolution says it; 0 elsewhere."""
        return self.number("quantizedBiasType")

    @property
    def activation(self) -> int:
        """The fused activation by its number in the schema; 0 without one."""
        return self.number("fusedActivationFunction")

    @property
    def may_have_activation(self) -> bool:
        """Whether the table has a place for a fused activation."""
        return hasattr(self.table, "fusedActivationFunction")

    # --- axes ---

    @property
    def axis(self) -> int:
        """The axis of a CONCATENATION, GATHER, PACK or UNPACK; negative ones count from the end."""
        return self.number("axis")

    @property
    def batch_dims(self) -> int:
        """How many outermost axes a GATHER takes as batches."""
        return self.number("batchDims")

    @property
    def keeps_dims(self) -> bool:
        """Whether a reduction leaves axes of length 1."""
        return bool(self.number("keepDims"))

    @property
    def transposes(self) -> tuple[bool, bool]:
        """Which operands a BATCH_MATMUL takes transposed."""
        return bool(self.number("adjX")), bool(self.number("adjY"))

    @property
    def has_shuffled_weights(self) -> bool:
        """Whether a FULLY_CONNECTED has its weights in another than the plain format."""
        return bool(self.number("weightsFormat"))

    @property
    def is_time_major(self) -> bool:
        """Whether a sequence comes step by step, and each step has all batches."""
        return bool(self.number("timeMajor"))

    # --- boxes and shapes ---

    @property
    def begin_mask(self) -> int:
        """Bits of the axes that a STRIDED_SLICE takes from their first element."""
        return self.number("beginMask")

    @property
    def end_mask(self) -> int:
        """Bits of the axes that a STRIDED_SLICE takes to their end."""
        return self.number("endMask")

    @property
    def shrink_axis_mask(self) -> int:
        """Bits of the axes of which a STRIDED_SLICE takes one index, and which then vanish."""
        return self.number("shrinkAxisMask")

    @property
    def adds_axes(self) -> bool:
        """Whether a STRIDED_SLICE has axes in its result that its operand lacks, or leaves axes
        unnamed."""
        return bool(self.number("ellipsisMask") or self.number("newAxisMask"))

    @property
    def counts_from_begin(self) -> bool:
        """Whether the ends of a STRIDED_SLICE count from its begins."""
        return bool(self.number("offset"))

    @property
    def new_shape(self) -> tuple[int, ...] | None:
        """What a RESHAPE says besides its operand; None where it says nothing."""
        return self._numbers("newShape")

    @property
    def squeezed_axes(self) -> tuple[int, ...]:
        """The axes that a SQUEEZE names; none where all of length 1 vanish."""
        return self._numbers("squeezeDims") or ()

    def _numbers(self, field: str) -> tuple[int, ...] | None:
        values: Iterable[int] | None = getattr(self.table, field, None)
        return None if values is None else tuple(int(v) for v in values)

    @property
    def aligns_corners(self) -> bool:
        """Whether a resized image has the corners of the old one."""
        return bool(self.number("alignCorners"))

    @property
    def has_half_pixel_centers(self) -> bool:
        """Whether a resized image takes pixels to lie half a pixel from its border."""
        return bool(self.number("halfPixelCenters"))

    # --- resource variables ---

    @property
    def variable(self) -> tuple[bytes | None, bytes | None]:
        """Container and name of the resource variable that a VAR_HANDLE stands for."""
        return getattr(self.table, "container", None), getattr(self.table, "sharedName", None)


NO_OPTIONS = OperatorOptions()
"""Those of an operator that has none."""


def new_options(name: str, **fields: object) -> OperatorOptions:
    """Options of the schema's table of this name, with these fields."""
    return OperatorOptions(getattr(schema.generated, f"{name}T")()).changed(**fields)
