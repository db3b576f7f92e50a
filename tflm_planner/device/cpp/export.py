"""Exports a model as C++ sources for any TFLM project: data, resolver, arena.

    NAME_model_data.h, .cpp   the file, alignas(16), in flash
    NAME_op_resolver.h        a MicroMutableOpResolver with the operators used, no others; for lean
                              firmware a lean::OpResolver, and the call that finds the pool
    NAME_arena.h              the exact arena of the target, its parts in a comment

Files, guards and identifiers begin with the model's name, so that models can share a folder and a
translation unit. It must not know files: it returns texts. Same model, name and target: same texts.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tflm_planner.device.cpp.names import CppNames, cpp_names
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.report.text.arena import margin_remarks
from tflm_planner.report.text.bounds import hedge, meaning
from tflm_planner.report.text.safe import safe_text
from tflm_planner.support.errors import ModelError
from tflm_planner.support.version import __version__
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.arena.uncertainty import bound_of, may_need_more
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.target import Target
from tflm_planner.transforms.attach_plan import carried_plan

_PER_LINE, _WIDTH = 12, 80
_OWN_MEMORY = "What kernels of the firmware's own allocate is not known, and not counted."


def export(
    data: bytes, name: str, target: Target, *, own_kernels: bool = False
) -> Mapping[str, str]:
    """File name -> text, for the model in `data`. `name`: identifiers are made from it.
    `own_kernels`: whether the firmware has its own kernels for operators that TFLM cannot run.

    Raises ModelError for damaged models, for models whose plan is wrong for the target, and for
    models that the target's TFLM cannot run. Raises UsageError if no identifier can be made from
    `name`. Each error says what to type instead.
    """
    model, arena = arena_in(data, target)
    _refuse_plan(arena, model, target)
    unrunnable = _unrunnable(model, target)
    if unrunnable and not own_kernels:
        raise ModelError(
            f"TFLM cannot run the model: {unrunnable[0]}. Nothing was exported; where the firmware "
            "has kernels of its own for this, --own-kernels exports the rest"
        )
    names = cpp_names(name)
    stamp = f"// Written by tflm-plan {__version__} (export); do not edit."
    head = f"{stamp}\n// {_escape_comment(name)}: {len(data):,} bytes, SHA-256 {_sha(data)}"
    return {
        names.file("model_data.h"): _data_header(head, names, len(data), model),
        names.file("model_data.cpp"): _data_source(head, names, data),
        names.file("op_resolver.h"): _resolver(head, names, model, target, unrunnable),
        names.file("arena.h"): _arena(head, names, arena, model, target, unrunnable),
    }


def _refuse_plan(arena: Arena, model: Model, target: Target) -> None:
    """Raise ModelError if the model carries a plan that is wrong for the target."""
    faults = [why for why in arena.cannot_run if why not in cannot_run(model, target)]
    if faults:
        command = shlex.join(["tflm-plan", "IN", "OUT", "--target", target.word])
        raise ModelError(
            f"{faults[0]}. Nothing was exported; plan the model as it was before for this target: "
            f"`{command}`"
        )


def _unrunnable(model: Model, target: Target) -> list[str]:
    """Why the target's TFLM cannot run parts of the model; empty if it can run all of it."""
    lacking = {op.kind: op for op in reversed(list(model.ops())) if _is_unknown(op)}
    unknown = [
        f"operator {op.label}: TFLM has no kernel for {kind}"
        for kind, op in sorted(lacking.items())
    ]
    return [*unknown, *cannot_run(model, target)]


def _is_unknown(op: Op) -> bool:
    """Whether TFLM's op resolver has no method that registers the operator."""
    return not _is_custom(op) and resolver_method(op.kind) is None


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _guard_header(head: str, guard: str, body: str) -> str:
    return f"{head}\n\n#ifndef {guard}\n#define {guard}\n\n{body}\n#endif  // {guard}\n"


def _data_header(head: str, names: CppNames, size: int, model: Model) -> str:
    body = f"""#include <cstddef>
#include <cstdint>

// tflite::GetModel(g_{names.snake}_model_data); aligned to 16 bytes, in flash.
extern const std::uint8_t g_{names.snake}_model_data[];
constexpr std::size_t k{names.camel}ModelSize = {size};
{"".join(_scales(names, "Input", model.main.inputs))}{
        "".join(_scales(names, "Output", model.main.outputs))
    }"""
    return _guard_header(head, names.guard("model_data.h"), body)


