"""The custom operators that TFLM registers: signal processing, DECODE, Ethos-U.

What each allocates in Init and Prepare, and its scratch. They carry their parameters in a
flexbuffer, and TFLM reads most of them by position: the values of a map are ordered by key.

    SignalRfft   tail  |params|state: substate, twiddles, temporary|     scratch  one frame
    SignalFramer tail  |params| ... |pointers|pointers|ring 0|ring 1|..

Sizes were taken with sizeof from tflite-micro 90b983c (signal/micro/kernels, decode*.cc,
ethos_u/ethosu.cc) and kissfft v130 for 32 and 64 bits; CMSIS-NN has no kernels of its own for
these. This module must not know addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.schema import Bytes, type_names
from tflm_planner.tflm.kernels.prepare import (
    Keeps,
    PersistentAllocation,
    PrepareStep,
    scale_count_of,
)

OptionsError = (LookupError, ValueError, TypeError, ArithmeticError)
"""The errors that reading missing or invalid parameters raises."""


def flexbuffer_map(data: Bytes | None) -> dict[str, Any]:
    """The options of a custom operator, sorted by key; empty if there are none or they cannot be
    read."""
    if data is None or data.size == 0:
        return {}
    from flatbuffers import flexbuffers  # pyright: ignore[reportMissingTypeStubs]

    try:
        root: Any = flexbuffers.GetRoot(data.tobytes())
        return dict(root.AsMap.Value) if root.IsMap else {}
    except Exception:  # damaged bytes make the library raise anything
        return {}


def _number(op: Op, position: int) -> int:
    """A parameter by its position, as FlexbufferWrapper reads it."""
    value = int(list(flexbuffer_map(op.custom_options).values())[position])
    if not 0 <= value < 1 << 31:
        raise ValueError(value)
    return value


_ELEMENT = {"int16": 2, "int32": 4, "float32": 4}
"""Bytes of the element types that transforms support."""


_MOST_STREAMS = 1 << 16
"""Largest number of independent streams of one operator that is accepted."""


def _element_name(op: Op) -> str:
    """The element type that the parameter "T" names."""
    return type_names()[int(flexbuffer_map(op.custom_options)["T"])]


def _element(op: Op) -> int:
    """Bytes of that element type."""
    return _ELEMENT[_element_name(op)]


def _shape(op: Op) -> list[int]:
    """The shape of the first operand."""
    return list(op.operands()[0].shape or ())


def _outer(op: Op, axes: int) -> int:
    """Number of elements of the first operand along all but its last `axes` axes; TFLM allocates
    for each of them."""
    outer = prod(_shape(op)[:-axes])
    if not 0 < outer <= _MOST_STREAMS:
        raise ValueError(outer)
    return outer


# --- Init -----------------------------------------------------------------------------------

Sizes = tuple[int, int]
"""Bytes on 32 bits, on 64 bits."""
_PARAMETERS: dict[str, Sizes] = {
    "SignalDelay": (20, 32), "SignalEnergy": (8, 8), "SignalFilterBank": (36, 64),
    "SignalFilterBankLog": (8, 8), "SignalFilterBankSpectralSubtraction": (44, 56),
    "SignalFramer": (28, 40), "SignalIrfft": (24, 32), "SignalOverlapAdd": (24, 32),
    "SignalPCAN": (4, 4), "SignalRfft": (32, 48), "SignalStacker": (36, 56),
    "SignalWindow": (8, 8), "ethos-u": (12, 12),
}  # fmt: skip


def _ring(capacity: int, pointer: int) -> int:
    """CircularBufferGetNeededMemory: int16 elements, twice."""
    return (40 if pointer == 8 else 24) + 2 * 2 * capacity


def _transform_state(op: Op, pointer: int) -> int:
    """kiss_fftr_alloc: three pointers, kiss_fft_state with its twiddles, super-twiddles and a
    temporary."""
    length, complex_number = _number(op, 1), 2 * _element(op)
    if length % 2:
        raise ValueError(length)  # it refuses, and TFLM then reads uninitialised memory
    half = length // 2
    state = 2 * 4 + 2 * 32 * 4 + complex_number * half
    return 3 * pointer + state + complex_number * (half * 3 // 2)


def _inverse_state(op: Op, pointer: int) -> int:
    """The same; for floats it follows the length and a pointer (irfft_float.cc)."""
    own_bytes = 2 * pointer if _element_name(op) == "float32" else 0
    return own_bytes + _transform_state(op, pointer)


def _stacker_state(op: Op, pointer: int) -> int:
    channels, left, right = (_number(op, i) for i in range(3))
    return _ring(channels * (left + right + 1), pointer)


_STATE: dict[str, Callable[[Op, int], int]] = {
    "SignalFilterBank": lambda op, pointer: 8 * (_number(op, 0) + 1),
    "SignalFilterBankSpectralSubtraction": lambda op, pointer: 4 * _number(op, 4),
    "SignalIrfft": _inverse_state,
    "SignalRfft": _transform_state,
    "SignalStacker": _stacker_state,
}


def init(op: Op, pointer: int) -> tuple[int, ...]:
    """Persistent allocations of Init, in order. Raises one of OptionsError."""
    sizes: list[int] = []
    if op.kind in _PARAMETERS:
        sizes.append(_PARAMETERS[op.kind][pointer == 8])
    if op.kind in _STATE:
        sizes.append(_STATE[op.kind](op, pointer))
    return tuple(sizes)


# --- Prepare --------------------------------------------------------------------------------

_FETCHED: dict[str, str] = {
    "SignalDelay": "i0 o0", "SignalEnergy": "i0 o0", "SignalFftAutoScale": "i0 o0 o1",
    "SignalFilterBank": "i0 i1 i2 i3 i4 i5 o0", "SignalFilterBankLog": "i0 o0",
    "SignalFilterBankSpectralSubtraction": "i0 o0 o1", "SignalFilterBankSquareRoot": "i0 i1 o0",
    "SignalFramer": "i0 o0 o1", "SignalIrfft": "i0 o0", "SignalOverlapAdd": "i0 o0",
    "SignalPCAN": "i0 i1 i2 o0", "SignalRfft": "i0 o0", "SignalStacker": "i0 o0 o1",
    "SignalWindow": "i0 i1 o0", "ethos-u": "i0",
}  # fmt: skip
"""Fetches in order: iN input, oN output."""
DECODE = "TFLM_DECODE"
REGISTERED = frozenset([*_FETCHED, DECODE])
"""Every custom operator with an entry here."""


def _rings(op: Op, pointer: int, capacity: int) -> list[int]:
    """Two arrays of pointers, and a ring for each outer element."""
    outer = _outer(op, 1)
    return [*2 * [pointer * outer], *outer * [_ring(capacity, pointer)]]


def _framer(op: Op, pointer: int) -> list[int]:
    size, step = _number(op, 0), _number(op, 1)
    return _rings(op, pointer, -(-size // step) * step)


def _delay(op: Op, pointer: int) -> list[int]:
    return _rings(op, pointer, _shape(op)[-1] + _number(op, 0))


def _overlap_add(op: Op, pointer: int) -> list[int]:
    outer = _outer(op, 2)
    return [pointer * outer, *outer * [_shape(op)[-1] * _element(op)]]


_PERSISTENT: dict[str, Callable[[Op, int], list[int]]] = {
    "SignalDelay": _delay, "SignalFramer": _framer, "SignalOverlapAdd": _overlap_add,
}  # fmt: skip


def prepare(op: Op, pointer: int) -> tuple[PrepareStep, ...]:
    """What Prepare does with memory, in order. Raises one of OptionsError."""
    if op.kind == DECODE:
        return tuple(_decode(op, pointer))
    places: dict[str, Sequence[Tensor | None]] = {"i": op.inputs, "o": op.outputs}
    words = _FETCHED[op.kind].split()
    fetched = [places[word[0]][int(word[1:])] for word in words]
    sizes = _PERSISTENT[op.kind](op, pointer) if op.kind in _PERSISTENT else []
    return (
        *(t for t in fetched if t is not None),
        *(PersistentAllocation(size, "dims") for size in sizes),
    )


_DECODERS: dict[int, tuple[Sizes, Keeps]] = {
    0: ((36, 72), "axis"),
    1: ((28, 56), "struct"),
    2: ((40, 80), "all"),
}
"""Look-up table, Huffman, pruned: bytes of the state, and what Setup uses after allocating it."""
_PRUNED = 2


def _decode(op: Op, pointer: int) -> list[PrepareStep]:
    """decode.cc: pairs of encoded and ancillary data; the first byte of the latter names the
    decoder. Pruned tensors copy their zero points unless all are zero."""
    steps: list[PrepareStep] = [PersistentAllocation(pointer * len(op.outputs), "all")]
    for k, output in enumerate(op.outputs):
        encoded, ancillary = op.inputs[2 * k : 2 * k + 2]
        data = None if ancillary is None else ancillary.buffer.data
        if encoded is None or not encoded.is_constant or ancillary is None or data is None:
            raise ValueError(op.kind)
        kind, version = int(data[0]), int(data[1])
        if version != 1:
            raise ValueError(version)
        sizes, keeps = _DECODERS[kind]
        steps += [encoded, ancillary, output, PersistentAllocation(sizes[pointer == 8], keeps)]
        if kind == _PRUNED and scale_count_of(output) > 1 and _has_zero_points(output):
            steps.append(PersistentAllocation(scale_count_of(output), "all"))
    return steps


def _has_zero_points(tensor: Tensor) -> bool:
    return any(tensor.quantization.zero_points)


# --- scratch --------------------------------------------------------------------------------


def _rfft_frame(op: Op, pointer: int) -> Iterator[int]:
    yield _number(op, 1) * _element(op)


def _ethos_u(op: Op, pointer: int) -> Iterator[int]:
    """Base addresses (uint64_t) and sizes (size_t) of all tensors. The driver's own memory is
    not in the arena."""
    tensors = len(op.inputs) + len(op.outputs)
    yield 8 * tensors
    yield pointer * tensors


def _detection(op: Op, pointer: int) -> Iterator[int]:
    """detection_postprocess.cc: eleven buffers, sized by boxes, classes and detections."""
    boxes = (op.operands()[0].shape or (1, 1, 1))[1]
    scored = (op.operands()[1].shape or (1, 1, 1))[-1]
    options = flexbuffer_map(op.custom_options)
    classes, detections = int(options["num_classes"]), int(options["max_detections"])
    largest, smallest = max(classes, detections), min(boxes, detections)
    per_box = [boxes, 16 * boxes, 4 * boxes * scored, 4 * boxes, 4 * boxes]
    per_detection = [
        4 * boxes * n for n in (detections, detections, 1, detections, largest, smallest)
    ]
    yield from (*per_box, *per_detection)


SCRATCH: dict[str, Callable[[Op, int], Iterator[int]]] = {
    "TFLite_Detection_PostProcess": _detection,
    "SignalRfft": _rfft_frame,
    "ethos-u": _ethos_u,
}
"""Bytes of each scratch request, by operator and pointer width. These raise one of OptionsError."""


def scratch_requests(op: Op, pointer: int) -> tuple[int, ...]:
    """Bytes of each scratch request; none for operators without an entry here.

    Raises one of OptionsError where parameters cannot be read.
    """
    rule = SCRATCH.get(op.kind)
    return () if rule is None else tuple(rule(op, pointer))


def crashing_factor(op: Op) -> int | None:
    """A factor of the length of a Fourier transform for which kissfft has no special code. It then
    requests heap memory, gets none under TFLM, and writes to address 0. None if there is no such
    factor, or if the length is not known."""
    if op.kind not in ("SignalRfft", "SignalIrfft"):
        return None
    try:
        remainder = _number(op, 1)
    except OptionsError:
        return None
    for factor in (2, 3, 5):
        while remainder > 0 and remainder % factor == 0:
            remainder //= factor
    return remainder if remainder > 1 else None


def readable(op: Op) -> bool:
    """Whether an operator's parameters can be read; true for operators without an entry here."""
    try:
        if op.kind in REGISTERED:
            init(op, 4)
            prepare(op, 4)
        if op.kind in SCRATCH:
            scratch_requests(op, 4)
    except OptionsError:
        return False
    return True
