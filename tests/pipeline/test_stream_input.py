"""Streamed input: front and back as a pair compute the same bits, in the memory that is told."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.command import Run
from tests.conftest import PUBLISHED, ROOT, needs_tflm
from tests.models.build import Net
from tests.models.strategies import PATIENT
from tests.transforms.row_loops import chain, random_blocks
from tests.transforms.stream_inputs import (
    cleaned,
    differences,
    faults,
    halves,
    places,
    some_place,
    wrong_sizes,
)
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline import prove as proving
from tflm_planner.pipeline.stream_input.render import render_header
from tflm_planner.support.errors import ModelError, OutputsDifferError, UsageError
from tflm_planner.tflm.arena.predict import arena_of, split_arena
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.row_loop import NotStreamableError
from tflm_planner.transforms.row_loop.split_input import can_split, split_model
from tflm_planner.verification.pairs import verify_pair

VWW = PUBLISHED / "vww_96_int8.tflite"
M4 = "cortex-m4/cmsis-nn"
WHEEL = "x86-64/wheel"
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def on(target: str) -> api.MemoryOptions:
    return api.MemoryOptions(time_limit=5.0, kernels=api.kernels_of(api.load_target(target)))


@needs_tflm
@settings(PATIENT, max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
@pytest.mark.slow
def test_pairs_compute_the_same_bits(seed: int, steps: int) -> None:
    """Random chains and blocks, any kernel, stride, dilation and padding, strips of several rows,
    heights that they do not divide; several images in a row; int8, int16 and float."""
    data = random_blocks(seed, steps)
    where = some_place(cleaned(data), random.Random(seed))
    assume(where is not None)
    assert where is not None
    assert faults(data, where, host=seed % 3 == 0) == []


def test_where_it_splits_and_how_it_runs() -> None:
    model = cleaned(chain((3, 1, 4), (3, 2, 4), (1, 1, 8), (3, 1, 8)))
    halved = split_model(model, (0, 1), 1)
    # 3x3 looks one row ahead, then 3x3 stride 2 (above 0, below 1) one more: one row of 6 late
    assert halved.strips == replace(
        halved.strips, height=12, rows=2, turns=7, made=1, delay=1, result_height=6
    )
    assert halved.strips.clock and len(halved.strips.fills) == 2
    assert [t.shape for t in halved.front.main.inputs] == [
        (1, 2, 5, 3), (1,), (1, 2, 7, 3), (1, 1, 7, 4)
    ]  # fmt: skip
    assert [op.kind for op in halved.back.main.ops] == ["CONV_2D", "CONV_2D"]
    assert len(model.main.ops) == 4, "the model itself stays"


def test_without_padding_there_is_no_clock() -> None:
    halved = split_model(cleaned(chain((3, 1, 4), (3, 1, 4), (1, 1, 4), same=False)), (0, 1), 1)
    assert halved.strips.clock == 0 and halved.strips.first_state == 1
    assert len(halved.front.main.inputs) == 3


@needs_tflm
def test_a_moved_halo_shows() -> None:
    """The proof is one: a front whose halos are not kept, or filled with something else, computes
    something else, and a strip more or less does too."""
    data = chain((3, 1, 4), (3, 2, 4), (1, 1, 8), (3, 1, 8))
    pair = halves(data, ((0, 1), 1))
    assert differences(data, pair) == []
    strips = pair.strips
    others = (
        replace(strips, fills=(5, *strips.fills[1:])),
        replace(strips, delay=strips.delay - 1),
        replace(strips, turns=strips.turns - 1),
        replace(strips, clock=strips.clock - 1),
    )
    for other in others:
        assert differences(data, replace(pair, strips=other)), other
    assert verify_pair(data, replace(pair, strips=others[1])).differs


@needs_tflm
def test_states_lie_where_they_were_and_the_strip_beside_them() -> None:
    data = chain((3, 1, 4), (3, 2, 4), (3, 1, 8))
    pair = halves(data, ((0, 1), 2))
    model = read_model(pair.front)
    plan = carried_plan(model)
    assert plan is not None and pair.strips.states
    inputs, outputs = model.main.inputs, model.main.outputs
    assert [plan[inputs[a]] for a, _ in pair.strips.states] == [
        plan[outputs[b]] for _, b in pair.strips.states
    ]
    taken = sorted((plan[t], plan[t] + t.nbytes) for t in inputs)
    assert all(a[1] <= b[0] for a, b in pairwise(taken))
    assert wrong_sizes(pair) == []


@needs_tflm
@pytest.mark.slow
def test_what_is_found_is_proved_and_counted(tmp_path: Path) -> None:
    """The search keeps to what it says: the room is the front's second arena, and the SRAM that of
    the back beside what persists of the front."""
    data = chain((3, 1, 8), (3, 2, 8), (1, 1, 16), (3, 2, 8), size=32)
    paths = tmp_path / "front.tflite", tmp_path / "back.tflite"
    options = api.StreamOptions(on(WHEEL), verify=api.VerifyOptions(inputs=4))
    made = api.stream_input(data, paths, options)
    assert made.verdict is not None and made.verdict.proved
    front, back = (read_model(path.read_bytes()) for path in paths)
    target = api.load_target(WHEEL)
    apart = split_arena(front, target, carried_plan(front))
    assert apart == made.pair.front_arena
    _, room = back.main.inputs
    assert room.nbytes == apart.shared and not room.consumers
    arena = arena_of(back, target, carried_plan(back)).arena
    assert made.pair.sram == apart.persistent + arena
    plan = carried_plan(back)
    assert plan is not None and plan[room] % 16 == 0
    for path, options in ((paths[0], {}), (paths[1], {"rows": 4})):
        with pytest.raises(UsageError, match="exists"):
            api.stream_input(data, paths, api.StreamOptions(on(WHEEL), **options))
        assert path.exists()


@pytest.mark.slow
def test_rows_and_end_are_kept() -> None:
    data = chain((3, 1, 4), (3, 2, 4), (3, 1, 8), (3, 1, 8), size=24)
    made = api.stream_input(data, None, api.StreamOptions(on(WHEEL), rows=4, end=1, verify=None))
    assert made.pair.ops == (0, 1)
    assert made.pair.schedule.rows == 4 and made.pair.schedule.made == 2
    with pytest.raises(UsageError, match="take a multiple of 2"):
        api.stream_input(data, None, api.StreamOptions(on(WHEEL), rows=3, end=1))
    with pytest.raises(UsageError, match="operator 3"):
        api.stream_input(data, None, api.StreamOptions(on(WHEEL), end=3))


def test_an_end_that_is_no_operator_is_called_so() -> None:
    data = chain((3, 1, 4), (3, 2, 4), (3, 1, 8))
    with pytest.raises(UsageError, match=r"^--end 3: there are operators 0 to 2$"):
        api.stream_input(data, None, api.StreamOptions(on(WHEEL), end=3))


def test_operators_have_the_numbers_of_the_file() -> None:
    """Also where clean-up drops some: nobody reads what the first one makes."""

    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 12, 5, 2), scale=0.1)
    unread, y, z = (graph.tensor(name, (1, 12, 5, 2), scale=0.1) for name in ("unread", "y", "z"))
    graph.op("ABS", [x], [unread])
    graph.op("RELU", [x], [y])
    graph.op("RELU6", [y], [z])
    graph.outputs(z)
    options = api.StreamOptions(on(WHEEL), end=1, verify=None)
    assert api.stream_input(net.finish(), None, options).pair.ops == (1,)
    with pytest.raises(UsageError, match="--end 0: nothing is left of that operator"):
        api.stream_input(net.finish(), None, replace(options, end=0))


def test_what_cannot_be_streamed_is_refused() -> None:
    net = Net()
    graph = net.graph()
    x, y = (graph.input(n, (1, 8, 4, 2), scale=0.1) for n in "xy")
    z = graph.tensor("z", (1, 8, 4, 2), scale=0.1)
    graph.op("ADD", [x, y], [z], "AddOptions")
    graph.outputs(z)
    with pytest.raises(ModelError, match="2 inputs"):
        api.stream_input(net.finish(), None, api.StreamOptions(on(M4)))

    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 8, 4, 2), scale=0.1)
    y, z = (graph.tensor(n, s, scale=0.1) for n, s in (("y", (1, 64)), ("z", (1, 64))))
    graph.op("RESHAPE", [x], [y], "ReshapeOptions", newShape=[1, 64])
    graph.op("RELU", [y], [z])
    graph.outputs(z)
    with pytest.raises(ModelError, match="cannot be streamed: RESHAPE"):
        api.stream_input(net.finish(), None, api.StreamOptions(on(M4)))


def test_an_input_that_is_needed_again_is_not_split() -> None:
    """The input and what came of it meet behind: the ADD can be in the front, nothing less."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 8, 4, 2), scale=0.1)
    a, b, c = (graph.tensor(n, (1, 8, 4, 2), scale=0.1) for n in "abc")
    graph.op("LEAKY_RELU", [x], [a], "LeakyReluOptions", alpha=0.5)
    graph.op("ADD", [x, a], [b], "AddOptions")
    graph.op("LEAKY_RELU", [b], [c], "LeakyReluOptions", alpha=0.5)
    graph.outputs(c)
    model = cleaned(net.finish())
    with pytest.raises(NotStreamableError, match="needed elsewhere"):
        can_split(model, (0,), 1)
    assert {ops for ops, _ in places(model)} == {(0, 1)}
    assert differences(net.finish(), halves(net.finish(), ((0, 1), 3))) == []