def _scales(names: CppNames, side: str, tensors: Sequence[Tensor]) -> Iterator[str]:
    """Constants with scale and zero point of quantized inputs or outputs, and comments on them."""
    for number, tensor in enumerate(tensors):
        quantization = tensor.quantization.single
        if quantization is None or tensor.type_name == "float32":
            continue
        scale, zero = quantization
        prefix = f"k{names.camel}{side}{number}"
        yield (
            f"\n// {side} {number}, {_escape_comment(tensor.name)}: a number q of "
            f"{tensor.type_name} stands for scale * (q - zero point).\n"
            f"constexpr float {prefix}Scale = {_float_literal(scale)};\n"
            f"constexpr int {prefix}ZeroPoint = {zero};\n"
        )


def _float_literal(value: float) -> str:
    """A float literal with nine digits, which are enough to tell any two floats apart."""
    text = f"{value:.9g}"
    return f"{text}f" if set(text) & set(".e") else f"{text}.0f"


def _data_source(head: str, names: CppNames, data: bytes) -> str:
    rows = (data[i : i + _PER_LINE] for i in range(0, len(data), _PER_LINE))
    lines = "\n".join("    " + " ".join(f"0x{byte:02x}," for byte in row) for row in rows)
    return (
        f'{head}\n\n#include "{names.file("model_data.h")}"\n\n'
        f"alignas(16) const std::uint8_t g_{names.snake}_model_data[] = {{\n{lines}\n}};\n\n"
        f"static_assert(sizeof(g_{names.snake}_model_data) == k{names.camel}ModelSize,\n"
        f'              "{names.file("model_data.h")} is of another model");\n'
    )


def _resolver(
    head: str, names: CppNames, model: Model, target: Target, unrunnable: Sequence[str]
) -> str:
    used = {(op.kind, _is_custom(op)): op for op in reversed(list(model.ops()))}
    ops = [used[kind] for kind in sorted(used)]  # a custom operator may have the name ADD
    added: list[str] = []
    extern: list[Op] = []
    for op in ops:
        method = resolver_method(op.kind, custom=_is_custom(op))
        if method is not None:
            added.append(f"  TF_LITE_ENSURE_STATUS(resolver.{method}());")
        elif _is_custom(op):
            extern.append(op)
    parameters = "".join(f",\n    const TFLMRegistration* custom_{i}" for i, _ in enumerate(extern))
    remarks = "".join(f"// custom_{i}: {_escape_comment(op.kind)}\n" for i, op in enumerate(extern))
    added += [
        f"  TF_LITE_ENSURE_STATUS(resolver.AddCustom({_literal(op)}, custom_{i}));"
        for i, op in enumerate(extern)
    ]
    return _guard_header(
        head,
        names.guard("op_resolver.h"),
        _resolver_body(names, len(added), added, (parameters, remarks), _libraries(names, target))
        + _variables(model)
        + _own_kernels(unrunnable),
    )


@dataclass(frozen=True, slots=True)
class _Library:
    """Parts of the resolver's source: lines to include, its class, and what follows it."""

    includes: str
    resolver: str
    more: str = ""


def _libraries(names: CppNames, target: Target) -> _Library:
    """TFLM's resolver, or that of the lean library for lean firmware (arduino_runner/src/lean)."""
    if not target.lean:
        stock = '#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"\n'
        return _Library(stock, "tflite::MicroMutableOpResolver")
    used = f"""
// Lets the lean library find the model's parameters in flash. Call it before AllocateTensors() of
// this model, and again before that of each other one; without it the arena is too small. False:
// the file has no pool, and parameters are shared between operators alone.
inline bool Use{names.camel}Model() {{
  return lean::UseModel(g_{names.snake}_model_data, k{names.camel}ModelSize);
}}
"""
    data = f'#include "{names.file("model_data.h")}"\n'
    return _Library(f"#include <lean.h>\n\n{data}", "lean::OpResolver", used)


