"""Removes parts of the file that cost flash and that no computation needs.

    used by no computation       tensor names, ranges, descriptions, debug metadata, empty buffers
    read by no kernel            scales and zero points of the biases of convolutions
    read by LiteRT only          all zero points of a filter but the first (`KeepOneZeroPoint`)

TFLM copies every quantisation that it fetches into temporary memory, whether it is used or not:
without those of biases, Prepare needs less of it. TFLM and lean firmware compute multipliers only
from the scales of operand, filter and result, so these scales stay.

Read from tflite-micro 90b983c and the Arduino library of 2023: the reference and the CMSIS-NN
kernels of `PER_CHANNEL`, `PopulateConvolutionQuantizationParams` (kernel_util.cc) and
`InitializeTfLiteTensorFromFlatbuffer` (micro_allocator.cc), where one zero point of a filter
stands for all of them. LiteRT refuses such a filter. This module must not know targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflm_planner.model.edit import (
    clear_fields,
    drop_buffers,
    remove_metadata,
    rename,
    set_quantization,
    share_buffer,
    used_buffers,
)
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.quantization import NOT_QUANTIZED
from tflm_planner.ops.roles import PRODUCTS, ProductRoles
from tflm_planner.tflm.lean.pool import POOL_METADATA
from tflm_planner.transforms.attach_plan import PLAN_METADATA

READ_METADATA = frozenset(
    {
        PLAN_METADATA,
        POOL_METADATA,
        "model_control_dependencies",  # LiteRT: what must run before what
        "reduced_precision_support",  # LiteRT: whether float16 will do
    }
)
"""Metadata that a runtime reads."""
PER_CHANNEL = PRODUCTS.keys() - {"FULLY_CONNECTED"}
"""Operators whose multipliers are per channel. In other products (FULLY_CONNECTED, SVDF) TFLM reads
the bias's scale, to check it."""
_Place = Callable[[ProductRoles], int]


@dataclass(frozen=True)
class Minify:
    """Drops what no runtime computes with. kernels: also the quantisation that no kernel reads. The
    names of inputs and outputs stay, and so do signatures: applications find tensors by them."""

    kernels: bool = True

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        for entry in list(model.metadata):
            if entry.name not in READ_METADATA:
                remove_metadata(model, entry.name)
        model.metadata_buffers = []
        clear_fields(model, "description", "metadata_buffer")
        for owner in (*model.graphs, *model.ops()):
            clear_fields(owner, "debug_metadata_index")
        _drop_names(model)
        unread = _biases(model) if self.kernels else set[Tensor]()
        for t in model.tensors():
            clear_fields(t, "shape_signature")
            set_quantization(t, NOT_QUANTIZED if t in unread else t.quantization.without_range())
        _share_empty_buffers(model)
        return []


@dataclass(frozen=True)
class KeepOneZeroPoint:
    """Keeps only the first zero point of each filter, which is all that TFLM reads. LiteRT then
    refuses the model."""

    def apply(self, model: Model) -> list[str]:
        """A note if there was anything to drop."""
        repeating = [t for t in _filters(model) if t.quantization.repeats_zero_point]
        for t in repeating:
            set_quantization(t, t.quantization.with_one_zero_point())
        return [f"one zero point kept for each of {len(repeating)} filters"] if repeating else []


def _drop_names(model: Model) -> None:
    shown = _visible_tensors(model.graphs[:1], model)
    for graph in model.graphs:
        rename(graph, "")
        for t in graph.tensors:
            if t not in shown:
                rename(t, "")


def _visible_tensors(graphs: list[Graph], model: Model) -> set[Tensor]:
    """Inputs and outputs of graphs and of signatures."""
    ends = {t for g in graphs for t in (*g.inputs, *g.outputs)}
    return ends | {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)}


def _biases(model: Model) -> set[Tensor]:
    """Constants that are used only as biases of convolutions with integer operands."""
    biases = _constants_used_as(model, lambda roles: roles.bias)
    return {t for t in biases if t.type_name in ("int32", "int64")}


def _filters(model: Model) -> list[Tensor]:
    """Constants that are used only as filters of such convolutions."""
    filters = _constants_used_as(model, lambda roles: roles.weights)
    return [t for t in filters if t.type_name in ("int8", "int4")]


def _constants_used_as(model: Model, place: _Place) -> list[Tensor]:
    """Constants that every consumer reads as this one operand."""
    shown = _visible_tensors(model.graphs, model)
    return [
        t
        for t in model.tensors()
        if t.is_constant
        and t not in shown
        and t.consumers
        and all(_takes(op, t, place) for op in t.consumers)
    ]


def _takes(op: Op, tensor: Tensor, place: _Place) -> bool:
    roles = PRODUCTS[op.kind] if op.kind in PER_CHANNEL else None
    if roles is None or len(op.inputs) <= roles.weights:
        return False
    data = op.inputs[roles.data]
    return (
        data is not None
        and data.type_name in ("int8", "int16")
        and [i for i, t in enumerate(op.inputs) if t is tensor] == [place(roles)]
    )


def _share_empty_buffers(model: Model) -> None:
    """Let all tensors without bytes of their own share the first empty buffer."""
    (first, *_) = model.buffers or [None]
    if first is not None and (first.data is None or first.data.size == 0) and not first.external:
        for t in model.tensors():
            if not t.is_constant and t.external_data == 0:
                share_buffer(t, first)
    used = {*used_buffers(model), *model.buffers[:1]}
    drop_buffers(model, [b for b in model.buffers if b not in used])
