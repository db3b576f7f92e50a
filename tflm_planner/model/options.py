"""The options of operators, with the package's own names.

The generated schema has an options table for each kind of operator. Such a table is the storage;
no module outside `model/` reads it directly. Code that changes or creates options uses field names
in snake case: `stride_h` is the schema's `strideH`.
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
"""Values of `padding`."""
CONDITION, BODY = "condSubgraphIndex", "bodySubgraphIndex"
THEN, ELSE = "thenSubgraphIndex", "elseSubgraphIndex"
INITIAL = "initSubgraphIndex"
DECOMPOSITION = "decompositionSubgraphIndex"
"""Keys of `Op.graphs` for the graphs of WHILE, IF, CALL_ONCE and STABLEHLO_COMPOSITE."""


@dataclass(frozen=True, slots=True, eq=False)
class OperatorOptions:
    """The options of one operator. A field that its table lacks has a neutral value: a stride of
    1, no activation, axis 0.

    table: the generated object; None for an operator without options.
    """

    table: object | None = None

    @property
    def is_absent(self) -> bool:
        """Whether the operator has no options."""
        return self.table is None

    @property
    def name(self) -> str:
        """The name of the table in the schema, such as "Conv2DOptions"; empty without one."""
        return "" if self.table is None else type(self.table).__name__.removesuffix("T")

    def fields(self) -> Mapping[str, Any]:
        """All fields, by the schema's names."""
        return {} if self.table is None else members(self.table)

    def key(self) -> Hashable:
        """A key that is equal for equal options of the same table."""
        kind, values = type(self.table), tuple(self.fields().values())
        try:
            hash(values)
        except TypeError:  # an array among them
            values = tuple(v if isinstance(v, Hashable) else tuple(v) for v in values)
        return kind, values

    def changed(self, **fields: object) -> OperatorOptions:
        """A copy with other values of these fields, which the table must have. A tuple of integers
        is stored as an array of int32, as it is when a file is read."""
        if not fields:
            return self
        table = copy(self.table)
        for name, value in fields.items():
            field = schema.field_name(name)
            assert hasattr(table, field), f"{self.name or 'no options'} has no field {field}"
            setattr(table, field, np.array(value, np.int32) if isinstance(value, tuple) else value)
        return OperatorOptions(table)

    def number(self, field: str, default: int = 0) -> int:
        """The value of a field by its name in the schema."""
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
        """The window of a pool; the window of a convolution follows from its filter."""
        return getattr(self.table, "filterHeight", 1), getattr(self.table, "filterWidth", 1)

    @property
    def padding(self) -> int:
        """SAME_PADDING or VALID_PADDING; another number in a damaged file."""
        return self.number("padding")

    @property
    def depth_multiplier(self) -> int:
        """Number of output channels that a depthwise convolution computes per input channel."""
        return self.number("depthMultiplier", 1)

    @property
    def bias_type(self) -> int:
        """The type of the bias, if a convolution declares it; otherwise 0."""
        return self.number("quantizedBiasType")

    @property
    def activation(self) -> int:
        """The number of the fused activation in the schema; 0 if there is none."""
        return self.number("fusedActivationFunction")

    @property
    def may_have_activation(self) -> bool:
        """Whether the table has a field for a fused activation."""
        return hasattr(self.table, "fusedActivationFunction")

    @property
    def beta(self) -> float:
        """The factor of a SOFTMAX's logits."""
        return getattr(self.table, "beta", 1.0)

    # --- axes ---

    @property
    def axis(self) -> int:
        """The axis of a CONCATENATION, GATHER, PACK or UNPACK; negative ones count from the end."""
        return self.number("axis")

    @property
    def batch_dims(self) -> int:
        """Number of outermost axes that a GATHER treats as batches."""
        return self.number("batchDims")

    @property
    def keeps_dims(self) -> bool:
        """Whether a reduction keeps the reduced axes with length 1, or a FULLY_CONNECTED the outer
        axes of its data."""
        return bool(self.number("keepDims") or self.number("keepNumDims"))

    @property
    def transposes(self) -> tuple[bool, bool]:
        """Which of its two operands a BATCH_MATMUL transposes."""
        return bool(self.number("adjX")), bool(self.number("adjY"))

    @property
    def has_shuffled_weights(self) -> bool:
        """Whether the weights of a FULLY_CONNECTED are not in the default format."""
        return bool(self.number("weightsFormat"))

    @property
    def is_time_major(self) -> bool:
        """Whether the outermost axis of a sequence is time, and the next one the batch."""
        return bool(self.number("timeMajor"))

    # --- boxes and shapes ---

    @property
    def begin_mask(self) -> int:
        """Bit mask of the axes that a STRIDED_SLICE takes from their first index."""
        return self.number("beginMask")

    @property
    def end_mask(self) -> int:
        """Bit mask of the axes that a STRIDED_SLICE takes to their last index."""
        return self.number("endMask")

    @property
    def shrink_axis_mask(self) -> int:
        """Bit mask of the axes of which a STRIDED_SLICE takes one index and which it removes."""
        return self.number("shrinkAxisMask")

    @property
    def adds_axes(self) -> bool:
        """Whether the result of a STRIDED_SLICE has axes that its operand lacks, or its options
        leave axes out (an ellipsis)."""
        return bool(self.number("ellipsisMask") or self.number("newAxisMask"))

    @property
    def counts_from_begin(self) -> bool:
        """Whether the `end` values of a STRIDED_SLICE are relative to its `begin` values."""
        return bool(self.number("offset"))

    @property
    def new_shape(self) -> tuple[int, ...] | None:
        """The new shape in the options of a RESHAPE; None if they do not hold it."""
        return self._numbers("newShape")

    @property
    def squeezed_axes(self) -> tuple[int, ...]:
        """The axes that a SQUEEZE names; empty if it removes all axes of length 1."""
        return self._numbers("squeezeDims") or ()

    def _numbers(self, field: str) -> tuple[int, ...] | None:
        values: Iterable[int] | None = getattr(self.table, field, None)
        return None if values is None else tuple(int(v) for v in values)

    @property
    def aligns_corners(self) -> bool:
        """Whether the corner pixels of a resized image coincide with those of the old one."""
        return bool(self.number("alignCorners"))

    @property
    def has_half_pixel_centers(self) -> bool:
        """Whether a resize takes the centre of a pixel to lie half a pixel from its edge."""
        return bool(self.number("halfPixelCenters"))

    # --- resource variables ---

    @property
    def variable(self) -> tuple[bytes | None, bytes | None]:
        """Container and name of the resource variable that a VAR_HANDLE stands for."""
        return getattr(self.table, "container", None), getattr(self.table, "sharedName", None)


NO_OPTIONS = OperatorOptions()
"""The options of an operator that has none."""


def new_options(name: str, **fields: object) -> OperatorOptions:
    """Options of the schema's table of this name, with these fields."""
    return OperatorOptions(getattr(schema.generated, f"{name}T")()).changed(**fields)
