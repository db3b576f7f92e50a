"""Renders a model that was split for streamed input: the report, and the C++ code that runs it.

It must not know how the split was found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Literal

from tflm_planner.model.ir import Model, Tensor
from tflm_planner.pipeline.stream_input.pairs import StreamedPair
from tflm_planner.report.json import streamed as types
from tflm_planner.report.json.common import SCHEMA_VERSION
from tflm_planner.report.text.bounds import figure, long_figure
from tflm_planner.report.text.report import check_sentence, sentence_of_terms
from tflm_planner.report.text.safe import cannot_run_lines, safe_text
from tflm_planner.support.documents import plain, view
from tflm_planner.support.errors import UsageError
from tflm_planner.support.stopping import REASON_TEXTS, Reason
from tflm_planner.support.version import __version__
from tflm_planner.support.words import count
from tflm_planner.tflm.arena.uncertainty import bound_of, bytes_to_reserve, may_need_more
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.row_loop.operand_rows import row_elements
from tflm_planner.verification import Verdict
from tflm_planner.verification.terms import TermsProof
from tflm_planner.verification.verdict import EQUAL

_TYPES = {"int8": "int8_t", "int16": "int16_t", "float32": "float"}


def render_streamed(
    pair: StreamedPair,
    before: int,
    verdict: Verdict | None,
    stopped: Reason | None = None,
    terms: TermsProof | None = None,
) -> Iterator[str]:
    """Yield the lines of the report. `before`: bytes of arena of the original model. `stopped`: why
    the search was cut short, or None. `terms`: the proof for every input."""
    yield from cannot_run_lines(pair.cannot_run, width=100)
    yield from _lines_of_sram(pair, before)
    yield from _lines_of_halves(pair)
    notes = (*((REASON_TEXTS[stopped],) if stopped else ()), *pair.refused, *_doubts(pair))
    for i, note in enumerate(notes):
        yield f"  {'' if i else 'notes':<12} {safe_text(note)}"
    if verdict is None:
        yield "  verified     no"
        return
    if terms is not None:
        yield f"  proved       {sentence_of_terms(terms)}"
    yield f"  verified     {_verdict_words(verdict, terms)}"
    for check in verdict.checks:
        yield f"               {check.runtime}: {check_sentence(check)}"


def _is_verified(pair: StreamedPair, verdict: Verdict | None, terms: TermsProof | None) -> bool:
    """Whether the pair is proved equal to the model, and the target's TFLM can run it."""
    if verdict is None or pair.cannot_run:
        return False
    return verdict.proved or _stands_alone(verdict, terms)


def _verdict_words(verdict: Verdict, terms: TermsProof | None) -> str:
    if verdict.proved:
        return "yes, the pair computes the same bits"
    if _stands_alone(verdict, terms):
        return "yes, by the proof alone: no runtime here compared the pair with the model"
    return "NO"


def _stands_alone(verdict: Verdict, terms: TermsProof | None) -> bool:
    """Whether the proof by terms is the only proof, since no runtime compared the pair."""
    is_equal = terms is not None and terms.status == EQUAL
    return is_equal and not verdict.proved and not verdict.differs


def _lines_of_sram(pair: StreamedPair, before: int) -> Iterator[str]:
    saved = before - pair.sram
    bound = bound_of(pair.uncertainties)
    sizes = long_figure(before, bound), long_figure(pair.sram, bound)
    doubt = ", as far as it is known" if may_need_more(bound) else ""
    yield f"  SRAM         {sizes[0]} -> {sizes[1]}, both halves"
    yield f"  saved        {saved:,} B, {100 * saved / max(before, 1):.1f} %{doubt}"
    if saved <= 0:
        yield "               splitting does not pay: what the front costs is more than the input"


def _lines_of_halves(pair: StreamedPair) -> Iterator[str]:
    schedule, front, back = pair.schedule, pair.front.inspection, pair.back.inspection
    image, boundary = front.model.main.inputs[0], back.model.main.inputs[0]
    bound = bound_of(pair.uncertainties)
    yield (
        f"  front        {count(len(pair.ops), 'operator', 'operators')} of the model (to number "
        f"{pair.ops[-1]}), {schedule.turns} strips of {schedule.rows} rows "
        f"({image.nbytes:,} B) of {schedule.height}"
    )
    yield (
        f"               {figure(pair.front_arena.persistent, bound)} persistent; "
        f"{figure(pair.front_arena.shared, bound)} in the back's room, "
        f"{count(len(schedule.fills), 'halo', 'halos')} among them"
    )
    yield (
        f"  back         arena {figure(back.arena.arena, back.arena.bound)}: head "
        f"{back.arena.head:,}, tail {back.arena.tail:,}; its input is {safe_text(boundary.name)} "
        f"{list(boundary.shape or ())}, {boundary.nbytes:,} B"
    )
    yield f"  instructions {100 * (pair.slowdown - 1):+.1f} % by our model"
    for half, model in (("front", front.model), ("back", back.model)):
        yield f"  {half + ' uses':<12} {', '.join(_methods(model))}"


