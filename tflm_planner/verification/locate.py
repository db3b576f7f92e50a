"""Finds the first operator of a result that computes something else than the original's.

A planned model cannot be asked for its intermediate tensors (later operators reuse their memory),
so both models are cut off after the same operator, and run again. The results of this operator
become the outputs, and the offsets stay as they were. Bisection finds the first cut at which the
models differ.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from tflm_planner.model.edit import end_after
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.verification.ends import as_original
from tflm_planner.verification.session import RuntimeFailureError, Session
from tflm_planner.verification.verdict import Culprit

_TIME_LIMIT = 60.0


class Place(NamedTuple):
    """Where a result first differs. said: words to append to a message; empty if the place is
    unknown. culprit: the operator; None if unknown."""

    said: str = ""
    culprit: Culprit | None = None


def first_difference(
    runtime: str, original: bytes, result: bytes, values: list[Any], arena: int
) -> Place:
    """Find the first operator whose results differ on these inputs."""
    graphs = _read(original).main, _read(result).main
    inputs = as_original(graphs[0].inputs, graphs[1].inputs, values), values
    ops = graphs[1].ops
    partner = _partners(graphs[0], ops)
    comparable = [k for k, op in enumerate(ops) if k in partner and op.outputs]

    def differs(k: int) -> bool | None:
        cuts = cut_after(original, partner[k]), cut_after(result, k)
        try:
            expected, actual = (
                _run(runtime, data, arrays, arena)
                for data, arrays in zip(cuts, inputs, strict=True)
            )
        except RuntimeFailureError:
            return None
        return expected != actual

    low, high = 0, len(comparable) - 1
    if high < 0 or not differs(comparable[high]):
        return Place()
    while low < high:
        middle = (low + high) // 2
        if differs(comparable[middle]):
            high = middle
        else:
            low = middle + 1
    first = ops[comparable[low]]
    said = f", first at operator {comparable[low]} of the result ({first.label})"
    return Place(said, Culprit(comparable[low], first.kind, fails=False))


def cut_after(data: bytes, last: int) -> bytes:
    """The file with the main graph cut off after operator `last`, whose results become the
    outputs."""
    model = _read(data)
    end_after(model, model.main.ops[last])
    return write_model(model)


def _read(data: bytes) -> Model:
    """Read a model, which may be in the TFLM dialect, where no operator writes the views."""
    return read_model(data, dialect=True)


def _partners(original: Graph, ops: list[Op]) -> dict[int, int]:
    """Maps the index of an operator in the result to that of the operator in the original whose
    results have the same names. Empty if these are not unique in the original."""
    index = {_key(op): i for i, op in enumerate(original.ops)}
    unique = len(index) == len(original.ops)
    return {k: index[_key(op)] for k, op in enumerate(ops) if unique and _key(op) in index}


def _key(op: Op) -> tuple[str, ...]:
    return (op.kind, *(_describe(t) for t in op.outputs))


def _describe(tensor: Tensor) -> str:
    return f"{tensor.name}:{tensor.type}:{tensor.shape}"


def _run(runtime: str, data: bytes, values: list[Any], arena: int) -> list[bytes]:
    outputs = len(_read(data).main.outputs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cut.tflite"
        path.write_bytes(data)
        session = Session(runtime, path, arena=arena, outputs=outputs, time_limit=_TIME_LIMIT)
        with session:
            session.describe()
            session.send(values)
            return [a.tobytes() for a in session.receive()]
