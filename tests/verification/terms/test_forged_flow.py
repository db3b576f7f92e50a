"""Results forged in what decides which operators run, and in what a model remembers: variables by
another name, branches and loops exchanged, tiles of operators whose scale is that of the whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.models.build import Graph, Net
from tests.models.handmade_flow import signature_per_subgraph
from tests.transforms.tiled import quick_differences
from tests.verification.terms.proofs import changed, proof
from tflm_planner.model.edit import set_quantization
from tflm_planner.model.ir import Model
from tflm_planner.model.quantization import Quantization
from tflm_planner.support.errors import ModelError

ROW = (1, 4)
RNG = np.random.default_rng(7)


# --- resource variables ---------------------------------------------------------------------------


def handle(graph: Graph, name: str, container: str = "") -> int:
    """A VAR_HANDLE."""
    result = graph.tensor(f"{graph.table.name}/{name}/{container}", (1,), "resource")
    fields = {"container": container, "sharedName": name}
    graph.op("VAR_HANDLE", [], [result], "VarHandleOptions", **fields)
    return result


def variables(
    *,
    set_at_start: tuple[str, str] = ("a", "b"),
    read: str = "a",
    written: str = "b",
    container: str = "",
    container_at_start: str = "",
    starts: int = 0,
    once: bool = True,
) -> bytes:
    """Two variables that CALL_ONCE sets; one is read and added to the input, which the other
    then is. The sum and what the other was are the outputs. starts: which of two initial graphs
    runs; the second sets other values."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", ROW, "float32")
    first = [net.graph(f"initialise{i}") for i in range(2)]
    for i, start in enumerate(first):
        for k, name in enumerate(set_at_start):
            values = np.full(ROW, 1.5 + k + 10 * i)
            value = start.constant(f"value{k}", values, "float32")
            operands = [handle(start, name, container_at_start), value]
            start.op("ASSIGN_VARIABLE", operands, [], "AssignVariableOptions")
    if once:
        index = first[starts].index
        graph.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=index)
    old, other, total = (graph.tensor(n, ROW, "float32") for n in ("old", "other", "total"))
    graph.op("READ_VARIABLE", [handle(graph, read, container)], [old], "ReadVariableOptions")
    kept = handle(graph, written, container)
    graph.op("READ_VARIABLE", [kept], [other], "ReadVariableOptions")
    graph.op("ADD", [old, x], [total], "AddOptions", version=1)
    graph.op("ASSIGN_VARIABLE", [kept, total], [], "AssignVariableOptions")
    graph.outputs(total, other)
    return net.finish()


VARIABLES = {
    "the other one is read": variables(read="b"),
    "the other one is written": variables(written="a"),
    "both are exchanged": variables(read="b", written="a"),
    "values exchanged at the start": variables(set_at_start=("b", "a")),
    "another start": variables(starts=1),
    "no start": variables(once=False),
    "another container": variables(container="other"),
    "set in another container": variables(container_at_start="other"),
}


@pytest.mark.parametrize("what", sorted(VARIABLES))
def test_variables_are_told_apart(what: str) -> None:
    forged = VARIABLES[what]
    assert proof(variables(), variables()).status == "equal"
    assert proof(variables(), forged).status == "different"
    assert proof(forged, variables()).status == "different"
    assert differ(variables(), forged)


def differ(right: bytes, forged: bytes) -> bool:
    """Whether a runtime tells them apart, or refuses the forged one."""
    seen: list[bool] = []
    for runtime in ("LiteRT", "TFLM"):
        try:
            seen.append(bool(quick_differences(right, forged, (runtime,))))
        except (RuntimeError, ValueError):
            quick_differences(right, right, (runtime,))  # the right one runs
            seen.append(True)
    return any(seen)


