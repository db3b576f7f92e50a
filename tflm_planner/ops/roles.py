"""At which index an operator has its data, weights, bias and axis operands; defined only here.

An operator that is not listed has its data first, or no part of the package needs its roles.
"""

from __future__ import annotations

from typing import NamedTuple


class ProductRoles(NamedTuple):
    """Operand indices of an operator that computes sums of products."""

    data: int
    weights: int
    bias: int


_PLAIN = ProductRoles(0, 1, 2)
ROWS_BY_MATRIX = "FULLY_CONNECTED"
"""The kind that multiplies each row of its data by one constant matrix."""
PRODUCTS = {
    "CONV_2D": _PLAIN,
    "DEPTHWISE_CONV_2D": _PLAIN,
    ROWS_BY_MATRIX: _PLAIN,
    "TRANSPOSE_CONV": ProductRoles(2, 1, 3),
}
"""Kinds that multiply data by constant weights, sum up, and add a bias."""

SUMMED_AS_ASKED = frozenset(("CONV_2D", ROWS_BY_MATRIX))
"""Products whose options may ask for the type in which sums without a bias are made."""

RESHAPES = frozenset(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"))
"""Kinds whose result has the bytes of its operand in another shape."""


class SplitRoles(NamedTuple):
    """Operand indices of a split: the axis along which it splits, and the data that it splits."""

    axis: int
    data: int


SPLITS = {"SPLIT": SplitRoles(0, 1), "SPLIT_V": SplitRoles(2, 0)}
"""Kinds whose results are consecutive parts of their data."""

PADS = "PAD", "PADV2"
"""Kinds that add elements around their data, by a table of how many; PADV2 says which, PAD adds
zeros."""
