"""The original that everything made of a file for a target is compared with.

That is the file itself, but for what has to be done before anything can be planned, as the target
would refuse the file, or compute garbage:

    data outside of the flatbuffer    `kept_inside`     the same bytes
    shapes of a free batch            `declare`         LiteRT is asked
    tables in place of operators      `tabulate`        LiteRT is asked
    FULLY_CONNECTED with many scales  `convolve_rows`   terms prove it equal

What LiteRT tells is compared with the file on LiteRT before it is taken. Convolutions are not, as
LiteRT rounds FULLY_CONNECTED of int16 otherwise than its own convolutions and all of TFLM.
"""

from __future__ import annotations

from collections.abc import Callable

from tflm_planner.model.ir import Model, Op
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.support.progress import Progress, silent
from tflm_planner.tflm.channel_scales import has_channel_scales, takes_channel_scales
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.normalize import move_inside
from tflm_planner.transforms.substitutes.convolve_rows import convolve_rows
from tflm_planner.verification.declare import declared_anew
from tflm_planner.verification.tabulate import needs_table, tabulated
from tflm_planner.verification.terms import prove_by_terms
from tflm_planner.verification.verdict import EQUAL


def prepared(
    data: bytes, target: Target, on_progress: Progress = silent
) -> tuple[bytes, list[str]]:
    """The original of the file in `data` for a target, and notes on what was done; the same bytes
    if there was nothing to do."""
    original, notes = as_litert_tells(data, on_progress)
    taken, more = as_target_takes(original, target)
    return taken, [*notes, *more]


def as_litert_tells(data: bytes, on_progress: Progress = silent) -> tuple[bytes, list[str]]:
    """The same as far as every target needs it."""
    inside, moved = kept_inside(data)
    declared, note = declared_anew(inside, on_progress)
    original, notes = tabulated(declared, on_progress)
    return original, [*moved, *filter(None, (note,)), *notes]


def kept_inside(data: bytes) -> tuple[bytes, list[str]]:
    """The model with all its data in the flatbuffer, as TFLM reads none outside; the same bytes if
    it is there."""
    model = read_model(data)
    notes = move_inside(model)
    return (write_model(model), notes) if notes else (data, [])


def as_target_takes(data: bytes, target: Target) -> tuple[bytes, list[str]]:
    """The same as far as one target needs it."""
    return rows_convolved(data, lambda op: not takes_channel_scales(op, target))


def rows_convolved(data: bytes, unwanted: Callable[[Op], bool]) -> tuple[bytes, list[str]]:
    """The model without FULLY_CONNECTED that has several scales and is not wanted; the same bytes
    if there is none, or if terms do not prove the model equal."""
    model = read_model(data)
    notes = convolve_rows(model, unwanted)
    if not notes or prove_by_terms(read_model(data), model).status != EQUAL:
        return data, []
    return write_model(model), notes


def as_in(data: bytes, result: Model, on_progress: Progress = silent) -> bytes:
    """The original of the file in `data`, written as a result that is made of it: without what that
    has no more."""
    original = data if any(b.external for b in result.buffers) else kept_inside(data)[0]
    original = declared_anew(original, on_progress).data
    if not any(map(needs_table, result.main.ops)):
        original, _ = tabulated(original, on_progress)
    kept = {op.operands()[0].type for op in result.ops() if has_channel_scales(op)}
    original, _ = rows_convolved(original, lambda op: op.operands()[0].type not in kept)
    return original
