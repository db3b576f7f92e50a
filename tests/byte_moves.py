"""What operators that only move bytes write, as tokens: written from their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.replay_memory import Place, TokenMemory, Tokens, integers_of

Moved = list[npt.NDArray[Any]] | None


def _same(memory: TokenMemory, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    return [memory.array(ins[0])]


def _joined(memory: TokenMemory, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    if op.builtinOptions is None or op.builtinOptions.fusedActivationFunction:
        return None
    axis = _axis(op.builtinOptions.axis, len(memory.array(ins[0]).shape) - 1)
    return [np.concatenate([memory.array(p) for p in ins], axis)]


def _stacked(memory: TokenMemory, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    axis = _axis(op.builtinOptions.axis, len(memory.array(ins[0]).shape))
    return [np.stack([memory.array(p) for p in ins], axis)]


def _unstacked(memory: TokenMemory, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    whole = memory.array(ins[0])
    axis = _axis(op.builtinOptions.axis, whole.ndim - 1)
    return list(np.moveaxis(whole, axis, 0))


def _parts(memory: TokenMemory, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    split = len(ins) == 2  # SPLIT reads (axis, data), SPLIT_V reads (data, sizes, axis)
    axis = memory.integers(ins[0] if split else ins[2])
    whole = memory.array(ins[1] if split else ins[0])
    if axis is None:
        return None
    at = _axis(axis[0], whole.ndim - 1)
    sizes = [memory.array(p).shape[at] for p in outs]
    return np.split(whole, list(np.cumsum(sizes[:-1])), at)


def _box(memory: TokenMemory, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    begin, shape = memory.integers(ins[1]), memory.array(outs[0]).shape[:-1]
    if begin is None or len(begin) != len(shape):
        return None
    return [memory.array(ins[0])[tuple(slice(b, b + n) for b, n in zip(begin, shape, strict=True))]]


def _strided(memory: TokenMemory, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    """In steps of one, with limits written out."""
    begin, end, steps = (memory.integers(p) for p in ins[1:4])
    options = op.builtinOptions
    if begin is None or end is None or steps is None or set(steps) != {1} or min(begin) < 0:
        return None
    if options.beginMask or options.endMask or options.shrinkAxisMask or options.newAxisMask:
        return None
    return [memory.array(ins[0])[tuple(slice(b, e) for b, e in zip(begin, end, strict=True))]]


def _gathered(memory: TokenMemory, op: Any, ins: list[Place], outs: list[Place]) -> Moved:
    at = memory.integers(ins[1])
    if at is None or op.builtinOptions is None or op.builtinOptions.batchDims:
        return None
    whole = memory.array(ins[0])
    return [np.take(whole, at, _axis(op.builtinOptions.axis, whole.ndim - 1))]


def _axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


_MOVES: dict[str, Callable[[TokenMemory, Any, list[Place], list[Place]], Moved]] = {
    "RESHAPE": _same, "SQUEEZE": _same, "EXPAND_DIMS": _same, "CONCATENATION": _joined,
    "PACK": _stacked, "UNPACK": _unstacked, "SPLIT": _parts, "SPLIT_V": _parts, "SLICE": _box,
    "STRIDED_SLICE": _strided, "GATHER": _gathered,
}  # fmt: skip


def moved_bytes(
    memory: TokenMemory, kind: str, op: Any, ins: list[Place], outs: list[Place]
) -> list[Tokens] | None:
    """Contents of the results of an operator that only moves bytes; None for others."""
    rule = _MOVES.get(kind)
    if rule is None or not outs or len(ins) != len(integers_of(op.inputs)):
        return None
    made = rule(memory, op, ins, outs)
    if made is None or [m.size for m in made] != [memory.size(p) for p in outs]:
        return None
    return [np.ascontiguousarray(m).reshape(-1) for m in made]
