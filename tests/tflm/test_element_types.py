"""Element types of kernels: the table is what stock TFLM does, and says what older TFLM did not."""

from __future__ import annotations

import tomllib
from datetime import date

import numpy as np
import pytest

from tests.conftest import CASE_FILES, needs_tflm, shared_models
from tests.models.build import Net
from tests.tflm import element_type_trials
from tests.tflm.element_type_trials import DATA, UNIVERSE, what_runs  # fmt: skip
from tests.tflm.element_type_trials import OPERATORS as TYPED
from tests.tflm.operator_models import MODELS as OPERATORS
from tests.tflm.registered import BUILTIN
from tflm_planner.model import serde
from tflm_planner.model.flatbuffer.read import learnt
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.element_types import new_refusal, refusal, types_since
from tflm_planner.tflm.refusals import CONSTANT_OPERANDS, cannot_run, refused_operators
from tflm_planner.tflm.targets import HOST_RUNTIME, Target, load_target
from tflm_planner.tflm.versions import with_tflm

TABLE = tomllib.loads(DATA.read_text("utf-8"))
M4 = load_target("cortex-m4/cmsis-nn")
CONTROL = {"CALL_ONCE", "IF", "WHILE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"}


def operator(kind: str, *types: str) -> Op:
    """An operator of one: `types` of its operands, then behind "->" of its results."""
    operands, results = types[: types.index("->")], types[types.index("->") + 1 :]
    net = Net()
    graph = net.graph()
    inputs = [
        graph.constant(f"x{i}", np.zeros((1, 2, 2, 4)), t)
        if i in CONSTANT_OPERANDS.get(kind, ())
        else graph.input(f"x{i}", (1, 2, 2, 4), t)
        for i, t in enumerate(operands)
    ]
    outputs = [graph.tensor(f"y{i}", (1, 2, 2, 4), t) for i, t in enumerate(results)]
    options = next((op.options for op in TYPED if op.kind == kind), None)
    graph.op(kind, inputs, outputs, options)
    graph.outputs(*outputs)
    # Of types alone: shapes and options are not meant to fit, and are not checked.
    return serde._Reader(net.finish(), learnt()).model().main.ops[0]


@needs_tflm
@pytest.mark.slow
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.long)])
def test_the_wheel_runs_what_the_table_says_and_nothing_else(every: int) -> None:
    """Every operator in every combination of types, or in every sixth, tried anew."""
    assert TABLE["tried"] == list(UNIVERSE)
    said = {kind: entry["runs"] for kind, entry in TABLE["operator"].items()}
    tried = {op.kind: [" ".join(t) for t in op.combinations()][::every] for op in TYPED}
    ran = what_runs(TYPED, every)
    assert ran.keys() == said.keys()
    expected = {kind: [t for t in said[kind] if t in tried[kind]] for kind in ran}
    assert {k: (ran[k], expected[k]) for k in ran if ran[k] != expected[k]} == {}
    assert sum(map(len, ran.values())) > 300 / every / 2


