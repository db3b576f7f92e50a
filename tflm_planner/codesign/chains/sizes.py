"""What a chain costs: multiplications, parameters, and the bytes that must live together.

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
    """macs: multiplications of one inference. parameters: weights and biases. parameter_bytes: of
    them in a file of int8, whose biases have four bytes."""

    macs: int
    parameters: int
    parameter_bytes: int


def size_of(chain: Chain) -> Size:
    """What the network costs in computing and in flash."""
    macs = weights = biases = 0
    for layer, shape in _products(chain):
        kernel_weights = (
            math.prod(layer.kernel) * (layer.channels_in // layer.groups) * layer.channels_out
        )
        macs += kernel_weights * shape[0] * shape[1]
        weights += kernel_weights
        biases += layer.channels_out
    return Size(macs, weights + biases, weights + 4 * biases)


def _products(chain: Chain) -> Iterator[tuple[Layer, Shape]]:
    """All that multiplies, and the shapes of the results: convolutions and dense layers, and what
    skips go through."""
    for step in steps(chain):
        if step.layer.kind in ("conv", "dense"):
            yield step.layer, step.made
        elif step.layer.kind == "norm":
            width = step.shape_in[2]
            yield depthwise((1, 1), 1, width), step.made
        if step.is_projected:
            yield projection(step), step.made
        if step.is_late:
            yield from ((p.layer, p.shape) for p in reshaping(step) if p.layer is not None)


@dataclass(frozen=True, slots=True)
class Floors:
    """Bytes that no head is below. stock: where a result never shares memory with an operand.
    plan: in any order, where it may share all of it. tiles: where no operator need be whole, so
    that only the image must be."""

    stock: int
    plan: int
    tiles: int


def floors_of(chain: Chain) -> Floors:
    """Floors from the fattest operator alone: no plan is made."""
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
        elif step.source is not None:  # the sum may lie where an operand was
            stock, plan = max(stock, 3 * after), max(plan, 2 * after)
    return Floors(stock, plan, math.prod(chain.image))


def _skip_bytes(chain_steps: Sequence[Step], place: int) -> tuple[int, bool]:
    """Bytes that skips around a layer keep while it runs, its own operand apart; and whether they
    keep that, so that it cannot be written over. A skip that goes through operators keeps the
    smallest of what they read and make, since any of these may be there."""
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
    """The shapes of a skip's source, and of all that is made of it."""
    assert step.source is not None, "no skip ends here"
    if step.is_projected:
        branch = step.layer.branch or step.made[2]
        return [step.source, (*step.made[:2], branch)]
    parts = reshaping(step) if step.is_late else ()
    return [step.source, *(part.shape for part in parts)]
