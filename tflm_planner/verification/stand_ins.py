"""The file that a runtime is given in place of a model with TILE, which it would refuse although it
computes what the model does.

    TFLM     lacks the kernel. Instead of an original it runs one that terms prove equal for every
             input, with RESIZE_NEAREST_NEIGHBOR (`transforms.resize_repeats`)
    LiteRT   registers its reference kernel for versions 1 and 2 alone, though the same code serves
             version 3, of int8 and int16 (AddBuiltin(BuiltinOperator_TILE, ..., 1, 2) in
             tensorflow/lite/kernels/register_ref.cc). So the file asks for version 2
"""

from __future__ import annotations

from functools import lru_cache

from tflm_planner.model.edit import set_version
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.transforms.resize_repeats import resize_repeats
from tflm_planner.verification.terms import prove_by_terms
from tflm_planner.verification.verdict import EQUAL

_KIND = "TILE"
_REGISTERED = 2
"""The last version of TILE that LiteRT's reference kernels are registered for."""


def stand_in(runtime: str, data: bytes, model: Model, *, original: bool) -> bytes:
    """The file that `runtime` is given for the model in `data`. original: whether others are
    compared with it; a result must run as it is on TFLM."""
    if not any(op.kind == _KIND for op in model.ops()):
        return data
    if runtime == "LiteRT":
        return _with_registered_version(data)
    return _without_repeats(data) if original else data


@lru_cache(maxsize=4)  # an original is asked for some times; its terms take a second
def _without_repeats(data: bytes) -> bytes:
    model = read_model(data)
    if not resize_repeats(model) or prove_by_terms(read_model(data), model).status != EQUAL:
        return data
    return write_model(model)


def _with_registered_version(data: bytes) -> bytes:
    model = read_model(data, dialect=True)
    for code in {op.code for op in model.ops() if op.kind == _KIND}:
        if code.raw.version > _REGISTERED:
            set_version(code, _REGISTERED)
    return write_model(model)
