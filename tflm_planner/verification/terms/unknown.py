"""Terms of operators without a rule: every result is a hash of all operands, of kind, options,
types, shapes and quantization, and of the model's state if the operator may have state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflm_planner.ops.roles import PRODUCTS
from tflm_planner.ops.terms import field, mixing
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.parameters import all_of, quantisation
from tflm_planner.ops.terms.values import Values
from tflm_planner.transforms.minify import PER_CHANNEL


def hash_operands(
    call: OpCall, state: Residues | None = None, variables: Sequence[int | None] = ()
) -> tuple[list[Values], Residues]:
    """The results, and a digest of all that was read (LANES residues). `state`: the model's state,
    if the operator may read it. `variables`: the number of the variable that each operand and
    result is, else None."""
    digest = _digest(call, state, variables)
    results: list[Values] = []
    for i, tensor in enumerate(call.op.outputs):
        places = mixing.positions(tensor.elements)
        words = mixing.keys(mixing.key("hashed result", i), places)
        wide = np.broadcast_to(digest[:, None], (LANES, tensor.elements))
        results.append(Values(call.mixer.mix(wide, words), False).reshape(tensor.shape or ()))
    return results, digest


def _digest(call: OpCall, state: Residues | None, variables: Sequence[int | None]) -> Residues:
    op = call.op
    # No kernel reads the quantization of the bias.
    bias = PRODUCTS[op.kind].bias if op.kind in PER_CHANNEL else -1
    tensors = [t for i, t in enumerate(op.inputs) if i != bias]
    shapes = [None if t is None else t.shape for t in (*op.inputs, *op.outputs)]
    between = [quantisation(t) for t in op.intermediates]
    read = np.zeros(LANES, np.uint32) if state is None else state
    for i, values in enumerate(call.operands):
        if values is not None:
            elements = call.symbols.elements(values).reshape(LANES, -1)
            places = mixing.keys(mixing.key("read", i), mixing.positions(elements.shape[1]))
            each = call.mixer.mix(elements, places)
            read = field.add(read, field.total(each, (1,)))
    name = all_of(op, (*tensors, *op.outputs))
    name += shapes, between, tuple(variables)
    return call.mix(read[:, None], "hashed", name).data[:, 0]
