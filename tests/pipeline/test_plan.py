"""The main job end to end, on real runtimes."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace

import jsonschema
import pytest

from tests.conftest import ROOT, needs_tflm, published_path
from tests.models.handmade import MODELS
from tests.models.registry import IMAGE, conv, is_refused, start
from tests.models.small import operator_alone
from tflm_planner.memory.problem import Plan, validate
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.model.text import to_text
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning.memory_plan import MemoryPlan, rank
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.pipeline.planning.planned_file import check_sharing, write_and_check
from tflm_planner.pipeline.planning.tiled_file import into_dialect, tiled_model
from tflm_planner.pipeline.planning.write import write_planned
from tflm_planner.report.json.document import to_json
from tflm_planner.support.errors import (
    ModelError,
    UnsoundPlanError,
    UsageError,
)
from tflm_planner.support.progress import silent
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.transforms.attach_plan import PLAN_METADATA, carried_plan
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification.verdict import DIFFERENT, EQUAL

RUNNABLE = sorted(n for n, m in MODELS.items() if m.runs_on_litert or m.runs_on_tflm)


def options(target: str = "x86-64/wheel", *, overlap: bool = False, **more) -> api.PlanOptions:
    """For this machine's TFLM, with the aliases that every kernel library allows."""
    on = api.kernels_of(api.load_target(target))
    return api.PlanOptions(api.MemoryOptions(kernels=on, overlap=overlap), **more)


def assert_as_predicted(report):
    """Real TFLM reports head and tail as predicted, before and after."""
    for side in (report.before, report.after):
        assert side.host.measured_head == side.host.predicted_head
        assert side.host.measured_tail == side.host.predicted_tail


@needs_tflm
@pytest.mark.slow
def test_cnn_reaches_its_bound(cnn):
    report = api.plan(cnn, options=options()).report
    assert (report.before.head, report.after.head) == (99_072, 78_336)
    assert (
        report.after.head
        == report.allocation.solution.lower_bound
        == report.limits.best_order_bytes
    )
    assert report.order.changed and report.order.optimal and report.allocation.solution.optimal
    assert_as_predicted(report)
    assert report.verified and all(c.outputs_vary for c in report.checks)
    schema = json.loads((ROOT / "schema" / "report.schema.json").read_text())
    jsonschema.validate(to_json(report), schema)


@needs_tflm
@pytest.mark.slow
def test_vww_reaches_its_bound():
    path = published_path("vww_96_int8")
    report = api.plan(path, options=options()).report
    assert (report.before.head, report.after.head) == (73_728, 55_296)
    assert_as_predicted(report)
    overlapped = api.plan(path, options=options(overlap=True)).report
    assert overlapped.after.head <= 38_000 and overlapped.verified
    assert overlapped.allocation.replayed == len(overlapped.allocation.input_overlaps) > 0


@needs_tflm
@pytest.mark.slow
def test_resnet8_loses_a_third_of_its_head():
    path = published_path("pretrainedResnet_quant")
    report = api.plan(path, options=options(overlap=True)).report
    assert (report.before.head, report.after.head) == (49_152, 33_312)
    assert report.verified
    assert_as_predicted(report)
    # What emulated hardware measured for plans made by hand is in the shared truth.
    default = api.plan(path, options=api.PlanOptions()).report
    assert default.before.arena.arena == 55_000 and default.after.arena.arena <= 39_192


@needs_tflm
@pytest.mark.parametrize("name", [n for n in RUNNABLE if not is_refused(n)])
@pytest.mark.mostly_slow(fast=4)
def test_corners_are_planned_and_proved(name):
    """Equal on every runtime that runs the original; predicted head = real head; never worse."""
    report = api.plan(MODELS[name].make()).report
    assert report.verified
    assert report.after.head <= report.before.head
    status = {c.runtime: c.status for c in report.checks}
    assert (status["LiteRT"] == "equal") == MODELS[name].runs_on_litert
    is_moved = name == "data_behind_the_flatbuffer"  # into it, so that TFLM runs the plan
    assert (status["TFLM"] == "equal") == (MODELS[name].runs_on_tflm or is_moved)
    if MODELS[name].runs_on_tflm:
        assert_as_predicted(report)


def test_same_input_and_seed_give_the_same_bytes(cnn):
    unproved = api.PlanOptions(verify=None)
    assert api.plan(cnn, options=unproved).data == api.plan(cnn, options=unproved).data