def test_a_pair_that_differs_is_not_written(tmp_path: Path, monkeypatch) -> None:
    data = chain((3, 1, 8), (3, 2, 8), (1, 1, 16), size=24)
    paths = tmp_path / "front.tflite", tmp_path / "back.tflite"
    real = verify_pair

    def late(original, pair, *rest):
        return real(original, replace(pair, strips=replace(pair.strips, delay=0)), *rest)

    monkeypatch.setattr(proving, "verify_pair", late)
    with pytest.raises(OutputsDifferError):
        api.stream_input(
            data, paths, api.StreamOptions(on(WHEEL), end=1, verify=api.VerifyOptions(inputs=2))
        )
    assert not any(path.exists() for path in paths)


@needs_tflm
@pytest.mark.slow
def test_vww_without_its_input_in_memory() -> None:
    """27,648 bytes of input, and an arena of 57,032 bytes with everything else that we know."""
    options = api.StreamOptions(on(M4), verify=api.VerifyOptions(inputs=3))
    made = api.stream_input(VWW.read_bytes(), None, options)
    assert made.verdict is not None and {c.status for c in made.verdict.checks} == {"equal"}
    assert made.before == 100_712 and made.pair.sram <= 48_772
    assert made.pair.slowdown < 1.12


MAIN = """
#include <cassert>
#include <cstring>

#include "strips.h"

namespace s = net_strips;

int main() {
  tflite::MicroInterpreter front, back;
  static int8_t strip[1024], made[1024], halo0[@HALO0@ + 1], halo1[@HALO1@ + 1];
  static int8_t boundary[@BOUNDARY@ + 1];
  static uint8_t room[64];
  int32_t clock = -1;
  front.inputs.resize(4);
  front.inputs[0].data.int8 = strip;
  front.inputs[1].data.i32 = &clock;
  front.inputs[2].data.int8 = halo0;
  front.inputs[3].data.int8 = halo1;
  front.outputs.resize(1);
  front.outputs[0].data.int8 = made;
  back.inputs.resize(2);
  back.inputs[0].data.int8 = boundary;
  back.inputs[1].data.uint8 = room;
  back.inputs[1].bytes = sizeof room;
  static uint8_t persistent[s::kFrontPersistent];
  const tflite::MicroAllocator* given = s::Room(back, persistent);
  assert(given->persistent == persistent && given->persistent_size == s::kFrontPersistent);
  assert(given->other == room && given->other_size == sizeof room);
  halo0[@HALO0@] = halo1[@HALO1@] = boundary[@BOUNDARY@] = 99;
  for (int image = 0; image < 2; ++image) {
    s::Start(front);
    for (int i = 0; i < @HALO0@; ++i) assert(halo0[i] == @FILL0@);
    for (int i = 0; i < @HALO1@; ++i) assert(halo1[i] == @FILL1@);
    halo0[0] = halo1[0] = 44;
    int turns = 0;
    front.invoke = [&] {
      assert(clock == turns * s::kClock);
      for (int r = 0; r < s::kMadeRows; ++r)
        std::memset(made + r * s::kResultRowBytes, turns * s::kMadeRows + r, s::kResultRowBytes);
      ++turns;
      return kTfLiteOk;
    };
    for (int turn = 0; turn < s::kTurns; ++turn)
      if (s::Strip(front, back, turn) != kTfLiteOk) return 1;
    for (int row = 0; row < s::kResultRows; ++row)
      for (int i = 0; i < s::kResultRowBytes; ++i)
        assert(boundary[row * s::kResultRowBytes + i] == row + s::kDelay);
  }
  assert(halo0[@HALO0@] == 99 && halo1[@HALO1@] == 99 && boundary[@BOUNDARY@] == 99);
  front.invoke = [] { return kTfLiteError; };
  return s::Strip(front, back, 0) == kTfLiteError ? 0 : 2;
}
"""