def assigned_twice(*, last: int, between: bool) -> bytes:
    """A variable that is set to two sums in turn, and read at the end, or in between."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", ROW, "float32")
    sums: list[int] = []
    for i in range(2):
        addend = graph.constant(f"addend{i}", np.full(ROW, 1.0 + i), "float32")
        sums.append(graph.tensor(f"sum{i}", ROW, "float32"))
        graph.op("ADD", [x, addend], [sums[-1]], "AddOptions")
    variable = handle(graph, "v")
    y = graph.tensor("y", ROW, "float32")
    steps: list[Callable[[], None]] = [
        lambda i=i: graph.op("ASSIGN_VARIABLE", [variable, sums[i]], [], "AssignVariableOptions")
        for i in (1 - last, last)
    ]
    read = lambda: graph.op("READ_VARIABLE", [variable], [y], "ReadVariableOptions")  # noqa: E731
    steps.insert(1 if between else 2, read)
    for step in steps:
        step()
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize("forged", [(0, False), (1, True), (0, True)])
def test_the_order_of_writes_and_reads_counts(forged: tuple[int, bool]) -> None:
    right = assigned_twice(last=1, between=False)
    wrong = assigned_twice(last=forged[0], between=forged[1])
    assert proof(right, right).status == "equal"
    assert proof(right, wrong).status == "different"


# --- IF -------------------------------------------------------------------------------------------


def branches(
    *,
    exchanged: bool = False,
    flag: int = 0,
    known: bool | None = None,
    operands: tuple[int, int] = (0, 1),
    results: tuple[int, int] = (0, 1),
    body: tuple[str, str] = ("SUB", "MUL"),
    writes: str = "",
) -> bytes:
    """IF(flag): (a - b, a) else (a * b, a). known: the flag is a constant. writes: the branch
    that sets a variable, which is read afterwards."""
    net = Net()
    graph = net.graph()
    flags = [graph.input(f"flag{i}", (1,), "bool") for i in range(2)]
    inputs = [graph.input(f"x{i}", ROW, "float32") for i in range(2)]
    called: list[Graph] = []
    for name, kind in zip(("then", "else"), body, strict=True):
        branch = net.graph(name)
        a, b = (branch.input(f"{name}/{n}", ROW, "float32") for n in "ab")
        y = branch.tensor(f"{name}/y", ROW, "float32")
        branch.op(kind, [a, b], [y], f"{kind.title()}Options")
        if writes == name:
            value = branch.constant(f"{name}/v", np.full(ROW, 3.0), "float32")
            target = handle(branch, "v")
            branch.op("ASSIGN_VARIABLE", [target, value], [], "AssignVariableOptions")
        branch.outputs(*[(y, a)[i] for i in results])
        called.append(branch)
    if exchanged:
        called.reverse()
    if writes:
        start = graph.constant("start", np.zeros(ROW), "float32")
        graph.op("ASSIGN_VARIABLE", [handle(graph, "v"), start], [], "AssignVariableOptions")
    choice = flags[flag] if known is None else graph.constant("choice", [known], "bool")
    indices = {"thenSubgraphIndex": called[0].index, "elseSubgraphIndex": called[1].index}
    outs = [graph.tensor(f"out{i}", ROW, "float32") for i in range(2)]
    graph.op("IF", [choice, *(inputs[i] for i in operands)], outs, "IfOptions", **indices)
    if writes:
        outs.append(graph.tensor("v", ROW, "float32"))
        graph.op("READ_VARIABLE", [handle(graph, "v")], outs[-1:], "ReadVariableOptions")
    graph.outputs(*outs)
    return net.finish()


BRANCHES = {
    "branches exchanged": (branches(), branches(exchanged=True)),
    "another flag": (branches(), branches(flag=1)),
    "operands exchanged": (branches(), branches(operands=(1, 0))),
    "results exchanged": (branches(), branches(results=(1, 0))),
    "one branch for both": (branches(), branches(body=("SUB", "SUB"))),
    "always one of them": (branches(), branches(known=True)),
    "the other of a known choice": (branches(known=True), branches(known=False)),
    "a known choice exchanged": (branches(known=False), branches(known=False, exchanged=True)),
    "the other branch writes": (branches(writes="then"), branches(writes="else")),
}


@pytest.mark.parametrize("what", sorted(BRANCHES))
def test_branches_are_told_apart(what: str) -> None:
    right, forged = BRANCHES[what]
    assert proof(right, right).status == "equal"
    assert proof(right, forged).status == "different"
    assert differ(right, forged)


def test_the_branch_that_a_known_choice_leaves_out_does_not_count() -> None:
    forged = branches(known=True, body=("SUB", "SUB"))
    assert proof(branches(known=True), forged).status == "equal"
    assert not quick_differences(branches(known=True), forged)


# --- WHILE ----------------------------------------------------------------------------------------


def loops(
    *,
    tests: tuple[int, int] = (0, 1),
    bodies: tuple[int, int] = (0, 1),
    counts: tuple[int, int] = (2, 3),
    begins: int = 0,
    kind: str = "LESS",
    exchanged: bool = False,
    carried: tuple[int, int] = (0, 1),
) -> bytes:
    """Two loops one after the other: x = x - y so many times, then x = x * y. tests, bodies: which
    of both a loop has. exchanged: test for body. carried: the order in which a body returns x
    and y."""
    net = Net()
    graph = net.graph()
    values = [graph.input(n, ROW, "float32") for n in "xy"]
    parts: list[tuple[Graph, Graph]] = []
    for k, (name, count) in enumerate(zip(("SUB", "MUL"), counts, strict=True)):
        test, body = net.graph(f"test{k}"), net.graph(f"body{k}")
        i, _, _ = (test.input(n, (1,) if n == "i" else ROW, t)
                   for n, t in (("i", "int32"), ("x", "float32"), ("y", "float32")))  # fmt: skip
        verdict = test.tensor("goes on", (1,), "bool")
        limit = test.constant("limit", [count])
        test.op(kind, [i, limit], [verdict], f"{kind.title().replace('_', '')}Options")
        test.outputs(verdict)
        i, x, y = (body.input(n, (1,) if n == "i" else ROW, t)
                   for n, t in (("i", "int32"), ("x", "float32"), ("y", "float32")))  # fmt: skip
        following, z = body.tensor("next", (1,), "int32"), body.tensor("z", ROW, "float32")
        body.op("ADD", [i, body.constant("one", [1])], [following], "AddOptions")
        body.op(name, [x, y], [z], f"{name.title()}Options")
        body.outputs(following, *[(z, y)[c] for c in carried])
        parts.append((test, body))
    for k in range(2):
        called = [parts[tests[k]][0].index, parts[bodies[k]][1].index]
        if exchanged:
            called.reverse()
        counter = graph.constant(f"zero{k}", [begins])
        last = graph.tensor(f"last{k}", (1,), "int32")
        outs = [graph.tensor(f"{n}{k}", ROW, "float32") for n in "xy"]
        fields = {"condSubgraphIndex": called[0], "bodySubgraphIndex": called[1]}
        graph.op("WHILE", [counter, *values], [last, *outs], "WhileOptions", **fields)
        values = outs
    graph.outputs(*values)
    return net.finish()


LOOPS = {
    "tests exchanged": loops(tests=(1, 0)),
    "bodies exchanged": loops(bodies=(1, 0)),
    "both loops exchanged": loops(tests=(1, 0), bodies=(1, 0)),
    "one test for both": loops(tests=(0, 0)),
    "one body for both": loops(bodies=(1, 1)),
    "one turn more": loops(kind="LESS_EQUAL"),
    "one turn less": loops(begins=1),
    "carried in another order": loops(carried=(1, 0)),
}


@pytest.mark.parametrize("what", sorted(LOOPS))
def test_loops_are_told_apart(what: str) -> None:
    assert proof(loops(), loops()).status == "equal"
    assert proof(loops(), LOOPS[what]).status == "different"
    assert differ(loops(), LOOPS[what])


def test_a_test_in_place_of_a_body_is_damage() -> None:
    """It does not return what a loop carries: no runtime loads it."""
    with pytest.raises(ModelError, match=r"WHILE .* but it takes 3 and returns 3"):
        proof(loops(), loops(exchanged=True))


# --- scales of the whole operand ------------------------------------------------------------------

IMAGE = (1, 6, 4, 3)
FILTERS = RNG.integers(-127, 128, (5, 1, 1, 3))
DEPTHWISE = RNG.integers(-127, 128, (1, 1, 1, 3))
TURNED = RNG.integers(-127, 128, (5, 1, 1, 3))
STEPS = {"strideH": 1, "strideW": 1}
HYBRID = {
    "CONV_2D": (FILTERS, "Conv2DOptions", {"dilationHFactor": 1, "dilationWFactor": 1}),
    "DEPTHWISE_CONV_2D": (
        DEPTHWISE,
        "DepthwiseConv2DOptions",
        {"depthMultiplier": 1, "dilationHFactor": 1, "dilationWFactor": 1},
    ),
    "FULLY_CONNECTED": (FILTERS.reshape(5, 3), "FullyConnectedOptions", {"keepNumDims": True}),
    "BATCH_MATMUL": (FILTERS.reshape(5, 3).T, "BatchMatMulOptions", {}),
}


def image_by_small_weights(kind: str, parts: int) -> bytes:
    """Pixels by themselves: floats times int8 weights, as a whole or in parts of rows. Kernels
    round the operand to int8 by its largest element, of the whole image or of a part."""
    weights, options, fields = HYBRID[kind]
    steps = STEPS if "CONV" in kind else {}
    net = Net()
    graph = net.graph()
    x = graph.input("x", IMAGE, "float32")
    channels = 3 if kind.startswith("DEPTH") else 5
    scale = np.full(channels, 0.01) if "CONV" in kind else 0.01
    w = graph.constant("w", weights, "int8", scale=scale)
    if kind.startswith("DEPTH"):
        graph.table.tensors[w].quantization.quantizedDimension = 3
    rows = IMAGE[1] // parts
    made: list[int] = []
    for i in range(parts):
        part = x
        if parts > 1:
            part = graph.tensor(f"part{i}", (1, rows, *IMAGE[2:]), "float32")
            begin = graph.constant(f"begin{i}", [0, i * rows, 0, 0])
            size = graph.constant(f"size{i}", [1, rows, *IMAGE[2:]])
            graph.op("SLICE", [x, begin, size], [part], "SliceOptions")
        made.append(graph.tensor(f"y{i}", (1, rows, IMAGE[2], channels), "float32"))
        graph.op(kind, [part, w], made[-1:], options, version=2, **fields, **steps)
    y = made[0]
    if parts > 1:
        y = graph.tensor("y", (1, *IMAGE[1:3], channels), "float32")
        graph.op("CONCATENATION", made, [y], "ConcatenationOptions", axis=1)
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize("kind", sorted(HYBRID))
def test_parts_of_an_image_by_small_weights_are_not_the_image(kind: str) -> None:
    whole, parts = image_by_small_weights(kind, 1), image_by_small_weights(kind, 2)
    assert proof(whole, whole).status == "equal"
    assert proof(whole, parts).status == "different"


# --- entries --------------------------------------------------------------------------------------


def _scale_of_the_second(model: Model) -> None:
    result = model.graphs[1].ops[0].outputs[0]
    (scale,) = result.quantization.scales
    set_quantization(result, Quantization.of([2 * scale], result.quantization.zero_point))


def test_what_another_signature_offers_is_compared_too() -> None:
    """TFLM runs the main graph alone, LiteRT any."""
    data = signature_per_subgraph()
    right, wrong = proof(data, data), proof(data, changed(data, _scale_of_the_second))
    assert right.status == "equal" and right.error_log2 is not None
    assert wrong.status == "different" and "signature 'clip': output 0" in wrong.detail
    without = proof(data, changed(data, lambda m: m.signatures.clear()))
    assert without.status == "equal", "a signature that was stripped is nobody's promise"
    assert without.error_log2 is not None and without.error_log2 < right.error_log2
