"""The ESP32-C3, as emulated: arenas that esp-tflite-micro with ESP-NN's generic C needed, of models
as they are and planned for it, against what is predicted; of some with ESP-NN's plain C, too.
`tests/data/truth/esp32c3.json` says what was run; in some random models SOFTMAX writes beyond
its scratch, which is known."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.conftest import CNN, DATA, TRUTH, published, shared_models
from tests.fuzz.random_models import model_of
from tests.models import handmade  # noqa: F401  (fills the registry)
from tests.models.handmade import MODELS as HANDMADE
from tests.tflm.custom_models import MODELS as OPERATORS
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.kernels.known_faults import faults_of
from tflm_planner.tflm.targets import load_target

PLANNED = DATA / "c3"
"""Planned random models, as they were run."""
MEASURED = json.loads((TRUTH / "esp32c3.json").read_text())
RECORDS: list[dict[str, Any]] = MEASURED["records"]
HERE = {path.stem for path in shared_models()}
MORE: dict[str, dict[str, Any]] = MEASURED["more random models"]
"""Head, tail, bytes that the plan and Prepare need, and the smallest arena, of each."""
PLAIN_C: dict[str, Any] = MEASURED["plain C"]
"""Built with CONFIG_NN_ANSI_C: head, tail and smallest arena."""
TARGET = load_target(MEASURED["target"])


def source(name: str) -> bytes:
    if name.startswith("random_"):
        return model_of(int(name.removeprefix("random_")))
    if name == CNN.stem:
        return CNN.read_bytes()
    if (case := DATA / "cases" / f"{name}.tflite").exists():
        return case.read_bytes()
    return published(name)


def assert_predicted(data: bytes, measured: dict[str, Any]) -> None:
    assert hashlib.sha256(data).hexdigest() == measured["sha256"], "another model was measured"
    arena = api.arena(data, TARGET)
    names = ("head", "tail", "used", "need_plan", "need_prepare", "arena")
    keys = ("head", "tail", "arena_used_bytes", "need_plan", "need_prepare", "min_arena")
    for name, key in zip(names, keys, strict=True):
        assert getattr(arena, name) == measured[key], name
    assert arena.tail_parts == measured["tail_breakdown"]
    assert [s.size for s in arena.scratch] == measured["scratch"]
    assert arena.bound == "exact"


def is_here(name: str) -> bool:
    return name.startswith("random_") or name in {*HERE, CNN.stem, "f08_int16_sum_r0032"}


@pytest.mark.parametrize(
    "record", [r for r in RECORDS if is_here(r["model"])], ids=lambda r: r["model"]
)
def test_arenas_of_models_as_they_are(record: dict[str, Any]) -> None:
    assert_predicted(source(record["model"]), record["stock"])


@pytest.mark.parametrize("path", sorted(PLANNED.glob("*.tflite")), ids=lambda p: p.stem)
def test_arenas_of_planned_models(path: Any) -> None:
    name = path.stem.removesuffix(".planned")
    (record,) = (r for r in RECORDS if r["model"] == name)
    assert_predicted(path.read_bytes(), record["planned"])
    assert record["planned"]["min_arena"] <= record["stock"]["min_arena"]


def test_arenas_of_single_operators() -> None:
    """Head, tail and arena of small models of one operator, and of models made by hand."""
    assert len(MEASURED["operators"]) > 150
    for name, figures in MEASURED["operators"].items():
        kind, _, key = name.partition("_")
        arena = api.arena(OPERATORS[key]() if kind == "op" else HANDMADE[key].make(), TARGET)
        assert [arena.head, arena.tail, arena.arena] == figures, name


@pytest.mark.slow
def test_arenas_of_more_random_models() -> None:
    assert len(MORE) == 114
    for name, found in MORE.items():
        arena = api.arena(source(name), TARGET)
        needs = arena.need_plan, arena.need_prepare
        assert [arena.head, arena.tail, *needs, arena.arena] == found["stock"], name
        assert found["planned"][-1] <= found["stock"][-1]


@pytest.mark.slow
def test_arenas_with_plain_c() -> None:
    """To the byte where the model ran; some are larger than those of TFLM's own kernels."""
    plain, reference = load_target("esp32c3/reference"), load_target("xtensa-lx7/reference")
    ran = {name: found for name, found in PLAIN_C.items() if found != "aborted" and is_here(name)}
    assert len(ran) > 50
    larger = 0
    for name, found in ran.items():
        arena = api.arena(source(name), plain)
        assert [arena.head, arena.tail, arena.arena] == found and arena.bound == "exact", name
        larger += arena.arena > api.arena(source(name), reference).arena
    assert larger > 10
    for name in (name for name, found in PLAIN_C.items() if found == "aborted"):
        faults = faults_of(read_model(source(name)).ops(), plain)
        assert any("groups" in reason for reason in faults), name


def test_planned_models_computed_the_same_bits_unless_esp_nn_is_known_to_be_wrong() -> None:
    differ = [r["model"] for r in RECORDS if not r["equal"]]
    differ += [name for name, found in MORE.items() if not found["equal"]]
    assert differ == ["random_16", "random_44", "random_60", "random_140", "random_192"]
    for name in differ:
        faults = faults_of(read_model(source(name)).ops(), TARGET)
        assert any("SOFTMAX" in reason or "second dimension" in reason for reason in faults)


def test_convolutions_in_groups_ended_the_program_and_are_known_to() -> None:
    """Run again without assertions in CONV_2D alone, which gave the figures above."""
    aborted = [r["model"] for r in RECORDS if r["with_assertions"] == "aborted"]
    aborted += [name for name, found in MORE.items() if found["with_assertions"] == "aborted"]
    assert len(aborted) == 14
    for name in aborted:
        faults = faults_of(read_model(source(name)).ops(), TARGET)
        assert any("groups" in reason for reason in faults)
