"""Declares the shapes of a model that was converted with a free batch as they are for one image.

    Dense on a sequence, as Keras writes it: TFLM takes 1 x 1 as declared, and computes garbage
    (1, 6, 8) --RESHAPE, shape computed--> declared (1, 1), is (6, 8) --FULLY_CONNECTED 8 to 4-->

LiteRT computes all shapes when it loads a model and where an operator asks for one, and is asked
for them. They are taken if they are the same for two inputs, if nothing is left in the cleaned-up
model that asks for a shape which a runtime computes, and if LiteRT gives the same outputs for the
model as it was and as it is declared then. No operator changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from tflm_planner.model.clone import clone
from tflm_planner.model.edit import resize
from tflm_planner.model.ir import Model, Op
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.support.errors import ModelError
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.words import count
from tflm_planner.tflm.declared_shapes import misdeclaration
from tflm_planner.transforms.normalize import clean_up
from tflm_planner.verification.on_litert import Shape, computed_on_litert

_SHAPED_BY = {"RESHAPE": 1, "FILL": 0, "TILE": 1, "BROADCAST_TO": 1}
"""Kinds whose result has the shape that an operand says -> which operand."""
_INPUTS = 2


class Declared(NamedTuple):
    """A file whose shapes are declared as they are. note: what was done, or an empty string."""

    data: bytes
    note: str = ""


def declared_anew(data: bytes, on_progress: Progress = silent) -> Declared:
    """The model in `data` with shapes as they are for one image; the same bytes if its shapes are
    right, or if the right ones cannot be told."""
    model = read_model(data)
    if misdeclaration(model.ops()) is None or len(model.graphs) > 1:
        return Declared(data)
    on_progress("asking LiteRT for the shapes of one image")
    return as_for_one_image(data)


@lru_cache(maxsize=2)  # a command asks for it some times
def as_for_one_image(data: bytes) -> Declared:
    """The same, of a model of one graph."""
    model = read_model(data)
    computed = computed_on_litert(data, model, _INPUTS)
    if computed is None:
        return Declared(data)
    wrong = {
        place: shape
        for place, (tensor, shape) in enumerate(
            zip(model.main.tensors, computed.shapes, strict=True)
        )
        if shape is not None and not tensor.is_constant and (tensor.shape or ()) != shape
    }
    tensors = model.main.tensors
    if any(tensors[place] in model.main.inputs for place in wrong):
        return Declared(data)
    right = _with_shapes(data, wrong)
    if not _is_right(right):
        return Declared(data)
    declared = write_model(right)
    if computed_on_litert(declared, right, _INPUTS) != computed:
        return Declared(data)
    changed = count(len(wrong), "tensor", "tensors")
    return Declared(
        declared,
        f"{changed} declared with another shape, the one that there is for one image: the model "
        "was converted with a free batch, and TFLM takes shapes as they are declared",
    )


def _with_shapes(data: bytes, shapes: Mapping[int, Shape]) -> Model:
    """The model in `data` with other shapes of tensors of its main graph, by their places."""
    model = read_model(data)
    for place, shape in shapes.items():
        resize(model.main.tensors[place], shape)
    return model


def _is_right(model: Model) -> bool:
    """Whether nothing is declared wrongly any more, and no shape is computed when the model runs,
    once it is cleaned up."""
    cleaned = clone(model)
    try:
        clean_up(cleaned)
    except ModelError:
        return False
    return misdeclaration(cleaned.ops()) is None and not any(map(_asks_for_shape, cleaned.ops()))


def _asks_for_shape(op: Op) -> bool:
    operand = _SHAPED_BY.get(op.kind)
    said = op.inputs[operand] if operand is not None and operand < len(op.inputs) else None
    return said is not None and not said.is_constant