def test_planning_again_changes_nothing(cnn):
    once = api.plan(cnn, options=api.PlanOptions(verify=None))
    twice = api.plan(once.data, options=api.PlanOptions(verify=None))
    assert twice.data == once.data
    assert twice.report.before.head == once.report.after.head
    assert any("already carried" in note for note in twice.report.notes)


def test_names_and_signatures_survive():
    before = read_model(MODELS["several_signatures"].make())
    planned = api.plan(write_model(before), options=api.PlanOptions(verify=None))
    after = read_model(planned.data)
    for a, b in zip(before.signatures, after.signatures, strict=True):
        assert (a.key, [n for n, _ in a.inputs]) == (b.key, [n for n, _ in b.inputs])
        assert [t.name for _, t in a.outputs] == [t.name for _, t in b.outputs]
    assert {t.name for t in after.tensors()} == {t.name for t in before.tensors()}


def test_the_plan_lists_every_tensor_of_every_graph():
    planned = api.plan(MODELS["while_in_if"].make(), options=api.PlanOptions(verify=None))
    model = read_model(planned.data)
    (entry,) = [m for m in model.metadata if m.name == PLAN_METADATA]
    words = entry.buffer.data.view("<i4")
    tensors = list(model.tensors())
    assert list(words[:3]) == [1, len(model.graphs), len(tensors)]
    assert len(words) == 3 + len(tensors)
    offsets = carried_plan(model)
    for tensor, word in zip(tensors, words[3:], strict=True):
        assert (word == -1) == (tensor not in offsets)
        assert word % 16 == 0 or word == -1
        if tensor.is_constant or tensor.is_variable:
            assert word == -1


def test_of_two_plans_the_lower_one_ranks_first(cnn) -> None:
    """By the head, which for a dialect file is that without its views."""
    options = api.MemoryOptions(kernels=api.kernels_of(api.load_target("cortex-m4/cmsis-nn")))
    plan = plan_memory(read_model(cnn), options)
    dialect = replace(options, in_dialect=True)
    assert rank(replace(plan, head=plan.head - 16), options) < rank(plan, options)
    assert rank(plan, dialect) == rank(plan, options)  # it has no views
    assert rank(replace(plan, head=plan.head - 16), dialect) == rank(plan, dialect)
    before = to_text(plan.model)
    rank(plan, dialect)
    assert to_text(plan.model) == before


def everything_at_0(data: bytes) -> MemoryPlan:
    """A memory plan with all buffers at one place: it destroys every tensor."""
    memory_plan = plan_memory(read_model(data), api.MemoryOptions(), silent, Stop())
    offsets = (0,) * len(memory_plan.problem.buffers)
    return replace(memory_plan, solution=replace(memory_plan.solution, plan=Plan(offsets)))


@pytest.mark.parametrize("strip", ["nothing", "unread by TFLM"])
def test_what_is_made_of_a_plan_leaves_its_model_alone(cnn, strip):
    """The dialect drops operators, and stripped files names: of copies."""
    tiled, _ = tiled_model(cnn, [TiledRegion((0, 1), (Split(1, 4),))], crop=True)
    kernels = api.MemoryOptions().kernels
    options = api.MemoryOptions(kernels=kernels, strip=strip, bind_views=True, in_dialect=True)
    plan = plan_memory(tiled, options, silent, Stop())
    before = write_model(plan.model)
    rank(plan, options)
    dialect, _ = into_dialect(plan, options)
    assert len(dialect.model.main.ops) < len(plan.model.main.ops)
    write_planned(dialect, options)
    write_and_check(plan, options)
    assert write_model(plan.model) == before
    timeline = timeline_of(plan.model, kernels.scratch_of)
    assert timeline.planned == plan.timeline.planned
    assert not validate(planning_problem(timeline, options.input_overlaps_of), plan.solution.plan)


def test_the_validator_stands_before_the_runtimes(cnn):
    with pytest.raises(UnsoundPlanError, match="share bytes"):
        write_and_check(everything_at_0(cnn), api.MemoryOptions())


def test_the_replay_stands_between_them(cnn):
    """A contract that allowed too much would be found by replaying the kernels."""
    plan = everything_at_0(cnn)
    with pytest.raises(UnsoundPlanError, match="loses bytes with cmsis-nn kernels"):
        check_sharing(plan.timeline, plan.offsets, api.MemoryOptions().kernels)


