"""Whatever is given as a model: one clear line, or a plan; never a crash, never without end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

from tests.fuzz.mutated_files import examine, load_exact_search, try_all
from tests.fuzz.mutations_of_schema import SCHEMA
from tests.fuzz.seeds import packed
from tests.models.build import Net, fill, schema
from tests.models.handmade import MODELS
from tests.models.registry import IMAGE, SCALE, conv, relu, start
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError, PlannerError
from tflm_planner.verification.terms import prove_by_terms

OPTIONS = api.PlanOptions(api.MemoryOptions(time_limit=1.0), verify=None)


def refusal(data: bytes) -> str:
    """The message with which `data` is refused."""
    with pytest.raises(ModelError) as caught:
        api.plan(data, None, OPTIONS)
    message = str(caught.value)
    assert message.isprintable(), message
    assert 20 < len(message) < 600
    return message


@pytest.mark.parametrize(
    "data",
    [b"", b"TFL3", b"\x00" * 7, b"PK\x03\x04 a zip archive", b"\x1f\x8b" + bytes(40), b"x" * 999],
)
def test_what_is_no_model_is_called_so(data: bytes) -> None:
    assert refusal(data).startswith("not a TFLite model: ")


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"PK\x03\x04\x14\x00\x00\x00", "a zip archive, as .keras and .pt2 are"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"\x80\x02\x8a\nl\xfc\x9cF", "a pickle"),
        (b"\x08\x08\x12\x07pytorch", "an ONNX file"),
        (b"unsigned char g_model[] = {", "a text"),
    ],
)
def test_what_people_give_in_its_place_is_named(start: bytes, said: str) -> None:
    """With what makes a model of it."""
    told = refusal(start + bytes(40))
    assert told.startswith(f"not a TFLite model: {said}")
    assert ("convert" in told) == (said != "a text")


def test_a_wrong_identifier_is_named() -> None:
    data = bytearray(MODELS["chain"].make())
    data[4:8] = b"TFL2"
    assert "'TFL2', expected 'TFL3'" in refusal(bytes(data))


@pytest.mark.parametrize("name", ["chain", "while_loop", "metadata"])
@pytest.mark.mostly_slow(fast=1)
def test_truncated_at_every_length(name: str) -> None:
    """Only what lies behind all tables (padding, the last string's zero) may be missing. Of larger
    files, one length in seven."""
    data = MODELS[name].make()
    ends = list(range(0, len(data), 7 if len(data) > 1500 else 1))
    for end in ends:
        status, detail = try_all(data[:end])
        assert status != "finding", (end, detail)
        assert status == "refused" or end > len(data) // 2, end


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.slow
def test_every_byte_wrong(every: int) -> None:
    """One byte at a time: each, or one in eight of them."""
    data = MODELS["bare"].make()
    for at in range(0, len(data), every):
        for value in (0x00, 0xFF, data[at] ^ 0x80, data[at] + 1 & 0xFF):
            status, detail = try_all(data[:at] + bytes([value]) + data[at + 1 :])
            assert status != "finding", (at, value, detail)


@pytest.mark.parametrize("block", range(24))
@pytest.mark.mostly_slow(fast=1)
@pytest.mark.mostly_long(short=4)
def test_mutated_files(block: int) -> None:
    """The fuzzer, in small; the long run is `python -m tests.fuzz.mutated_files`."""
    for seed in range(500_000 + 50 * block, 500_000 + 50 * (block + 1)):
        outcome = examine(seed)
        assert outcome.status != "finding", outcome


@pytest.mark.parametrize("mutation", dict.fromkeys(SCHEMA), ids=lambda m: m.__name__)
def test_models_in_which_most_is_left_out_can_be_damaged_too(mutation: Callable[..., None]) -> None:
    """The fuzzer itself: it damages again what it has damaged."""
    for name in ("bare", "call_once"):
        for left_out in ("inputs", "outputs", "operators", "tensors", "buffers"):
            model: Any = schema.ModelT.InitFromPackedBuf(MODELS[name].make(), 0)
            graph = model.subgraphs[0]
            for thing in (model, graph, *graph.operators):
                if hasattr(thing, left_out):
                    setattr(thing, left_out, None)
            for seed in range(4):
                mutation(model, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", ["CONV_2D", "MAX_POOL_2D"])
def test_a_small_file_of_half_a_billion_rows_takes_no_longer_than_others(kind: str) -> None:
    """Rows are counted, never gone through: by no verb, and not by the proof, which says so."""
    data = _tall(kind, 1 << 29)
    assert len(data) < 1000
    assert try_all(data)[0] == "planned"
    found = prove_by_terms(read_model(data), read_model(data))
    assert found.status == "not run" and "elements are made: too many" in found.detail


def _tall(kind: str, height: int) -> bytes:
    net = Net()
    graph = net.graph()
    x, y = graph.input("x", (1, height, 1, 1), scale=0.1), graph.tensor("y", (1, height, 1, 1))
    if kind == "CONV_2D":
        weights = graph.constant("w", np.ones((1, 3, 1, 1)), "int8", scale=0.1)
        bias = graph.constant("b", [0], "int32", scale=0.01)
        ones = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
        graph.op(kind, [x, weights, bias], [y], "Conv2DOptions", **ones)
    else:
        fields = {"strideH": 1, "strideW": 1, "filterHeight": 3, "filterWidth": 1}
        graph.op(kind, [x], [y], "Pool2DOptions", **fields)
    graph.outputs(y)
    return net.finish()


# --- one thing wrong at a time ----------------------------------------------------------------


def _operand(value: int) -> Callable[[Any], None]:
    def spoil(model: Any) -> None:
        model.subgraphs[0].operators[0].inputs = [value, 1, 2]

    return spoil


def _output(model: Any) -> None:
    model.subgraphs[0].outputs = [77]


def _opcode(model: Any) -> None:
    model.subgraphs[0].operators[0].opcodeIndex = 9


def _buffer(model: Any) -> None:
    model.subgraphs[0].tensors[0].buffer = 1000


def _signature(model: Any) -> None:
    entry = fill(schema.SignatureDefT(), {"signatureKey": "f", "subgraphIndex": 3})
    model.signatureDefs = [entry]


def _dynamic(model: Any) -> None:
    model.subgraphs[0].tensors[0].shape = [-1, 6, 6, 4]


def _huge(model: Any) -> None:
    model.subgraphs[0].tensors[0].shape = [2**31 - 1] * 4


def _many_axes(model: Any) -> None:
    model.subgraphs[0].tensors[0].shape = [2] * 5000


def _short_constant(model: Any) -> None:
    model.subgraphs[0].tensors[1].shape = [400, 3, 3, 4]


def _behind_the_end(model: Any) -> None:
    model.buffers[-1].data = None
    model.buffers[-1].offset, model.buffers[-1].size = 64, 1 << 20


def _cycle(model: Any) -> None:
    ops = model.subgraphs[0].operators
    first, last = list(ops[0].inputs), int(ops[-1].outputs[0])
    ops[0].inputs = [last, *first[1:]]


def _two_producers(model: Any) -> None:
    ops = model.subgraphs[0].operators
    ops[1].outputs = ops[0].outputs


def _operator_twice(model: Any) -> None:
    ops = model.subgraphs[0].operators
    model.subgraphs[0].operators = [ops[0], *ops]


def _no_graph(model: Any) -> None:
    model.subgraphs = []


def _writes_input(model: Any) -> None:
    graph = model.subgraphs[0]
    graph.operators[-1].outputs = graph.inputs


def _unwritten(model: Any) -> None:
    model.subgraphs[0].operators = model.subgraphs[0].operators[1:]


def _string(model: Any) -> None:
    tensor = model.subgraphs[0].tensors[int(model.subgraphs[0].operators[0].outputs[0])]
    tensor.type = schema.TensorType.STRING


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_operand(50), "refers to entry 50 of"),
        (_operand(-2), "refers to entry -2 of"),
        (_operand(2**31 - 1), "refers to entry 2147483647 of"),
        (_output, "outputs of sub-graph 'main' refers to entry 77"),
        (_opcode, "refers to entry 9 of"),
        (_buffer, "refers to entry 1000 of"),
        (_signature, "signature 'f' refers to entry 3 of 1"),
        (_dynamic, "dynamic or negative shape"),
        (_huge, "declares"),
        (_many_axes, "has 5000 axes"),
        (_short_constant, "its buffer holds 144"),
        (_behind_the_end, "a buffer lies at bytes 64 to 1048640 of a file of"),
        (_cycle, "cyclic or its operators are out of order"),
        (_two_producers, "is written by operators 0 and 1"),
        (_operator_twice, "is written by operators 0 and 1"),
        (_no_graph, "empty model"),
        (_writes_input, "a graph input"),
        (_unwritten, "which nothing writes"),
        (_string, "type string, which TFLM cannot hold"),
    ],
)
def test_one_thing_wrong(spoil: Callable[[Any], None], words: str) -> None:
    net, graph, x = start()
    y = relu(graph, conv(graph, x, IMAGE), IMAGE)
    graph.outputs(relu(graph, y, IMAGE, "again"))
    spoil(net.model)
    assert words in refusal(net.finish())


@pytest.mark.parametrize("name", [b"a\nb", b"\x1b[31m", b"\xff\xfe", b"n" * 100_000, b"\x00"])
def test_odd_names_do_not_reach_the_terminal(name: bytes) -> None:
    net, graph, x = start()
    y = conv(graph, x, IMAGE)
    graph.outputs(relu(graph, y, IMAGE))
    graph.table.tensors[y].name = name
    graph.table.tensors[y].shape = [-5]
    refusal(packed(net.model))


@pytest.mark.parametrize("letters", [255])
def test_a_name_of_as_many_letters_as_a_folder_allows(letters: int, tmp_path: Path) -> None:
    name = "n" * (letters - len(".tflite")) + ".tflite"
    api.plan(MODELS["chain"].make(), tmp_path / name, OPTIONS)
    assert [p.name for p in tmp_path.iterdir()] == [name]


# --- small files that mean a lot of work --------------------------------------------------------


def bounded(data: bytes, seconds: float = 5.0) -> None:
    """Refused or planned, in bounded time."""
    load_exact_search()
    started = time.process_time()
    status, detail = try_all(data)
    assert status != "finding", detail
    assert time.process_time() - started < seconds


def test_a_graph_that_calls_itself() -> None:
    assert "calls itself" in refusal(_calls(1, 1, last=0))


def test_graphs_that_call_in_a_ring() -> None:
    assert "calls itself" in refusal(_calls(3, 1, last=0))


def test_calls_that_double_at_every_level() -> None:
    """2^40 runs of the innermost graph in a file of some kilobytes."""
    assert "operators when its calls are followed" in refusal(_calls(40, 2))


def test_calls_nested_without_end() -> None:
    assert "levels deep" in refusal(_calls(3000, 1))


def _calls(graphs: int, calls: int, last: int | None = None) -> bytes:
    """Graph k calls graph k + 1 `calls` times; the last one calls `last`."""
    net = Net()
    for k in range(graphs):
        graph = net.graph(f"g{k}")
        graph.outputs(relu(graph, graph.input("x", IMAGE, scale=SCALE), IMAGE))
        called = k + 1 if k + 1 < graphs else last
        for _ in range(calls if called is not None else 0):
            graph.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=called)
    return net.finish()


class _Shared(flatbuffers.Builder):
    """A builder that writes equal strings and vectors once, as an attacker would."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self.known: dict[bytes, int] = {}

    def CreateString(self, s: Any, *rest: Any) -> int:  # noqa: N802
        key = s if isinstance(s, bytes) else s.encode()
        if key not in self.known:
            self.known[key] = super().CreateString(s, *rest)
        return self.known[key]

    def CreateNumpyVector(self, x: Any) -> int:  # noqa: N802
        key = x.dtype.str.encode() + x.tobytes()
        if key not in self.known:
            self.known[key] = super().CreateNumpyVector(x)
        return self.known[key]


@pytest.mark.parametrize("what", ["name", "shape", "operands"])
@pytest.mark.slow
@pytest.mark.mostly_long(short=1)
def test_one_long_vector_shared_by_thousands(what: str) -> None:
    """Some hundred kilobytes that would be gigabytes once every table has its own copy."""
    net, graph, x = start()
    y = relu(graph, x, IMAGE)
    graph.outputs(y)
    long = np.zeros(200_000, np.int32)
    for _ in range(3000):
        if what == "operands":
            op = graph.op("ADD_N", [x], [y])
            op.inputs = long
        else:
            tensor = graph.table.tensors[graph.tensor("t", (1,))]
            setattr(tensor, what, b"n" * 800_000 if what == "name" else long)
    builder = _Shared()
    builder.Finish(net.model.Pack(builder), b"TFL3")
    data = bytes(builder.Output())
    assert len(data) < 2_000_000
    bounded(data)


@pytest.mark.slow
def test_many_operators_on_one_tensor() -> None:
    net, graph, x = start((1, 2, 2, 4))
    for k in range(300):
        relu(graph, x, (1, 2, 2, 4), f"r{k}")
    graph.outputs(*range(1, 301))
    bounded(net.finish(), 30.0)


def test_sizes_that_add_up_beyond_every_arena() -> None:
    """Each tensor just below the limit of one; their sum does not fit 32 bits of offset."""
    net, graph, x = start((1, 1000, 1000, 1000))
    parts = [relu(graph, x, (1, 1000, 1000, 1000), f"r{k}") for k in range(4)]
    graph.outputs(*parts)
    bounded(net.finish())


def test_every_error_is_one_of_ours() -> None:
    assert {c.exit_code for c in PlannerError.__subclasses__()} == {1, 2, 4, 5, 6}
