"""Plans in models are judged, whoever made them: each fault is named, with the pair, the place and
the time, and by every command that looks at a plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.command import Run
from tests.conftest import CNN
from tests.models.generator import random_model
from tests.models.handmade import MODELS
from tests.models.small import Chain
from tests.transforms.plans import dialect_plan
from tests.transforms.random_tiles import random_scheme
from tests.transforms.tiled import RARE_KINDS, dialect_of, tiled
from tflm_planner.device.cpp.export import export
from tflm_planner.model.edit import add_metadata, remove_metadata
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops.window import ROWS
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.support.errors import ModelError
from tflm_planner.support.units import align_up
from tflm_planner.tflm.liveness import timeline_of
from tflm_planner.tflm.placement import placement_of, tensor_offsets, variables_without_memory
from tflm_planner.transforms.attach_plan import PLAN_METADATA, AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification.planned import PlanVerdict, verify_plan

KERNELS = api.kernels_of()
Words = list[int]


def network() -> bytes:
    """x -> a -> b -> c, with the plan that the package makes."""
    net = Chain((1, 8, 8, 4))
    for channels in (8, 4, 8):
        net.conv(channels, 3)
    options = api.PlanOptions(verify=None)
    return api.plan(net.finish(), None, options).data


def words_of(model: Model) -> Words:
    (plan,) = [m for m in model.metadata if m.name == PLAN_METADATA]
    assert plan.buffer.data is not None
    return np.frombuffer(plan.buffer.data.tobytes(), "<i4").tolist()


def with_words(data: bytes, *plans: Words) -> bytes:
    """The model with these plans in place of its own."""
    model = read_model(data, dialect=True)
    remove_metadata(model, PLAN_METADATA)
    for words in plans:
        add_metadata(model, PLAN_METADATA, np.array(words, "<i4").view(np.uint8))
    return write_model(model)


def forged(change: Callable[[Words, list[int]], Words]) -> bytes:
    """The network with its plan changed: the words, and the places in them of activations."""
    model = read_model(NETWORK)
    own = carried_plan(model)
    assert own is not None
    places = [3 + i for i, t in enumerate(model.tensors()) if t in own]
    return with_words(NETWORK, change(words_of(model), places))


def put(offset: Callable[[int], int]) -> Callable[[Words, list[int]], Words]:
    """Another offset for the last activation."""

    def change(words: Words, places: list[int]) -> Words:
        at = max(places, key=lambda p: words[p])
        return [*words[:at], offset(words[at]), *words[at + 1 :]]

    return change


NETWORK = network()
FORGED = {
    "collision": forged(lambda w, places: [0 if i in places else v for i, v in enumerate(w)]),
    "negative": forged(put(lambda _: -32)),
    "alignment": forged(put(lambda at: at + 4)),
    "far": forged(put(lambda _: 1 << 30)),
    "count": forged(lambda w, _: [*w[:2], w[2] - 1, *w[3:-1]]),
}
SAID = {
    "collision": "share",
    "negative": "offset -32, below the arena",
    "alignment": "no multiple of 16",
    "far": "far beyond the",
    "count": "offsets, and the model",
}


def verdict(data: bytes) -> PlanVerdict:
    return verify_plan(read_model(data), KERNELS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "forged.tflite"


@pytest.mark.parametrize("kind", FORGED)
def test_every_command_names_the_fault(kind: str, path: Path, capsys) -> None:
    path.write_bytes(FORGED[kind])
    done = Run(["verify", path], capsys)
    assert done.code == 4 and "the plan that the model carries is wrong" in done.err
    assert SAID[kind] in done.out and "WRONG" in done.out and "SOUND" not in done.out
    for verb in ("arena", "inspect"):
        said = " ".join(Run([verb, path], capsys).out.split())
        assert "CANNOT RUN" in said and "the plan that the model carries" in said
        assert SAID[kind] in said
    assert api.arena(FORGED[kind]).arena < 1 << 20
    kinds = {fault.kind for fault in verdict(FORGED[kind]).faults}
    assert kind in kinds


@pytest.mark.parametrize("kind", FORGED)
def test_a_wrong_plan_is_replaced(kind: str) -> None:
    report = api.plan(FORGED[kind], None, api.PlanOptions(verify=None)).report
    assert any(note.startswith("dropped: the plan that the model carries") for note in report.notes)
    assert report.after.arena.arena == api.arena(NETWORK).arena


def test_holes_are_no_faults() -> None:
    data = forged(put(lambda _: 1 << 17))
    assert verdict(data).sound and api.arena(data).arena > 1 << 17


def test_pair_place_and_time_of_a_collision() -> None:
    """a lies over x, which the first convolution still reads."""
    model = read_model(NETWORK)
    first = model.main.ops[0]
    (x,), (a,) = model.main.inputs, first.outputs
    place = {t.name: 3 + i for i, t in enumerate(model.tensors())}
    words = words_of(model)
    words[place[a.name]] = words[place[x.name]] + 16
    found = verdict(with_words(NETWORK, words))
    (fault,) = [f for f in found.faults if {f.first, f.second} == {x.name, a.name}]
    start = words[place[a.name]]
    assert (fault.bytes_from, fault.bytes_to) == (start, start + 256 - 16)
    assert fault.operators == (0, 0) and "operator 0 (CONV_2D)" in fault.said
    assert found.terms is not None and found.terms.status == "different"
    assert "operator 0 of the result" in found.terms.detail


@pytest.mark.mostly_slow(fast=12)
@pytest.mark.parametrize("name", sorted(MODELS))
def test_our_own_plans_are_sound(name: str) -> None:
    try:
        options = api.PlanOptions(verify=None)
        data = api.plan(MODELS[name].make(), None, options).data
    except (api.ModelError, api.UsageError):
        return  # that a model is refused is held elsewhere
    found = verdict(data)
    assert found.sound, found.faults


def test_bytes_are_followed_through_our_own_plan() -> None:
    found = verdict(NETWORK)
    assert found.sound and found.terms is not None and found.terms.status == "equal"
    assert found.left == 0 and found.head == api.arena(NETWORK).head


def test_what_tflm_places_itself_is_simulated() -> None:
    """A plan that leaves a tensor to TFLM, and where first fit puts scratch."""
    model = read_model(NETWORK)
    place = 3 + list(model.tensors()).index(model.main.outputs[0])
    words = words_of(model)
    words[place] = -1
    found = verdict(with_words(NETWORK, words))
    assert found.sound and found.left == 1
    arena = api.arena(NETWORK)
    assert {(s.operator, s.size, s.offset) for s in found.scratch} >= {
        (s.operator, s.size, s.offset) for s in arena.scratch
    } or found.head != arena.head


def test_tflm_takes_the_last_plan_and_refuses_any_that_is_miscounted() -> None:
    own = words_of(read_model(NETWORK))
    collides = words_of(read_model(FORGED["collision"]))
    assert verdict(with_words(NETWORK, collides, own)).sound
    assert not verdict(with_words(NETWORK, own, collides)).sound
    (fault,) = verdict(with_words(NETWORK, [1, 1, 0], own)).faults
    assert fault.kind == "count"


@pytest.mark.parametrize(
    ("words", "said"), [([1, 1], "too short"), (None, "only 0 are there")], ids=["header", "body"]
)
def test_plans_that_end_early(words: Words | None, said: str) -> None:
    cut = words_of(read_model(NETWORK))[:3] if words is None else words
    (fault,) = verdict(with_words(NETWORK, cut)).faults
    assert fault.kind == "count" and said in fault.said


def test_a_model_without_a_plan(path: Path, capsys) -> None:
    path.write_bytes(CNN.read_bytes())
    done = Run(["verify", path], capsys)
    assert done.code == 0 and "NO PLAN: TFLM's own plan is what runs" in done.out
    found = json.loads(Run(["verify", path, "--json"], capsys).out)
    assert not found["has_plan"] and found["sound"] and found["proof"] is None


def test_a_damaged_model_is_no_wrong_plan(path: Path, capsys) -> None:
    path.write_bytes(NETWORK[:300])
    assert "damaged" in Run(["verify", path], capsys).refused(5)


def test_the_document_says_pair_place_and_time(path: Path, capsys) -> None:
    path.write_bytes(FORGED["collision"])
    done = Run(["verify", path, "--json"], capsys)
    document = json.loads(done.out)
    assert done.code == 4 and not document["sound"]
    fault = document["faults"][0]
    assert fault["kind"] == "collision" and fault["first"] and fault["second"]
    assert fault["bytes_from"] < fault["bytes_to"] and fault["operators"]
    assert document["proof"]["status"] == "different"


def test_options_for_two_models_are_refused_with_one(path: Path, capsys) -> None:
    path.write_bytes(NETWORK)
    for options in (["--inputs", "2"], ["--seed", "1"], ["--allow-inexact"], ["--verbose"]):
        assert "does nothing here" in Run(["verify", path, *options], capsys).refused(2)


@pytest.mark.parametrize("seed", range(12))
def test_plans_in_the_dialect(seed: int) -> None:
    """Offsets are judged, and what an operator reads and writes."""
    data = random_model(seed, steps=3 + seed, kinds=RARE_KINDS)
    scheme = random_scheme(data, seed + 1)
    assert scheme is not None
    made = dialect_of(tiled(data, scheme)[0]).dialect
    model = read_model(made, dialect=True)
    found = verify_plan(model, KERNELS)
    assert found.sound, found.faults
    if model.has_views:
        assert found.terms is None and "views" in found.notes[0]
    own, words = carried_plan(model), words_of(model)
    place = next(3 + i for i, t in enumerate(model.tensors()) if own and t in own)
    words[place] += 4
    moved = read_model(with_words(made, words), dialect=True)
    assert "alignment" in {f.kind for f in verify_plan(moved, KERNELS).faults}


def test_elements_that_no_array_holds_are_not_followed() -> None:
    data = api.plan(MODELS["variant_tensors"].make(), None, api.PlanOptions(verify=None)).data
    found = verdict(data)
    assert found.sound and found.terms is not None and "variant" in found.terms.detail


def test_old_tflm_confuses_plans_of_several_graphs() -> None:
    data = api.plan(MODELS["while_in_if"].make(), None, api.PlanOptions(verify=None)).data
    assert verdict(data).reads_since.isoformat() == "2023-03-29"
    assert verdict(NETWORK).reads_since.isoformat() == "2023-01-01"
    old = api.kernels_of(api.with_tflm(KERNELS.target, "2023-02"))
    (fault,) = verify_plan(read_model(data), old).faults
    assert fault.kind == "version" and "2023-03-29" in fault.said
    assert verify_plan(read_model(NETWORK), old).sound


def test_bytes_are_followed_beside_all_faults_that_leave_them_where_they_are() -> None:
    """Every tensor in one place but for one that is unaligned, for a TFLM that confuses them."""
    data = api.plan(MODELS["while_in_if"].make(), None, api.PlanOptions(verify=None)).data
    model = read_model(data)
    own = carried_plan(model) or {}
    first = max(own, key=lambda t: t.nbytes)
    offsets = [-1 if t not in own else 4 if t is first else 0 for t in model.tensors()]
    wrong = with_words(data, [*words_of(model)[:3], *offsets])
    old = api.kernels_of(replace(api.load_target("cortex-m4/cmsis-nn"), tflm="2023-01"))
    found = verify_plan(read_model(wrong), old)
    assert {fault.kind for fault in found.faults} == {"alignment", "collision", "version"}
    assert found.terms is not None and found.terms.status == "different"


def test_tiles_for_other_kernels_are_not_exported() -> None:
    """Reference kernels let the result of a 1x1 convolution trail its operand; CMSIS-NN's fast one
    computes several pixels before it stores the first."""
    net = Chain((1, 16, 16, 16))
    for channels, size in ((16, 3), (16, 1), (16, 1), (8, 1)):
        net.conv(channels, size)
    bands = TiledRegion((0, 1), (Split(ROWS, 2),))
    reference = api.kernels_of(api.load_target("cortex-m4/reference"))
    made = dialect_plan(net.finish(), [bands], MemoryOptions(kernels=reference)).data
    model = read_model(made, dialect=True)
    assert model.has_views and not verify_plan(model, reference).faults
    assert set(export(made, "tiled", reference.target))
    found = verify_plan(model, KERNELS)
    assert {fault.kind for fault in found.faults} == {"collision"} and not found.sound
    with pytest.raises(ModelError, match="beyond what the kernels of cortex-m4/cmsis-nn allow"):
        export(made, "tiled", KERNELS.target)


def test_variables_share_their_bytes_with_nothing() -> None:
    """The state of an SVDF, placed in the head by the plan. Scratch makes way for it, planned
    tensors do not."""
    data = MODELS["svdf"].make()
    model = read_model(data)
    state = next(t for t in model.tensors() if t.is_variable)
    timeline = timeline_of(model, KERNELS.scratch_of)
    above = align_up(placement_of(timeline).head)
    offsets = tensor_offsets(timeline, placement_of(timeline).plan)
    on_input = offsets[model.main.inputs[0]]
    for offset, sound in ((above, True), (0, True), (on_input, False), (above + 4, False)):
        run(model, AttachPlan(offsets | {state: offset}))
        found = verify_plan(model, KERNELS)
        assert found.sound == sound, found.faults
        assert all(state.name in fault.said for fault in found.faults)


def test_variables_of_sub_graphs_keep_their_memory() -> None:
    """Listed as in the file, TFLM would look the state up at the entry of an activation."""
    original = read_model(MODELS["svdf_in_loop"].make())
    places = placement_of(timeline_of(original, KERNELS.scratch_of))
    offsets = tensor_offsets(places.timeline, places.plan)
    assert any(variables_without_memory(original, offsets))
    made = write_model(original)
    words = [1, 3, *[offsets.get(t, -1) for t in original.tensors()]]
    words.insert(2, len(words) - 2)
    (fault,) = verdict(with_words(made, words)).faults
    assert fault.kind == "version" and "'state' gets no memory" in fault.said
    run(original, AttachPlan(offsets))
    found = verdict(write_model(original))
    assert found.sound and found.terms is not None and found.terms.status == "equal"


def test_state_that_no_list_of_tensors_keeps_is_refused() -> None:
    """A first sub-graph all of whose tensors are planned."""
    original = read_model(MODELS["svdf_in_loop"].make())
    with pytest.raises(ModelError, match="fewer constants"):
        run(original, AttachPlan(dict.fromkeys(original.main.tensors, 0)))