def streamed_to_json(
    pair: StreamedPair,
    before: int,
    target: Target,
    verdict: Verdict | None,
    stopped: Reason | None = None,
    terms: TermsProof | None = None,
) -> dict[str, Any]:
    """The report as the JSON document `types.StreamedJson`."""
    schedule = pair.schedule
    return plain(
        view(
            pair,
            types.StreamedJson,
            schema_version=SCHEMA_VERSION,
            target=target.id,
            sram_before=before,
            bound=bound_of(pair.uncertainties),
            front=view(
                pair.front_arena,
                types.StreamedFrontJson,
                operators=list(pair.ops),
                reserved=front_persistent_bytes(pair),
                arena_alone=pair.front.inspection.arena.arena,
            ),
            back=pair.back.inspection.arena,
            doubts=_doubts(pair),
            strips=view(
                schedule,
                types.StripsJson,
                result_rows=schedule.made,
                fills=[_finite(v) for v in schedule.fills],
            ),
            instructions_relative=pair.slowdown,
            stopped=stopped,
            proof=terms,
            checks=() if verdict is None else verdict.checks,
            verified=_is_verified(pair, verdict, terms),
        )
    )


def _finite(value: float) -> float | Literal["inf", "-inf"]:
    """A number for JSON, which has no infinities."""
    if math.isfinite(value):
        return value
    return "inf" if value > 0 else "-inf"


def _doubts(pair: StreamedPair) -> list[str]:
    """Why the figures are not exact, and what that means for the memory reserved for the
    front."""
    words = [uncertainty.words for uncertainty in pair.uncertainties]
    if not may_need_more(bound_of(pair.uncertainties)):
        return words
    room = f"the front's room of {pair.front_arena.shared:,} B is fixed in the back's file"
    return [*words, f"{room}: where kernels need more, AllocateTensors of the front fails"]


def front_persistent_bytes(pair: StreamedPair) -> int:
    """Bytes to reserve for the persistent memory of the front, with a margin if the figure is
    uncertain."""
    return bytes_to_reserve(pair.front_arena.persistent, pair.front.inspection.arena.uncertainties)


def _methods(model: Model) -> list[str]:
    kinds = sorted({(op.kind, op.code.custom is not None) for op in model.ops()})
    return [resolver_method(kind, custom=custom) or f"{kind} (custom)" for kind, custom in kinds]


def render_header(pair: StreamedPair, name: str, target: Target) -> str:
    """A C++ header with the sizes of this split, and the functions that run it. `name`: the
    namespace is named after it."""
    space = _identifier(name)
    guard = f"TFLM_PLAN_{space.upper()}_H_"
    front, back = pair.front.inspection.model, pair.back.inspection.model
    halos = [front.main.inputs[place] for place, _ in pair.schedule.states]
    fills = "\n".join(
        f"  std::fill_n(tflite::GetTensorData<{_type(t)}>(front.input({place})), {t.elements}, "
        f"{_literal(t, value)});"
        for (place, _), t, value in zip(
            pair.schedule.states, halos, pair.schedule.fills, strict=True
        )
    )
    clock = "  front.input(1)->data.i32[0] = turn * kClock;\n" if pair.schedule.clock else ""
    text = _TEMPLATE
    for key, value in {
        "VERSION": __version__,
        "TARGET": target.id,
        "GUARD": guard,
        "SPACE": space,
        "CONSTANTS": _constants(pair, back),
        "DOUBTS": "".join(
            f"// {safe_text(words)}\n" for words in (*pair.cannot_run, *_doubts(pair))
        ),
        "FILLS": fills or "  static_cast<void>(front);",
        "CLOCK": clock,
    }.items():
        text = text.replace(f"@{key}@", value)
    return text


