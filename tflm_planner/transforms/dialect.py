"""The TFLM dialect: views cost no operator.

    portable   X -SLICE-> V -CONV_2D-> P -CONCATENATION-> Y     V lies in X, P in Y: both copies
    dialect    X          V -CONV_2D-> P                  Y     write what is there already

For TFLM a tensor is an address, and it need not have a producer. So if the plan makes an operator
copy every byte onto itself, the operator is dropped, and its result keeps its place in its parent's
memory. Only TFLM can run the resulting model, and only with its plan: the portable model stays the
reference.

TFLM then no longer knows all life spans by which it places scratch; `scratch_faults` finds scratch
of the dialect that would lie over a byte that is still needed. TFLM keeps a graph output without a
producer alive only at the very end. Such an output goes through a last RESHAPE onto itself if the
model uses RESHAPE; otherwise its producer is dropped only if no scratch would overwrite it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tflm_planner.memory.problem import Plan, validate
from tflm_planner.model.constants import integers
from tflm_planner.model.draft import reshape_output
from tflm_planner.model.edit import drop_views, resize
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.options import SAME_PADDING
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.ops import sharings
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Slide
from tflm_planner.ops.roles import RESHAPES
from tflm_planner.ops.window import window_of
from tflm_planner.support.words import count
from tflm_planner.tflm.kernels import adds_pixels_alike
from tflm_planner.tflm.kernels.scratch import ScratchModel
from tflm_planner.tflm.liveness import (
    VIEW_MAKERS,
    InputOverlapRule,
    Timeline,
    makes_views,
    no_input_overlaps,
    planning_problem,
    timeline_of,
)
from tflm_planner.tflm.placement import placement_of


@dataclass(frozen=True)
class Dialect:
    """Drops the operators that `offsets` (tensor -> bytes) make copy onto themselves. This must be
    the last structural change before `AttachPlan`, with the same offsets. outputs: whether
    operators that make graph outputs may be dropped too."""

    offsets: Mapping[Tensor, int]
    outputs: bool = True

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        self_copies = [
            op
            for op in model.main.ops
            if self._may_drop(op, model) and copies_onto_itself(op, self.offsets)
        ]
        drop_views(model, model.main, self_copies)
        left = sorted({op.kind for op in model.main.ops if makes_views(op)})
        dropped = count(len(self_copies), "operator", "operators")
        notes = [f"TFLM dialect: {dropped} dropped, with views in place of results"]
        if left:
            notes.append(f"TFLM dialect: {', '.join(left)} are still needed, for copies")
        return notes

    def _may_drop(self, op: Op, model: Model) -> bool:
        """Whether `op` may be dropped if it copies onto itself. A RESHAPE of the model's that makes
        a graph output stays: it keeps the output alive."""
        makes_output = any(t in model.main.outputs for t in op.outputs)
        if makes_views(op):
            return self.outputs or not makes_output
        return op.kind in RESHAPES and not makes_output


@dataclass(frozen=True)
class Crop:
    """Prepares a model for the dialect, before planning; LiteRT refuses the resulting model.

    A window with SAME padding does not compute its last rows if its readers use only the rows
    before them: TFLM computes as many rows as the result declares. Windows of one pixel are left as
    they are: CMSIS-NN's 1x1 convolution (arm_convolve_1x1_s8_fast) counts the pixels of its input,
    and would write past the end of a shorter result. Graph outputs that are joined from tiles get a
    last RESHAPE, if the firmware has that operator, so that their CONCATENATION can be dropped.
    """

    has_reshape: bool
    """Whether the firmware has RESHAPE: whether the file uses it."""

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        rows = 0
        for op in list(model.main.ops):
            read = _rows_read(op, model)
            if read is not None:
                shape = op.outputs[0].shape or (0, 0)
                rows += shape[1] - read
                resize(op.outputs[0], (shape[0], read, *shape[2:]))
        self_copies = [
            op for op in model.main.ops if op.kind == "SLICE" and _is_identity(op, model)
        ]
        drop_views(model, model.main, self_copies, merge=True)
        joined = [t for t in model.main.outputs if t.producer and t.producer.kind in VIEW_MAKERS]
        if joined and self.has_reshape:
            for t in dict.fromkeys(joined):
                reshape_output(model, model.main, t)
        unread = count(rows, "row", "rows")
        return [f"TFLM dialect: not computed: {unread} that nobody reads"] if rows else []


def copies_onto_itself(op: Op, offsets: Mapping[Tensor, int]) -> bool:
    """Whether the plan makes `op` write every byte to the address at which it reads it."""
    moved = [s for s in sharings(op) if s.same_bytes]
    operands = [t for t in op.operands() if not t.is_constant]
    pairs = {(s.operand, s.result, s.distance) for s in moved}
    complete = len(moved) == (len(operands) if op.kind == "CONCATENATION" else len(op.outputs))
    all_placed = all(a in offsets and b in offsets for a, b, _ in pairs)
    constants = op.kind == "CONCATENATION" and len(operands) < len(op.operands())
    return complete and all_placed and not constants and all(
        offsets[b] - offsets[a] == distance for a, b, distance in pairs
    )  # fmt: skip


def scratch_faults(
    portable: Timeline,
    model: Model,
    offsets: Mapping[Tensor, int],
    scratch_of: ScratchModel,
    input_overlaps_of: InputOverlapRule = no_input_overlaps,
) -> list[str]:
    """Messages about bytes that scratch of the dialect `model` would overwrite while they are
    needed. `portable`: the timeline from before operators were dropped, whose life spans count. It
    has the graphs that only further signatures offer (`entry_graphs`)."""
    timeline = timeline_of(model, scratch_of, entries=entry_graphs(model))
    scratch = placement_of(timeline, offsets).scratch_offsets
    tensors = [offsets[t] for t in portable.planned]
    assert len(scratch) == len(portable.scratch), "operators with scratch were dropped"
    problem = planning_problem(portable, input_overlaps_of)
    wrong = validate(problem, Plan((*tensors, *scratch)))
    return [str(w) for w in wrong]


def _rows_read(op: Op, model: Model) -> int | None:
    """The number of rows of a SAME window's result that SLICEs read; None unless they read fewer
    than all."""
    window = window_of(op)
    if window is None or op.options.padding != SAME_PADDING or window.kernel == (1, 1):
        return None
    if not adds_pixels_alike(op):
        return None
    (result,) = op.outputs
    outputs = set(model.main.outputs)
    links = axis_map(op).links_of(1)
    if result in outputs or not result.consumers:
        return None
    if not links or not isinstance(links[0].rule, Slide):
        return None
    last = 0
    for consumer in result.consumers:
        if consumer.kind != "SLICE":
            return None
        begin, sizes = integers(consumer.inputs[1]), consumer.outputs[0].shape or ()
        if begin is None or len(begin) != 4 or len(sizes) != 4:
            return None
        last = max(last, begin[1] + sizes[1])
    return last if last < (result.shape or (0, 0))[1] else None


def _is_identity(op: Op, model: Model) -> bool:
    """Whether a SLICE takes its whole operand, so that its readers can read the operand instead."""
    data, result = op.inputs[0], op.outputs[0]
    outputs = set(model.main.outputs)
    return data is not None and data.shape == result.shape and result not in outputs


__all__ = ["Crop", "Dialect", "copies_onto_itself", "scratch_faults"]
