"""Reading the values of small constants: as the model does, which checks them."""

from __future__ import annotations

from tflm_planner.model.constants import integers

__all__ = ["integers"]
