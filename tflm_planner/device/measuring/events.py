"""Computes the order in which operators begin in one Invoke: that of the rows in a board's log.

    main: A WHILE B      log: total, A, WHILE, condition, (body, condition) x iterations, B

A WHILE begins before its graphs and its time includes theirs. This module must not know boards.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.cost.loops import turns
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.model.options import BODY, CONDITION

MOST_EVENTS = 1 << 20


class _UnknownError(Exception):
    """The order depends on values that are not in the model."""


def events(model: Model) -> list[Op] | None:
    """The operators in the order in which they begin; None if the model does not determine which
    operators run or how often (an IF, or a loop without a fixed count)."""
    operators: list[Op] = []
    try:
        for op in _list_started(model.main):
            operators.append(op)
            if len(operators) > MOST_EVENTS:
                return None
    except _UnknownError:
        return None
    return operators


def _list_started(graph: Graph) -> Iterator[Op]:
    for op in graph.ops:
        yield op
        if not op.called_graphs():
            continue
        often = turns(op) if op.kind == "WHILE" else None
        if often is None:
            raise _UnknownError
        condition, body = op.graphs[CONDITION][0], op.graphs[BODY][0]
        yield from _list_started(condition)
        for _ in range(often):
            yield from _list_started(body)
            yield from _list_started(condition)
