"""The file that a runtime is given in place of a model that it would refuse, and that computes the
same.

    TFLM     refuses an original for arithmetic on shapes that a converter left in it, for kernels
             that it lacks or has for other types only. Clean-up rewrites much of that
             (`transforms.normalize`): where terms prove the cleaned-up original equal for every
             input, results are compared with that one
    LiteRT   registers its reference kernel of TILE for versions 1 and 2 alone, though the same code
             serves version 3, of int8 and int16 (AddBuiltin(BuiltinOperator_TILE, ..., 1, 2) in
             tensorflow/lite/kernels/register_ref.cc). So the file asks for version 2
"""

from __future__ import annotations

from functools import lru_cache

from tflm_planner.model.edit import limit_versions
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.kernels.operator_allocations import lacks_operators
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.targets import HOST_RUNTIME, load_target
from tflm_planner.transforms.normalize import clean_up
from tflm_planner.verification.terms import prove_by_terms
from tflm_planner.verification.verdict import EQUAL

_HOST = load_target(HOST_RUNTIME)
_REGISTERED = {"TILE": 2}
"""Kinds -> the last version that LiteRT's reference kernels are registered for."""


def as_registered(runtime: str, data: bytes, model: Model) -> bytes:
    """The file of a model that asks for kernels as `runtime` has registered them."""
    if runtime != "LiteRT" or not any(op.kind in _REGISTERED for op in model.ops()):
        return data
    changed = read_model(data, dialect=True)
    limit_versions(changed, _REGISTERED)
    return write_model(changed)


def first_choice(runtime: str, data: bytes, model: Model) -> bytes:
    """The file that a runtime is first given for an original: on TFLM cleaned up where it is known
    not to run the model, or to compute garbage."""
    cleaned = cleaned_up(data) if is_refused(runtime, model) else None
    return data if cleaned is None else cleaned


def is_refused(runtime: str, model: Model) -> bool:
    """Whether a runtime is known not to run a model, or to compute garbage."""
    return runtime == "TFLM" and (lacks_operators(model) or bool(cannot_run(model, _HOST)))


@lru_cache(maxsize=4)  # an original is asked for some times; its terms take a second
def cleaned_up(data: bytes) -> bytes | None:
    """The original in `data`, cleaned up; None if terms do not prove that it computes the same."""
    model = read_model(data)
    try:
        clean_up(model)
    except ModelError:
        return None
    if prove_by_terms(read_model(data), model).status != EQUAL:
        return None
    return write_model(model)
