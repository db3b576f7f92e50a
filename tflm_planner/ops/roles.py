"""Which operand of an operator is its data, its weights, its bias, its axis: the places, once.

An operator that is not here has its data first, or no part of the package asks.
"""

from __future__ import annotations

from typing import NamedTuple


class ProductRoles(NamedTuple):
    """Places of the operands of a sum of products."""

    data: int
    weights: int
    bias: int


_PLAIN = ProductRoles(0, 1, 2)
PRODUCTS = {
    "CONV_2D": _PLAIN,
    "DEPTHWISE_CONV_2D": _PLAIN,
    "FULLY_CONNECTED": _PLAIN,
    "TRANSPOSE_CONV": ProductRoles(2, 1, 3),
}
"""Kinds that sum up data times constant weights, and add a bias."""


class SplitRoles(NamedTuple):
    """Places of the operands of a split that say what is cut, and along which axis."""

    axis: int
    data: int


SPLITS = {"SPLIT": SplitRoles(0, 1), "SPLIT_V": SplitRoles(2, 0)}
"""Kinds whose results are the parts of their data, one behind the other."""

PADS = "PAD", "PADV2"
"""Kinds that add elements around their data, by a table of how many; PADV2 says which, PAD adds
zeros."""
