"""What operators mean. Importing this package registers the meaning of every known operator."""

from tflm_planner.ops import flow, layout, pointwise, stateful
from tflm_planner.ops.spec import OpSpec, Sharing, has_side_effects, sharings, spec_of

__all__ = [
    "OpSpec", "Sharing", "flow", "has_side_effects", "layout", "pointwise", "sharings", "spec_of",
    "stateful",
]  # fmt: skip