def test_every_operator_that_tflm_registers_was_tried_or_is_known_not_to_be() -> None:
    read = {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
    assert {*TABLE["operator"]} == {*BUILTIN.split()} - CONTROL - read


def unsupported(op: Op, target: Target) -> str | None:
    """Why an operator is refused, without its label and what to do about it."""
    refused = refused_operators([op], target)
    return refused[0].split("): ", 1)[1].split("; ")[0] if refused else None


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_no_operator_that_runs_is_refused(name: str) -> None:
    """The models of all operators, which the wheel prepares, on every library."""
    ops = list(read_model(OPERATORS[name]()).ops())
    for target in ("x86-64/wheel", "cortex-m4/cmsis-nn", "cortex-m/any", "esp32s3"):
        assert refused_operators(ops, load_target(target)) == []


@pytest.mark.parametrize("path", shared_models(), ids=lambda p: p.stem)
def test_no_published_model_is_refused(path) -> None:
    assert cannot_run(read_model(path.read_bytes()), M4) == []


@pytest.mark.parametrize(
    "kind, types",
    [
        ("SLICE", ("uint8", "int32", "int32", "->", "uint8")),
        ("STRIDED_SLICE", ("uint8", "int32", "int32", "int32", "->", "uint8")),
        ("PAD", ("uint8", "int32", "->", "uint8")),
        ("SPLIT", ("int32", "uint8", "->", "uint8", "uint8")),
        ("CONCATENATION", ("uint8", "uint8", "->", "uint8")),
        ("DYNAMIC_UPDATE_SLICE", ("uint8", "uint8", "int32", "->", "uint8")),
        ("GATHER", ("int16", "int32", "->", "int16")),
        ("CONV_2D", ("uint8", "uint8", "int32", "->", "uint8")),
        ("FULLY_CONNECTED", ("float32", "int8", "float32", "->", "float32")),
        ("DEQUANTIZE", ("float16", "->", "float32")),
        ("QUANTIZE", ("float32", "->", "uint8")),
    ],
)
def test_what_no_kernel_takes_is_refused_with_operator_and_types(kind, types) -> None:
    op = operator(kind, *types)
    for target in (M4, load_target(HOST_RUNTIME), load_target("arduino-2023")):
        reason = unsupported(op, target)
        if kind == "DYNAMIC_UPDATE_SLICE" and target.id == "arduino-2023":
            continue
        assert reason is not None and reason.startswith(f"{kind} "), reason
        assert any(t in reason for t in types)


@pytest.mark.parametrize(
    ("kind", "types", "advice"),
    [
        ("GATHER", ("int32", "int32", "->", "int32"), "gets types that its kernel takes"),
        ("RELU", ("int64", "->", "int64"), "gets types that its kernel takes"),
        ("SQRT", ("int16", "->", "int16"), "keep it in float"),
        ("SQRT", ("int8", "->", "int8"), "looks it up in a table"),
        ("SELECT_V2", ("bool", "int32", "int32", "->", "int32"), "sums and products"),
        ("CAST", ("uint8", "->", "float32"), "writes one to float32 as DEQUANTIZE"),
        ("EXP", ("int16", "->", "int16"), "SOFTMAX or LOGISTIC"),
        ("GATHER", ("int16", "int32", "->", "int16"), "int8 mostly"),
    ],
)
def test_a_remedy_is_one_that_a_kernel_takes(kind, types, advice) -> None:
    """Not int8 for kernels that know floats alone, nor for arithmetic of shapes."""
    (refused,) = refused_operators([operator(kind, *types)], M4)
    assert advice in refused and "batch" not in refused


def test_the_day_on_which_a_kernel_learnt_types() -> None:
    arduino = load_target("arduino-2023")
    cast, add = (operator(k, t, "->", "int32") for k, t in (("CAST", "bool"), ("ADD", "int32")))
    assert types_since(cast, M4) == ("CAST of bool to int32", date(2024, 1, 22))
    assert types_since(operator("CAST", "int8", "->", "int32"), M4)[1] == date.min
    for op in (cast, add):
        reason = refusal(op, arduino)
        assert reason is not None and "newer TFLM has it: --tflm" in reason
        assert refusal(op, M4) is None


def test_only_what_counts_a_shape_is_told_of_a_free_batch() -> None:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 2, 2, 4), "int8", scale=0.1)
    shape, picked, doubled = (graph.tensor(n, (4,), "int32") for n in ("shape", "picked", "twice"))
    graph.op("SHAPE", [x], [shape], "ShapeOptions")
    graph.op("GATHER", [shape, graph.constant("at", [0, 1, 2, 3])], [picked], "GatherOptions")
    graph.op("ABS", [picked], [doubled])
    graph.outputs(doubled)
    of_shape, of_count = refused_operators(read_model(net.finish()).main.ops, M4)
    assert "GATHER" in of_shape and "a batch that was left free" in of_shape
    assert "ABS" in of_count and "a batch that was left free" in of_count


