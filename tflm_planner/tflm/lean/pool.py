"""The parameter pool of lean firmware, and how its wrappers find parameters in it
(arduino_runner/src/lean).

    metadata LEAN_PARAMS    int32: [n][n words] [n][n words] ... [0]

A record is one array that TFLM computes for a convolution, or for a fully connected layer with a
scale per channel (multipliers or shifts of all output channels), or the structure of builtin
parameters. Lean firmware compares what TFLM computed with the pool, word by word, and lets the
operator point to an equal record instead of keeping a copy in the arena; so a wrong pool costs
memory, but never changes a result. Firmware without the lean library ignores the metadata.

The arithmetic is that of tflite-micro 90b983c: PopulateConvolutionQuantizationParams,
CalculateOpDataFullyConnected and QuantizeMultiplier.
This module must not know addresses or the rest of the arena.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tflm_planner.model.edit import add_metadata, remove_metadata
from tflm_planner.model.ir import Model, Op
from tflm_planner.ops.window import CONVOLUTIONS
from tflm_planner.support.deferred import defer
from tflm_planner.tflm.kernels.prepare import scale_count_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = defer("numpy")

POOL_METADATA = "LEAN_PARAMS"
LEAN_KINDS = frozenset((*CONVOLUTIONS, "FULLY_CONNECTED"))
"""Operators that lean firmware wraps."""
_FILTER = 1
_WORD = 4
_PADDING = {0: 1, 1: 2}
"""Padding in the schema -> TfLitePadding, as the parser stores it."""
_BIAS_TYPES = {0: 1, 1: 10, 2: 2, 3: 3, 4: 4, 7: 7, 9: 9}
"""Type in the schema -> TfLiteType."""


# --- what TFLM computes ---------------------------------------------------------------------------


def is_lean(op: Op) -> bool:
    """Whether lean firmware handles this operator's parameters; all others are as in stock TFLM."""
    if op.kind not in LEAN_KINDS or len(op.inputs) <= _FILTER or not op.outputs:
        return False
    data, weights, result = op.inputs[0], op.inputs[_FILTER], op.outputs[0]
    if data is None or weights is None or data.type_name not in ("int8", "int16"):
        return False
    if op.kind == "FULLY_CONNECTED":
        return len(weights.shape or ()) == 2 and scale_count_of(weights) > 1
    images = {len(t.shape or ()) for t in (data, weights, result)} == {4}
    return images and channels(op) > 0 and min(op.options.stride) > 0


def channels(op: Op) -> int:
    """Number of output channels."""
    if op.kind == "FULLY_CONNECTED":
        weights = op.inputs[_FILTER]
        return 0 if weights is None else scale_count_of(weights)
    return int((op.outputs[0].shape or (0,))[-1])


def parameter_arrays(op: Op) -> tuple[bytes, bytes] | None:
    """(multipliers, shifts) as TFLM computes them; None for operators that have none."""
    if not is_lean(op):
        return None
    data, weights, result = op.inputs[0], op.inputs[_FILTER], op.outputs[0]
    assert data is not None and weights is not None
    input_scale, result_scale = data.quantization.scale, result.quantization.scale
    weight_scales, count = weights.quantization.scales, channels(op)
    if input_scale is None or result_scale is None or len(weight_scales) not in (1, count):
        return None
    return _multipliers_of(input_scale, weight_scales, result_scale, count)


@lru_cache(maxsize=4096)
def _multipliers_of(
    data: float, weights: tuple[float, ...], result: float, count: int
) -> tuple[bytes, bytes]:
    """Computed with doubles, in TFLM's order of operations. weights: one scale, or `count`."""
    weight_scales = np.broadcast_to(np.array(weights, np.float64), count)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        real = np.float64(data) * weight_scales / np.float64(result)
    multipliers, shifts = quantize_multipliers(real)
    return multipliers.astype("<i4").tobytes(), shifts.astype("<i4").tobytes()