@needs_tflm
def test_a_plan_that_destroys_tensors_is_found_by_tflm_alone(cnn):
    """LiteRT does not read plans; real TFLM computes something else."""
    corrupt = write_planned(everything_at_0(cnn).placed, api.MemoryOptions()).data
    checks = {check.runtime: check for check in api.check_equal(cnn, corrupt).checks}
    assert checks["LiteRT"].status == EQUAL and checks["TFLM"].status == DIFFERENT
    assert re.search(r"first at operator \d+", checks["TFLM"].detail)


def test_ethos_u_is_refused():
    model = read_model(MODELS["custom_operator"].make())
    for code in model.codes:
        code.custom = "ethos-u" if code.custom else code.custom
    with pytest.raises(ModelError, match="Vela"):
        api.plan(write_model(model))


def test_the_memory_of_an_npu_is_written_by_nobody():
    """Vela gives its operator scratch tensors as inputs."""
    model = read_model(MODELS["custom_operator"].make())
    custom = next(op for op in model.ops() if op.code.custom)
    custom.code.custom = "ethos-u"
    scratch = copy.copy(custom.outputs[0])
    scratch.name, scratch.producer, scratch.consumers = "scratch", None, []
    model.main.tensors.append(scratch)
    custom.inputs.append(scratch)
    data = write_model(model)
    with pytest.raises(ModelError, match="Vela"):
        api.plan(data)
    assert api.arena(data, api.load_target("cortex-m4/cmsis-nn")).arena > 0


def test_unproved_is_not_written(tmp_path):
    data = operator_alone("SIGN")
    with pytest.raises(ModelError, match="--no-verify"):
        api.plan(data, tmp_path / "out.tflite")
    assert list(tmp_path.iterdir()) == []
    report = api.plan(data, tmp_path / "out.tflite", api.PlanOptions(verify=None)).report
    assert not report.verified and (tmp_path / "out.tflite").exists()


def test_an_existing_file_is_not_replaced_by_accident(cnn, tmp_path):
    target = tmp_path / "out.tflite"
    target.write_bytes(b"precious")
    with pytest.raises(UsageError, match="--force"):
        api.plan(cnn, target)
    assert target.read_bytes() == b"precious"


def test_budget(cnn):
    need = api.plan(cnn, options=api.PlanOptions(verify=None)).report.after.arena.arena

    def fits(budget: int) -> bool:
        limited = api.PlanOptions(given_arena_limit=budget, verify=None)
        return api.plan(cnn, options=limited).report.within_budget

    assert fits(need) and not fits(need - 1)


@pytest.mark.parametrize("order", ["file", "rpo", "beam", "exact", "best"])
def test_every_order_is_never_worse_than_the_file(cnn, order):
    ordered = api.PlanOptions(api.MemoryOptions(order=order), verify=None)
    report = api.plan(cnn, options=ordered).report
    assert report.after.head <= report.before.head


def test_choices_are_checked():
    with pytest.raises(UsageError, match="order"):
        api.MemoryOptions(order="sideways")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="allocator"):
        api.MemoryOptions(allocator="wishful")


def test_loops_that_an_input_ends_are_said_to_count_once() -> None:
    """Their instructions are no figure to compare."""

    def counting(counts_from_input: bool) -> bytes:
        net, graph, x = start()
        zero = graph.constant("zero", [0])
        counter = graph.input("turns", (1,), "int32") if counts_from_input else zero
        condition, body = net.graph("condition"), net.graph("body")
        i = condition.input("i", (1,), "int32")
        less = condition.tensor("less", (1,), "bool")
        condition.op("LESS", [i, condition.constant("limit", [3])], [less], "LessOptions")
        condition.outputs(less)
        i, following = body.input("i", (1,), "int32"), body.tensor("i_next", (1,), "int32")
        body.op("ADD", [i, body.constant("one", [1])], [following], "AddOptions")
        body.outputs(following)
        last = graph.tensor("last", (1,), "int32")
        fields = {"condSubgraphIndex": condition.index, "bodySubgraphIndex": body.index}
        graph.op("WHILE", [counter], [last], "WhileOptions", **fields)
        graph.outputs(conv(graph, x, IMAGE), last)
        return net.finish()

    for from_input in (True, False):
        report = api.plan(counting(from_input), options=api.PlanOptions(verify=None)).report
        said = [n for n in report.notes if "1 loop runs as often as inputs say" in n]
        assert len(said) == from_input