@needs_compiler
@pytest.mark.parametrize(("size", "rows"), [(24, 2), (23, 4), (22, 6)])
@pytest.mark.mostly_slow(fast=1)
def test_the_header_runs_the_pair(tmp_path: Path, size: int, rows: int) -> None:
    data = chain((3, 1, 4), (3, 2, 4), (3, 1, 8), size=size)
    options = api.StreamOptions(on(M4), rows=rows, end=1, verify=None)
    found = api.stream_input(data, None, options).pair
    halos = [found.front.inspection.model.main.inputs[i] for i, _ in found.schedule.states]
    boundary = found.back.inspection.model.main.inputs[0]
    text = MAIN.replace("@BOUNDARY@", str(boundary.nbytes))
    for i, (halo, fill) in enumerate(zip(halos, found.schedule.fills, strict=True)):
        text = text.replace(f"@HALO{i}@", str(halo.nbytes)).replace(f"@FILL{i}@", str(fill))
    (tmp_path / "strips.h").write_text(render_header(found, "net", api.load_target(M4)))
    (tmp_path / "main.cpp").write_text(text)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsanitize=address"]
    stub = ROOT / "tests" / "stubs" / "interpreter"
    subprocess.run(
        ["g++", *flags, "-I", stub, "-I", ".", "main.cpp", "-o", "program"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0


def test_fills_are_written_as_they_are_stored() -> None:
    """Padding of MAX_POOL_2D is the lowest value, not the zero point: floats too."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 12, 6, 2), "float32")
    y, z = (graph.tensor(n, (1, 12, 6, 2), "float32") for n in "yz")
    graph.op("MAX_POOL_2D", [x], [y], "Pool2DOptions", padding=0, strideH=1, strideW=1,
             filterHeight=3, filterWidth=3)  # fmt: skip
    graph.op("LOGISTIC", [y], [z])
    graph.outputs(z)
    options = api.StreamOptions(on(WHEEL), end=0, verify=None)
    found = api.stream_input(net.finish(), None, options).pair
    assert found.schedule.fills == (float(np.finfo(np.float32).min),)
    assert "-3.4028234663852886e+38f" in render_header(found, "net", api.load_target(M4))


def test_the_document_follows_its_schema(tmp_path: Path, capsys) -> None:
    source, files = tmp_path / "in.tflite", (tmp_path / "front", tmp_path / "back")
    source.write_bytes(chain((3, 1, 4), (3, 2, 4)))
    done = Run(
        ["stream-input", source, *files, "--search", "none", "--inputs", 2, "--json"], capsys
    )
    document = json.loads(done.out)
    schema = json.loads((ROOT / "schema/streamed.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert list(document) == list(schema["properties"])
    pair = api.stream_input(source, options=api.StreamOptions(verify=None)).pair
    assert document["sram"] == pair.sram and document["strips"]["rows"] == pair.schedule.rows
    assert document["verified"] and document["front"]["persistent"] == pair.front_arena.persistent
