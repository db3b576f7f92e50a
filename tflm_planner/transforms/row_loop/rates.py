"""What follows from the operators of a region that runs as a loop: which tensor enters it and which
leaves it, the rows of each tensor that a turn makes, and the rows by which each lags.

For the words and the formulas see `geometry`, which chooses among what is possible.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.model.draft import is_convex
from tflm_planner.model.ir import Graph, Op, Tensor, quote
from tflm_planner.transforms.row_loop.loop import NotStreamableError
from tflm_planner.transforms.row_loop.operand_rows import OperandRows, check_image


def ends_of(graph: Graph, region: Sequence[Op]) -> tuple[Tensor, Tensor]:
    """The only tensor that enters the region, and the only one that leaves it."""
    inner = set(region)
    if not is_convex(graph.ops, region):
        raise NotStreamableError("a path leaves the region and comes back")
    outputs = set(graph.outputs)
    sources: dict[Tensor, None] = {}
    results: dict[Tensor, None] = {}
    for op in region:
        for t in op.operands():
            if not t.is_constant and (t.producer is None or t.producer not in inner):
                sources[t] = None
        for t in op.outputs:
            outside = [c for c in t.consumers if c not in inner]
            if outside or t in outputs:
                results[t] = None
            elif not t.consumers:
                raise NotStreamableError(f"nobody reads the result of {op.label}")
    if len(sources) != 1 or len(results) != 1:
        raise NotStreamableError(
            f"tensors that enter the region: {len(sources)}, that leave it: {len(results)}; a loop "
            "has one of each"
        )
    (source,), (result,) = sources, results
    if any(c in inner for c in result.consumers):
        raise NotStreamableError(f"the region reads {quote(result.name)}, which leaves it, itself")
    check_image(source)
    return source, result


def rates_of(
    region: Sequence[Op], result: Tensor, reads: Sequence[tuple[Op, OperandRows]], rows: int
) -> dict[Tensor, int]:
    """Rows of each tensor per turn."""
    rates = {result: rows}
    of_operator = _by_operator(reads)
    for op in reversed(region):
        for read in of_operator.get(op, ()):
            wanted = {rates[t] for t in op.outputs}
            if len(wanted) > 1:
                raise NotStreamableError(f"the results of {op.label} are read at two rates")
            rate = wanted.pop() * read.stride
            if rates.setdefault(read.tensor, rate) != rate:
                raise NotStreamableError(f"{quote(read.tensor.name)} is read at two rates")
    return rates


def _by_operator(reads: Sequence[tuple[Op, OperandRows]]) -> dict[Op, list[OperandRows]]:
    """What each operator reads, in the given order."""
    of_operator: dict[Op, list[OperandRows]] = {}
    for op, read in reads:
        of_operator.setdefault(op, []).append(read)
    return of_operator


def sides_of(read: OperandRows, backwards: bool) -> tuple[int, int]:
    """Rows of padding that the windows of a read need before the first row and after the last."""
    return (read.below, read.above) if backwards else (read.above, read.below)


def delays_of(
    region: Sequence[Op],
    ends: tuple[Tensor, Tensor],
    reads: Sequence[tuple[Op, OperandRows]],
    *,
    ahead: int = 0,
    backwards: bool = False,
    unit: int = 1,
) -> dict[Tensor, int]:
    """The number of rows by which each tensor lags. ends: what enters the region, of which the loop
    starts `ahead` rows ahead, and what leaves it, which lags by a multiple of `unit` rows."""
    source, result = ends
    delays = {source: -ahead}
    of_operator = _by_operator(reads)
    for op in region:
        delay = 0
        for read in of_operator.get(op, ()):
            before, _ = sides_of(read, backwards)
            lag = delays[read.tensor] + max(read.reach - read.stride, 0) - before
            delay = max(delay, -(-lag // read.stride))
        if any(t is result for t in op.outputs):
            delay = -(-delay // unit) * unit
        delays.update(dict.fromkeys(op.outputs, delay))
    return delays