def _constants(pair: StreamedPair, back: Model) -> str:
    schedule, boundary = pair.schedule, back.main.inputs[0]
    row = row_elements(boundary) * (boundary.nbytes // boundary.elements)
    values = (
        ("kHeight", schedule.height, "rows of the image"),
        ("kStripRows", schedule.rows, "of them in a strip: what front.input(0) holds"),
        ("kTurns", schedule.turns, "strips; those below the image may hold anything"),
        ("kMadeRows", schedule.made, "rows that come out of a strip"),
        ("kDelay", schedule.delay, "rows that come out before the first one that counts"),
        ("kResultRows", schedule.result_height, "rows of back.input(0)"),
        ("kResultRowBytes", row, ""),
        *((("kClock", schedule.clock, ""),) if schedule.clock else ()),
        ("kFrontPersistent", front_persistent_bytes(pair), f"bytes, alignas(16){_margin(pair)}"),
        ("kBackArena", pair.back.inspection.arena.reserved, f"bytes, alignas(16){_margin(pair)}"),
    )
    return "\n".join(
        f"constexpr int {key} = {value};{f'  // {remark}' if remark else ''}"
        for key, value, remark in values
    )


def _margin(pair: StreamedPair) -> str:
    return ", with a margin: what the board needs is not known" if pair.uncertainties else ""


def _identifier(name: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", name)
    if not words:
        raise UsageError(f"no C++ identifier can be made of {name!r}")
    identifier = "_".join(words).lower()
    return f"{identifier}_strips" if not identifier[0].isdigit() else f"model_{identifier}_strips"


def _type(t: Tensor) -> str:
    return _TYPES[t.type_name]


def _literal(t: Tensor, value: float) -> str:
    if t.type_name != "float32":
        return str(int(value))
    if not math.isfinite(value):
        sign = "-" if value < 0 else ""
        return f"{sign}std::numeric_limits<float>::infinity()"
    return f"{float(value)!r}f"


_TEMPLATE = """// Written by tflm-plan @VERSION@ (stream-input) for @TARGET@; do not edit.
//
//   alignas(16) static uint8_t back_arena[kBackArena], front_persistent[kFrontPersistent];
//   static tflite::MicroInterpreter back(back_model, back_ops, back_arena, kBackArena);
//   back.AllocateTensors();
//   auto* room = @SPACE@::Room(back, front_persistent);
//   static tflite::MicroInterpreter front(front_model, front_ops, room);
//   front.AllocateTensors();
//
//   @SPACE@::Start(front);                                         // before every image
//   for (int turn = 0; turn < @SPACE@::kTurns; ++turn) {
//     read_rows(front.input(0), turn * kStripRows, kStripRows);     // yours: the next rows
//     @SPACE@::Strip(front, back, turn);
//   }
//   back.Invoke();                                                 // its outputs are the model's

#ifndef @GUARD@
#define @GUARD@

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tensorflow/lite/kernels/internal/tensor_ctypes.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"

namespace @SPACE@ {

@DOUBTS@@CONSTANTS@

// Memory for the front: what persists, and an input of the back that nothing reads. The back must
// be allocated. Whatever the front leaves there is gone when the back has run.
inline tflite::MicroAllocator* Room(tflite::MicroInterpreter& back, uint8_t* front_persistent) {
  return tflite::MicroAllocator::Create(front_persistent, kFrontPersistent,
                                        back.input(1)->data.uint8, back.input(1)->bytes);
}

// Fills the halos. To be called before the first strip of every image.
inline void Start(tflite::MicroInterpreter& front) {
@FILLS@
}

// Runs the front on the strip in front.input(0), and appends the rows that come out to the back's
// input. turn: 0 to kTurns - 1, in order.
inline TfLiteStatus Strip(tflite::MicroInterpreter& front, tflite::MicroInterpreter& back,
                          int turn) {
@CLOCK@  if (front.Invoke() != kTfLiteOk) return kTfLiteError;
  const int first = turn * kMadeRows - kDelay;
  const int begin = std::max(first, 0), end = std::min(first + kMadeRows, kResultRows);
  if (begin < end) {
    std::memcpy(back.input(0)->data.raw + begin * kResultRowBytes,
                front.output(0)->data.raw + (begin - first) * kResultRowBytes,
                (end - begin) * kResultRowBytes);
  }
  return kTfLiteOk;
}

}  // namespace @SPACE@

#endif  // @GUARD@
"""
