"""What the target's TFLM is known not to run, whatever the size of the arena.

    element types     CONV_2D of float32 and int8     `element_types`
    number of axes    STRIDED_SLICE of five axes      its Prepare fails
                      RELU of seven axes              its kernel writes behind an array of six
    operands          CONCATENATION of eleven         its Prepare fails
                      FILL of a computed shape        its Prepare fails
    padding           SPACE_TO_BATCH_ND that pads     it pads with what lies in memory
    empty results     SPLIT_V into 0 rows and 5       taken for tensors of unknown size
    scales            SOFTMAX of a scale of 1e-8      its Prepare aborts (`scales`)
    variables         READ_VARIABLE without a value   it copies nothing, and leaves rubbish
    data              outside of the flatbuffer       not read (`unread`)
    scratch           of what only a signature runs   its address is written to a wild place

Only what is known is refused: an operator that TFLM does not know is not judged. This module must
not know plans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Model, Op
from tflm_planner.model.reachability import reachable
from tflm_planner.tflm.channel_scales import refusal_of_channel_scales
from tflm_planner.tflm.element_types import refusal
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.kernels.operator_allocations import has_entry
from tflm_planner.tflm.kernels.scratch import scratch_requests
from tflm_planner.tflm.narrow_biases import refusal_of_narrow_bias
from tflm_planner.tflm.remedies import FREE_BATCH, counts_a_shape
from tflm_planner.tflm.scales import refusal_of_scales
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.unread import refusals_of_unread
from tflm_planner.tflm.versions import can

MOST_AXES = {
    "BATCH_MATMUL": 5,
    "BATCH_TO_SPACE_ND": 4,
    "BROADCAST_TO": 5,
    "L2_NORMALIZATION": 4,
    "PAD": 5,
    "PADV2": 5,
    "SLICE": 5,
    "SPACE_TO_BATCH_ND": 4,
    "SQUEEZE": 8,
    "STRIDED_SLICE": 4,
    "TRANSPOSE": 5,
}
"""Axes of operands and results above which Prepare fails. All other operators that the converter
makes of tensors of five or six axes ran on the wheel. Source: tensorflow/lite/micro/kernels of
tflite-micro 90b983c, tried on the wheel by `tests/tflm/test_what_cannot_run`."""
COPY_SHAPES = frozenset((
    "ADD", "ADD_N", "ARG_MAX", "ARG_MIN", "CAST", "CEIL", "CONCATENATION", "CUMSUM", "DEQUANTIZE",
    "DIV", "DYNAMIC_UPDATE_SLICE", "ELU", "EQUAL", "EXP", "EXPAND_DIMS", "FILL", "FLOOR",
    "FLOOR_DIV", "FLOOR_MOD", "FULLY_CONNECTED", "GREATER", "GREATER_EQUAL", "HARD_SWISH",
    "LEAKY_RELU", "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "LOG_SOFTMAX", "MAXIMUM",
    "MINIMUM", "MUL", "NEG", "NOT_EQUAL", "PRELU", "RELU", "RELU6", "REVERSE_V2", "ROUND",
    "SELECT_V2", "SOFTMAX", "SQUARED_DIFFERENCE", "SUB", "TANH", "ZEROS_LIKE"
))  # fmt: skip
"""Kinds whose kernels copy the shapes of operands and results into a `RuntimeShape`, which has room
for six axes (`kMaxSmallSize`, kernels/internal/runtime_shape.h:37) and asserts that there are no
more; where asserts are left out (NDEBUG) it writes behind its array, on the stack. Whether that is
seen depends on the compiler and on the number of axes: the wheel runs ADD of int16 with 32 axes,
and dies of RELU of int8 with 12. CONCATENATION and REVERSE_V2 refuse more by themselves. Other
kinds that may have so many axes read the shapes where they lie, and run on the wheel with 32.
Source: `GetTensorShape` in tensorflow/lite/micro/kernels of tflite-micro 90b983c, with CMSIS-NN."""
COPY_SHAPES_OF_FLOATS = frozenset(("LOGISTIC", "QUANTIZE"))
"""Kinds that do so for operands of float32 only (logistic.cc:50, quantize_common.cc:103)."""
MOST_JOINED = 10
"""Operands of CONCATENATION above which its Prepare fails, constants and repeated ones included
(`kMaxInputNum`, concatenation.cc:31 of tflite-micro 90b983c, unchanged since 2021)."""
CONSTANT_OPERANDS = {
    "BROADCAST_TO": (1,), "EXPAND_DIMS": (1,), "FILL": (0,), "PAD": (1,), "PADV2": (1,),
    "RESIZE_BILINEAR": (1,), "RESIZE_NEAREST_NEIGHBOR": (1,), "SPLIT": (0,), "SPLIT_V": (2,),
    "STRIDED_SLICE": (1, 2, 3), "TRANSPOSE": (1,),
}  # fmt: skip
"""Kinds -> operands that must be constants: Prepare fails otherwise ("Non-constant >...< tensor is
not supported"). TFLM of January 2023 asks for the constant in some of these kernels only, and in
the others reads at Prepare what is not there yet. Source: `IsConstantTensor` in
tensorflow/lite/micro/kernels of tflite-micro 90b983c and 172aa57."""
_WRITE_THEIR_SHAPES = frozenset((
    "BATCH_MATMUL", "DEPTH_TO_SPACE", "EMBEDDING_LOOKUP", "GATHER", "GATHER_ND", "L2_POOL_2D",
    "RESHAPE", "SPACE_TO_DEPTH"
))  # fmt: skip
"""Kinds whose Prepare writes the shape of the result, so that the one in the file does not tell
(`CreateWritableTensorDimsWithCopy` in tensorflow/lite/micro/kernels of tflite-micro 90b983c)."""
_FEWER_AXES = (
    "merge axes that lie side by side, by a RESHAPE before and behind it, as `tflm-plan IN OUT` "
    "does of TRANSPOSE and STRIDED_SLICE, or leave it to the application"
)
_FEWER_OPERANDS = "`tflm-plan IN OUT` joins some of them first, by a CONCATENATION of their own"
_COMPUTED_AHEAD = (
    "TFLM's kernel takes constants there; `tflm-plan IN OUT` computes ahead what follows from "
    "shapes alone"
)
_PADDED_PARTS = (
    "SPACE_TO_BATCH_ND that pads: TFLM's kernel pads with what lies in memory (nobody writes its "
    "output_offset, space_to_batch_nd.cc); `tflm-plan IN OUT` writes a dilated convolution, or a "
    "PAD before it"
)
_NOT_EMPTY = (
    "TFLM takes an empty tensor for one of unknown size, and refuses it; build the model without it"
)
_FREEZE = (
    "its weights are not in the file. Freeze the function's variables before it is converted "
    "(convert_variables_to_constants_v2)"
)
UNPLACED_SCRATCH = (
    "its kernel requests scratch in a sub-graph that the main graph does not call, and TFLM writes "
    "the address of such scratch to a wild place; convert the model again with the signature of "
    "that sub-graph left out"
)
"""What happens to scratch of an operator that only a further signature runs. TFLM follows the main
graph alone (micro_allocator.cc:1156 of tflite-micro 90b983c) to tell each request where its address
belongs (`output_ptr`, micro_allocation_info.cc:313); CommitPlan then writes all addresses, through
whatever lay in memory if nobody told (micro_allocator.cc:140)."""


def cannot_run(model: Model, target: Target) -> list[str]:
    """What the target's TFLM cannot run of a model: one message for each reason, with the first
    operator that has it, its number, and what to do."""
    return [message(places, reason) for reason, places in refused_in(model, target).items()]


def refused_in(model: Model, target: Target) -> dict[str, list[tuple[int, Op]]]:
    """What the target's TFLM cannot run of a model: each reason with the operators that have it,
    and their numbers."""
    called = {*reachable([model.main])}
    apart = {op for graph in model.graphs if graph not in called for op in graph.ops}
    return _refused_places(list(model.ops()), target, apart)


def refused_operators(
    ops: Sequence[Op], target: Target, apart: Collection[Op] = frozenset()
) -> list[str]:
    """`cannot_run` for all operators of a model. apart: those in graphs that the main graph does
    not call."""
    places = _refused_places(ops, target, apart)
    return [message(at, reason) for reason, at in places.items()]


def _refused_places(
    ops: Sequence[Op], target: Target, apart: Collection[Op]
) -> dict[str, list[tuple[int, Op]]]:
    variables = _Variables(ops)
    places_by_reason: dict[str, list[tuple[int, Op]]] = {}
    for number, op in enumerate(ops):
        reasons = (
            refusal(op, target),
            _of_axes(op, target),
            _of_joined(op),
            _of_computed(op),
            _of_padded_parts(op),
            _of_empty_result(op, target),
            refusal_of_scales(op),
            refusal_of_channel_scales(op, target),
            refusal_of_narrow_bias(op, target),
            *refusals_of_unread(op),
            variables.refusal(op),
            UNPLACED_SCRATCH if op in apart and _has_known_scratch(op, target) else None,
        )
        for reason in filter(None, reasons):
            places_by_reason.setdefault(reason, []).append((number, op))
    return places_by_reason


def message(places: Sequence[tuple[int, Op]], reason: str) -> str:
    """A message: the first of the operators that share a reason, its number, how many more there
    are, and the reason."""
    (number, op), *others = places
    more = f" and {len(others)} more" if others else ""
    return f"{op.label} (number {number}){more}: {reason}"


def _of_axes(op: Op, target: Target) -> str | None:
    """The reason why an operator has too many axes for its kernel; None if it has not."""
    most = MOST_AXES.get(op.kind)
    if most is None and _copies_shapes(op):
        most = 6 if can(target, "shapes_of_six_axes") else 5
    axes = max((len(t.shape or ()) for t in (*op.operands(), *op.outputs)), default=0)
    if most is None or axes <= most:
        return None
    return f"{op.kind} of {axes} axes: TFLM's kernel takes {most} at most; {_FEWER_AXES}"


def _copies_shapes(op: Op) -> bool:
    """Whether its kernel copies shapes into arrays of a fixed size."""
    if op.kind in COPY_SHAPES_OF_FLOATS:
        return any(t.type_name == "float32" for t in op.operands())
    return op.kind in COPY_SHAPES


def joins_too_many(op: Op) -> bool:
    """Whether it is a CONCATENATION of more operands than its kernel takes."""
    return op.kind == "CONCATENATION" and len(op.inputs) > MOST_JOINED


def _of_joined(op: Op) -> str | None:
    """The reason why a CONCATENATION is refused, for its operands or its activation; None if it is
    not."""
    if op.kind == "CONCATENATION" and op.options.activation:
        return "CONCATENATION with an activation: TFLM's kernel takes none; put it behind"
    if not joins_too_many(op):
        return None
    return (
        f"CONCATENATION of {len(op.inputs)} operands: TFLM's kernel takes {MOST_JOINED} at most; "
        f"{_FEWER_OPERANDS}"
    )


def _of_computed(op: Op) -> str | None:
    """The reason why an operand that an operator computes is refused; None if none is."""
    operands = [op.inputs[i] for i in CONSTANT_OPERANDS.get(op.kind, ()) if i < len(op.inputs)]
    computed = next((t for t in operands if t is not None and not t.is_constant), None)
    if computed is None:
        return None
    more = f"; {FREE_BATCH}" if counts_a_shape(op) else ""
    return f"{op.kind} of numbers that are computed: {_COMPUTED_AHEAD}{more}"


def _of_padded_parts(op: Op) -> str | None:
    """The reason why a SPACE_TO_BATCH_ND computes garbage; None if it pads nothing."""
    if op.kind != "SPACE_TO_BATCH_ND" or len(op.inputs) < 3:
        return None
    return _PADDED_PARTS if any(integers(op.inputs[2]) or ()) else None


def _of_empty_result(op: Op, target: Target) -> str | None:
    """The reason why a result is refused for want of elements; None if none is. TFLM takes one axis
    of length 0 for a scalar (CheckDynamicTensors, micro_interpreter_graph.cc:50)."""
    if op.kind in _WRITE_THEIR_SHAPES or not can(target, "refuses_empty_results"):
        return None
    shapes = (t.shape or () for t in op.outputs)
    empty = next((s for s in shapes if s != (0,) and 0 in s), None)
    if empty is None:
        return None
    return f"{op.kind} with a result of {' x '.join(map(str, empty))}: {_NOT_EMPTY}"


def _has_known_scratch(op: Op, target: Target) -> bool:
    """Whether the target's kernel is known to request scratch; what is assumed of kernels that
    nobody has read does not count."""
    known = library_of(target).is_exact and has_entry(op)
    return known and bool(scratch_requests(op, target))


class _Variables:
    """The resource variables of a model that an operator writes."""

    def __init__(self, ops: Iterable[Op]) -> None:
        written = [_variable(op) for op in ops if op.kind == "ASSIGN_VARIABLE"]
        self._written = {*written}

    def refusal(self, op: Op) -> str | None:
        """The reason why an operator reads nothing; None if it reads no variable, or one that has
        a value, or may have."""
        if op.kind != "READ_VARIABLE" or None in self._written:
            return None
        variable = _variable(op)
        if variable is None or variable in self._written:
            return None
        return f"READ_VARIABLE of a variable that no operator writes: {_FREEZE}"


def _variable(op: Op) -> tuple[bytes | None, bytes | None] | None:
    """Container and name of the variable that an operator reads or writes; None if its handle
    comes from elsewhere, as from a caller."""
    handle = op.inputs[0] if op.inputs else None
    maker = None if handle is None else handle.producer
    return maker.options.variable if maker is not None and maker.kind == "VAR_HANDLE" else None