def test_what_nobody_knows_is_not_refused() -> None:
    strange = operator("SIGN", "uint8", "->", "uint8")
    untried = operator("SLICE", "string", "int32", "int32", "->", "string")
    assert unsupported(strange, M4) is None and unsupported(untried, M4) is None
    theirs = operator("CONV_2D", "uint8", "uint8", "int32", "->", "uint8")
    hybrid = operator("CONV_2D", "float32", "int8", "float32", "->", "float32")
    esp = load_target("xtensa-lx7/unknown")
    assert unsupported(theirs, esp) is None, "a library that nobody has read may have it"
    assert unsupported(hybrid, esp) is not None, "no library has it"


def of(day: str, target: Target = M4) -> Target:
    return with_tflm(target, day)


@pytest.mark.parametrize(
    "kind, types, before, since",
    [
        ("TRANSPOSE", ("int16", "int32", "->", "int16"), "2025-03-16", "2025-03-17"),
        ("SLICE", ("bool", "int32", "int32", "->", "bool"), "2023-03-21", "2023-03-22"),
        ("ADD", ("int32", "int32", "->", "int32"), "2023-03-29", "2023-03-30"),
    ],
)
def test_older_tflm_takes_fewer_types(kind, types, before, since) -> None:
    op = operator(kind, *types)
    reason = unsupported(op, of(before))
    assert reason is not None and since in reason
    assert unsupported(op, of(since)) is None


def test_a_library_may_have_been_first() -> None:
    """CMSIS-NN had an int16 depthwise kernel before the reference kernels did."""
    op = operator("DEPTHWISE_CONV_2D", "int16", "int8", "int64", "->", "int16")
    assert unsupported(op, load_target("arduino-2023")) is None
    assert unsupported(op, of("2023-03", load_target("cortex-m4/reference"))) is not None


def test_every_type_that_was_learnt_runs_today() -> None:
    text = (DATA.parent / "element_types_read.toml").read_text("utf-8")
    for key in tomllib.loads(text)["since"]:
        kind, _, types = key.partition(" ")
        assert types in TABLE["operator"][kind]["runs"], key


def test_reasons_name_the_first_operator_and_what_to_do() -> None:
    ops = [
        operator("RELU", "int8", "->", "int8"),
        operator("CONV_2D", "float32", "int8", "float32", "->", "float32"),
        operator("CONV_2D", "float32", "int8", "float32", "->", "float32"),
        operator("CONCATENATION", "uint8", "uint8", "->", "uint8"),
    ]
    hybrid, unsigned = refused_operators(ops, M4)
    assert hybrid.startswith("CONV_2D 'y0' (number 1) and 1 more: CONV_2D of float32 and int8")
    assert "full integer quantisation" in hybrid
    assert "(number 3)" in unsigned and "uint8" in unsigned and "inference_input_type" in unsigned


def test_only_what_is_new_is_held_against_what_was_made() -> None:
    runs = [operator("RELU", "int8", "->", "int8")]
    joined = operator("CONCATENATION", "uint8", "uint8", "->", "uint8")
    cut = operator("SLICE", "uint8", "int32", "int32", "->", "uint8")
    both = (M4, load_target(HOST_RUNTIME))
    assert new_refusal(runs, [*runs, *runs], both) is None
    reason = new_refusal(runs, [*runs, cut], both)
    assert reason is not None and reason.startswith("SLICE of uint8")
    # Whoever does not run the original says nothing of what was made of it.
    assert new_refusal([joined], [joined, cut], both) is None
    old = (load_target("arduino-2023"),)
    learnt = operator("TRANSPOSE", "int16", "int32", "->", "int16")
    assert new_refusal(runs, [*runs, learnt], both) is None
    assert new_refusal(runs, [*runs, learnt], old) is not None


@pytest.mark.parametrize(
    "path", sorted(CASE_FILES.glob("f02_hybrid*.tflite")), ids=lambda p: p.stem
)
def test_hybrid_models_are_refused(path) -> None:
    assert "hybrid" in cannot_run(read_model(path.read_bytes()), M4)[0]


def test_the_script_writes_the_file_that_is_there() -> None:
    found = {kind: entry["runs"] for kind, entry in TABLE["operator"].items()}
    assert element_type_trials.table_text(found) == DATA.read_text("utf-8")
