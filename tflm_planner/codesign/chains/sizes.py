"""Counts what a chain costs: multiplications, parameters, and bytes that must be live together.

It must not know targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflm_planner.codesign.chains.chain import (
    Chain,
    Layer,
    Shape,
    Step,
    depthwise,
    projection,
    steps,
)
from tflm_planner.codesign.chains.reshaping import reshaping


@dataclass(frozen=True, slots=True)
class Size:
    """macs: multiply-accumulates of one inference. parameters: number of weights and biases.
    parameter_bytes: their bytes in an int8 model, where biases have four bytes."""

    macs: int
    parameters: int
    parameter_bytes: int


def size_of(chain: Chain) -> Size:
    """The multiply-accumulates and parameters of a chain, without branches that only training
    has."""
    chain_steps = steps(chain)
    layers = [layer for step in chain_steps for layer, _ in _products(step)]
    weights = sum(layer.weights for layer in layers)
    biases = sum(layer.channels_out for layer in layers)
    return Size(sum(map(macs_of, chain_steps)), weights + biases, weights + 4 * biases)


def macs_of(step: Step) -> int:
    """The multiply-accumulates of a layer and of what is on the skip that ends there."""
    return sum(layer.weights * shape[0] * shape[1] for layer, shape in _products(step))


def _products(step: Step) -> Iterator[tuple[Layer, Shape]]:
    """Yield what multiplies and the shape of its result: the layer, if it is a convolution, a dense
    layer or a norm, and the convolutions on its skip."""
    if step.layer.kind in ("conv", "dense"):
        yield step.layer, step.made
    elif step.layer.kind == "norm":
        yield depthwise((1, 1), 1, step.shape_in[2]), step.made
    if step.is_projected:
        yield projection(step), step.made
    if step.is_late:
        yield from ((p.layer, p.shape) for p in reshaping(step) if p.layer is not None)


@dataclass(frozen=True, slots=True)
class Floors:
    """Lower bounds of the head, in bytes. stock: if a result never shares memory with an operand.
    plan: for any order, if a result may share all of its memory with an operand. tiles: if only the
    image must exist as a whole."""

    stock: int
    plan: int
    tiles: int


def floors_of(chain: Chain) -> Floors:
    """Lower bounds from the operator that needs the most bytes. No plan is made."""
    chain_steps = steps(chain)
    stock, plan = 0, 0
    for place, step in enumerate(chain_steps):
        before, after = math.prod(step.shape_in), math.prod(step.made)
        skip_bytes, is_read_again = _skip_bytes(chain_steps, place)
        both, either = before + after, max(before, after)
        stock = max(stock, skip_bytes + (before if step.layer.kind == "flatten" else both))
        plan = max(plan, skip_bytes + (both if is_read_again else either))
        if step.source is not None and step.layer.join == "concat":
            whole = math.prod(step.shape_out)
            stock, plan = max(stock, 2 * whole), max(plan, whole)
        elif step.source is not None:  # the sum may overwrite an operand
            stock, plan = max(stock, 3 * after), max(plan, 2 * after)
    return Floors(stock, plan, math.prod(chain.image))


def _skip_bytes(chain_steps: Sequence[Step], place: int) -> tuple[int, bool]:
    """Bytes that skips around a layer keep alive while it runs, without the layer's own operand;
    and whether a skip keeps that operand too, so that the result cannot overwrite it. For a skip
    with operators on it, the smallest of their operands and results is counted, since any of these
    may be the live one."""
    kept_bytes, is_read_again = 0, False
    for end in range(place, len(chain_steps)):
        step = chain_steps[end]
        first = end + 1 - step.layer.skip
        if step.source is None or first > place:
            continue
        shapes = _skip_shapes(step)
        if first == place:
            is_read_again |= len(shapes) == 1
        else:
            kept_bytes += min(map(math.prod, shapes))
    return kept_bytes, is_read_again


def _skip_shapes(step: Step) -> list[Shape]:
    """The shapes of a skip's source and of all values that the operators on the skip make."""
    assert step.source is not None, "no skip ends here"
    if step.is_projected:
        branch = step.layer.branch or step.made[2]
        return [step.source, (*step.made[:2], branch)]
    parts = reshaping(step) if step.is_late else ()
    return [step.source, *(part.shape for part in parts)]
