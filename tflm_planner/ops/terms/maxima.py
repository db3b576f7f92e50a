"""Terms of the largest of some elements: the set of these, in which the least number counts
nothing, as padding does not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Tensor
from tflm_planner.ops.terms import field
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.parameters import is_float, quantisation
from tflm_planner.ops.terms.values import Values

_NAME = "of a maximum"


def parts_of(call: OpCall) -> Residues:
    """What each element of the first operand adds to the sum that stands for a set."""
    elements = call.elements(0)
    least = call.mix(call.symbols.of_number(_least(call.tensor(0))), _NAME).data
    each = call.mix(elements, _NAME).data
    return field.subtract(each, least.reshape(LANES, *(1,) * (elements.ndim - 1)))


def maximum(call: OpCall, sums: npt.NDArray[np.int64] | Residues) -> Values:
    """The largest elements of sets, each given by the sum of the parts of its elements."""
    ends = quantisation(call.tensor(0)), quantisation(call.result), call.op.options.activation
    return call.mix(field.residues_of(sums), "maximum", *ends)


def _least(tensor: Tensor) -> int | float:
    if is_float(tensor):
        return float(np.finfo(np.float32).min)
    return -(1 << (8 * tensor.nbytes // max(tensor.elements, 1) - 1))