def quantize_multipliers(real: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """QuantizeMultiplier of every element: real = multiplier / 2^31 * 2^shift."""
    finite = np.where(np.isfinite(real), real, 0.0)
    fractions, shifts = np.frexp(finite)
    scaled = fractions * (1 << 31)
    rounded = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled).astype(np.int64)
    shifts = shifts.astype(np.int64)
    full = rounded == 1 << 31
    rounded, shifts = np.where(full, rounded // 2, rounded), np.where(full, shifts + 1, shifts)
    tiny = shifts < -31
    return np.where(tiny, 0, rounded), np.where(tiny, 0, shifts)


def builtin_parameters(op: Op) -> bytes | None:
    """TfLiteConvParams or TfLiteDepthwiseConvParams in memory: little-endian words. (Enums take a
    byte on Arm, followed by three zero bytes; CONV_2D's lacks the last word in the Arduino library
    of 2023.) None for other operators, or if the parser would fail."""
    options = op.options
    if op.kind not in CONVOLUTIONS or options.is_absent or options.padding not in _PADDING:
        return None
    words = [_PADDING[options.padding], *reversed(options.stride)]
    if op.kind == "DEPTHWISE_CONV_2D":
        words.append(options.depth_multiplier)
    words.append(options.activation)
    words += reversed(options.dilation)
    if op.kind == "CONV_2D":
        bias = _BIAS_TYPES.get(options.bias_type)
        if bias is None:
            return None
        words.append(bias)
    return np.array(words, "<i4").tobytes()


# --- the pool -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WritePool:
    """Attaches the pool of all parameters of the model's lean operators, and removes an older
    pool."""

    def apply(self, model: Model) -> list[str]:
        """Add the metadata. If the model changes afterwards, parameters without a record stay in
        RAM; results are still right."""
        records = list(pool_records(model))
        remove_metadata(model, POOL_METADATA)
        if records:
            add_metadata(
                model, POOL_METADATA, np.frombuffer(_pack_records(records), np.uint8).copy()
            )
        return []


def pool_records(model: Model) -> Iterator[bytes]:
    """Every distinct record: builtin parameters first, then arrays, in the order in which firmware
    searches them. A record that is part of an earlier one is left out."""
    text, ends, seen = bytearray(), list[int](), set[bytes]()
    for record in (*_wanted_parameters(model), *_wanted_arrays(model)):
        if record in seen:
            continue
        seen.add(record)
        if not _lies_in_one(text, ends, record):
            text += record
            ends.append(len(text))
            yield record


def _lies_in_one(text: bytearray, ends: list[int], wanted: bytes) -> bool:
    """Whether one of the records that make up `text` contains all of `wanted`."""
    offset = _aligned_find(text, wanted, 0, len(text))
    while offset >= 0:
        if offset + len(wanted) <= ends[bisect_right(ends, offset)]:
            return True
        offset = _aligned_find(text, wanted, offset + 1, len(text))
    return False


def _wanted_parameters(model: Model) -> Iterator[bytes]:
    return (p for op in model.ops() if (p := builtin_parameters(op)) is not None)


def _wanted_arrays(model: Model) -> Iterator[bytes]:
    return (a for op in model.ops() for a in parameter_arrays(op) or ())


def _pack_records(records: Iterable[bytes]) -> bytes:
    words = [np.array([len(r) // _WORD], "<i4").tobytes() + r for r in records]
    return b"".join(words) + bytes(_WORD)


class Pool:
    """A pool as firmware searches it: from the record after the last one found, cyclically.

    The search must be the same as in the firmware, because it matters which of several equal
    records is found: OpData is shared only between operators that point to the same place.
    """

    def __init__(self, data: bytes | None) -> None:
        self._data = data or b""
        self._records = _parse_records(self._data)  # (first byte, end) of each
        self._hint = 0

    def __bool__(self) -> bool:
        return bool(self._records)

    def rewind(self) -> None:
        """Begin again at the first record, as Init of an operator does."""
        self._hint = 0

    def find(self, wanted: bytes) -> int | None:
        """Offset in the pool at which lean firmware finds `wanted`; None if it does not."""
        count = len(self._records)
        if not wanted or not count:
            return None
        for step in range(count):
            index = (self._hint + step) % count
            start, end = self._records[index]
            offset = _aligned_find(self._data, wanted, start, end)
            if offset >= 0:
                self._hint = (index + 1) % count
                return offset
        return None


def carried_pool(model: Model) -> Pool:
    """The pool in the model's metadata, as firmware accepts it; empty if there is none."""
    for entry in model.metadata:
        if entry.name == POOL_METADATA and entry.buffer.data is not None:
            return Pool(entry.buffer.data.tobytes())
    return Pool(None)


def _parse_records(data: bytes) -> list[tuple[int, int]]:
    """The records of a well-formed pool; empty for a pool that firmware refuses."""
    words = struct.unpack(f"<{len(data) // _WORD}I", data[: len(data) // _WORD * _WORD])
    records: list[tuple[int, int]] = []
    index = 0
    while index < len(words) and words[index]:
        length = words[index]
        if length >= len(words) - index:
            return []
        records.append((_WORD * (index + 1), _WORD * (index + 1 + length)))
        index += 1 + length
    return records if records and index < len(words) else []


def lies_at(wanted: bytes, record: bytes) -> int:
    """Offset in a record at which lean firmware finds `wanted`; -1 if it does not."""
    return _aligned_find(record, wanted, 0, len(record))


def _aligned_find(text: bytes | bytearray, wanted: bytes, start: int, end: int) -> int:
    """The first multiple of a word in [start, end) at which `wanted` lies completely; -1 if
    none."""
    offset = text.find(wanted, start, end)
    while offset >= 0 and offset % _WORD:
        offset = text.find(wanted, offset + 1, end)
    return offset