def _own_kernels(unrunnable: Sequence[str]) -> str:
    """A comment on the operators that need the firmware's own kernels."""
    if not unrunnable:
        return ""
    reasons = "".join(f"//   {_escape_comment(reason)}\n" for reason in unrunnable)
    return (
        "\n// What TFLM cannot run is for kernels of the firmware: give the method that adds the\n"
        "// operator a registration, or, where there is none, derive from the resolver.\n"
        f"{reasons}"
    )


def _variables(model: Model) -> str:
    """A comment on what the interpreter needs for resource variables."""
    variables = sum(op.kind == "VAR_HANDLE" for op in model.ops())
    if not variables:
        return ""
    return (
        f"\n// The model has {variables} resource variables: give the interpreter\n"
        f"// tflite::MicroResourceVariables::Create(allocator, {variables}).\n"
    )


def _resolver_body(
    names: CppNames, count: int, added: list[str], custom: tuple[str, str], library: _Library
) -> str:
    parameters, remarks = custom
    lines = "\n".join(added) or "  static_cast<void>(resolver);"
    opening = f"inline TfLiteStatus Register{names.camel}Operators("
    first = f"{names.camel}OpResolver& resolver"
    if parameters or len(opening) + len(first) > _WIDTH - len(") {"):
        first = f"\n    {first}{parameters}"
    return f"""{library.includes}
using {names.camel}OpResolver = {library.resolver}<{max(count, 1)}>;

// Registers the operators of the model, and no others.
{remarks}{opening}{first}) {{
{lines}
  return kTfLiteOk;
}}
{library.more}"""


def _is_custom(op: Op) -> bool:
    return op.code.custom is not None


def _literal(op: Op) -> str:
    """A custom operator's name, of any bytes, as a C string."""
    data = (op.code.custom or "").encode("utf-8", "surrogateescape")
    plain = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data)
    return '"' + "".join(plain) + '"'


def _escape_comment(text: str) -> str:
    """Text for a comment of one line. A backslash at its end would continue the comment on the next
    line."""
    return safe_text(text).replace("\\", "/").replace("??/", "?? /")


def _arena(
    head: str,
    names: CppNames,
    arena: Arena,
    model: Model,
    target: Target,
    unrunnable: Sequence[str],
) -> str:
    parts = [*_parts(arena, model, target), *([_OWN_MEMORY] if unrunnable else [])]
    comment = "\n".join(f"// {line}".rstrip() for line in parts)
    body = f"""#include <cstddef>

{comment}
constexpr std::size_t k{names.camel}ArenaSize = {arena.reserved};
"""
    return _guard_header(head, names.guard("arena.h"), body)


def _parts(arena: Arena, model: Model, target: Target) -> Iterator[str]:
    plan = "with the plan in the file" if carried_plan(model) else "as TFLM plans"
    yield f"Bytes of tensor_arena on {_escape_comment(target.id)}"
    yield f"({_escape_comment(target.name)}), {plan}."
    yield f"  head           {arena.head:>9,}  tensors and scratch"
    yield f"  tail           {arena.tail:>9,}  what stays:"
    for part, size in sorted(arena.tail_parts.items(), key=lambda p: -p[1]):
        if size:
            yield f"    {part.replace('_', ' '):<20} {size:>9,}"
    yield f"  planning temp  {arena.planning_temp:>9,}  while AllocateTensors plans"
    yield f"  prepare temp   {arena.prepare_temp:>9,}  while kernels prepare"
    bound = bound_of(arena.uncertainties)
    yield f"{arena.arena:,} bytes are max(head + tail, tail of that moment + temp):"
    yield f"{f'{hedge(bound)}so much; ' if may_need_more(bound) else ''}{meaning(bound)}."
    yield "The size holds for an array whose start is aligned to 16 bytes:"
    yield "  alignas(16) static std::uint8_t tensor_arena[...];"
    yield f"An array that is not needs {arena.alignment_slack} bytes more."
    for warning in arena.warnings:
        if warning not in {uncertainty.words for uncertainty in arena.uncertainties}:
            yield f"Warning: {_escape_comment(warning)}"
    for line in margin_remarks(arena):
        yield _escape_comment(line)
