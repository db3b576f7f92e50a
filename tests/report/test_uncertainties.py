"""Kernels that nobody has read, and operators that nobody knows: "at least", and never that a model
fits, in every form in which a figure is shown, printed or pasted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.command import Run
from tests.conftest import CNN, PUBLISHED, needs_tflm
from tests.models.small import One, mystery, operator_alone
from tests.transforms.row_loops import chain
from tflm_planner.device.measuring.measurement import MeasuredSize
from tflm_planner.pipeline import api
from tflm_planner.report.svg.arena import ArenaBar, arena_svg
from tflm_planner.report.text.bounds import fits_words
from tflm_planner.support.units import parse_size
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.arena.uncertainty import Uncertainty, bound_of, bytes_to_reserve
from tflm_planner.tflm.targets import all_targets, load_target

NETWORK = chain((3, 1, 8), (3, 2, 8), (1, 1, 16), (3, 2, 8), size=32)
CLAIMS = re.compile(r"smallest that works|\bfits\b|to spare|within budget", re.IGNORECASE)


DOUBTFUL = {
    "unread kernels": (NETWORK, "esp32s3"),
    "an unknown operator": (mystery(64), "nano33ble"),
}


@pytest.fixture(params=DOUBTFUL)
def doubtful(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    data, target = DOUBTFUL[request.param]
    path = tmp_path / "in.tflite"
    path.write_bytes(data)
    return path, target


def test_every_target_with_unread_kernels_is_in_doubt() -> None:
    model = api.read_model(NETWORK)
    for target in all_targets().values():
        bound = bound_of(arena_of(model, target).uncertainties)
        bounds = {"unknown": "at least", "esp-nn": "about", "any": "enough"}
        wanted = "about" if target.tflm else bounds.get(target.kernels, "exact")
        assert bound == wanted, target.id


def test_arena_says_about_and_pastes_a_margin(doubtful, capsys) -> None:
    path, target = doubtful
    said = Run(["arena", path, "--target", target], capsys).out
    found = json.loads(Run(["arena", path, "--target", target, "--json"], capsys).out)
    assert not CLAIMS.search(said)
    assert f"about {found['arena']:,} B" in said and "not known to fit" in said
    (pasted,) = re.findall(r"kTensorArenaSize = (\d+);", said)
    assert int(pasted) == found["reserved"] > found["arena"]
    assert f"a margin of {found['reserved'] - found['arena']:,}" in said
    assert (found["exact"], found["bound"]) == (False, "about")
    assert {"head", "tail", "arena"} <= set(found)


def test_a_margin_ends_at_the_budget(tmp_path: Path, capsys) -> None:
    """What is pasted is never more than what was allowed."""
    model = PUBLISHED / "kws_ref_model.tflite"
    plain = ["--search", "none", "--no-verify", "--target", "cortex-m0plus/unknown"]
    for budget, ends in (("30K", True), ("100K", False)):
        done = Run([model, tmp_path / f"{budget}.tflite", *plain, "--budget", budget], capsys)
        (pasted,) = re.findall(r"kTensorArenaSize = (\d+);", done.out)
        assert done.code == 0 and "NOT KNOWN TO FIT" in done.out
        assert (pasted == str(30 << 10)) == ends and int(pasted) <= parse_size(budget)
        assert ("which is what the limit leaves of" in " ".join(done.out.split())) == ends


def test_an_operator_that_tflm_lacks_is_not_one_that_nobody_knows(tmp_path: Path, capsys) -> None:
    (tmp_path / "tile.tflite").write_bytes(operator_alone("TILE"))
    for words in (["arena"], ["check", "--max-arena", "9K"]):
        said = Run([words[0], tmp_path / "tile.tflite", *words[1:]], capsys).out
        assert "TFLM has no kernel for TILE" in said and "no entry" not in said


def test_a_reason_that_operators_share_is_said_once(tmp_path: Path, capsys) -> None:
    one = One((1, 8), "float32")
    for _ in range(2):
        y = one.tensor((1, 8))
        one.graph.op("GELU", [one.x], [y])
        one.x = y
    (tmp_path / "gelu.tflite").write_bytes(one.finish((one.x, (1, 8))))
    said = Run(["check", tmp_path / "gelu.tflite", "--max-arena", "9K"], capsys).out
    assert said.count("TFLM has no kernel for GELU") == 1 and " and 1 more: TFLM has" in said


@needs_tflm
def test_a_plan_that_ends_a_doubt_is_not_in_doubt(tmp_path: Path, capsys) -> None:
    """TFLM has no REDUCE_PROD, and the plan computes it ahead."""
    one = One((1, 8), "float32")
    shape, size, packed = (
        one.graph.tensor(n, s, "int32") for n, s in (("shape", (2,)), ("n", ()), ("p", (2,)))
    )
    one.graph.op("SHAPE", [one.x], [shape], "ShapeOptions", outType=2)
    one.graph.op("REDUCE_PROD", [shape, one.integers(0)], [size], "ReducerOptions")
    first = one.integers(1)
    one.graph.table.tensors[first].shape = []
    one.graph.op("PACK", [first, size], [packed], "PackOptions", valuesCount=2)
    y = one.tensor((1, 8))
    one.graph.op("RESHAPE", [one.x, packed], [y], "ReshapeOptions")
    (tmp_path / "prod.tflite").write_bytes(one.finish((y, (1, 8))))
    said = Run([tmp_path / "prod.tflite", tmp_path / "out.tflite"], capsys).out
    rows = [line for line in said.splitlines() if line.startswith(("  as it was", "  order and"))]
    assert ["about" in row for row in rows] == [True, False], said


@pytest.mark.slow
def test_a_plan_says_about_in_every_form(doubtful, tmp_path: Path, capsys) -> None:
    path, target = doubtful
    reports = [tmp_path / f"r.{kind}" for kind in ("json", "csv", "html", "svg")]
    options = [word for report in reports for word in ("--report", report)]
    tiles = ["--search", "none"]
    done = Run(
        [path, tmp_path / "out", "--target", target, "--budget", "900K", "--no-verify", *options,
         *tiles],
        capsys,
    )  # fmt: skip
    assert done.code == 0, done.err  # nothing says that it does not fit
    memory = api.MemoryOptions(kernels=api.kernels_of(api.load_target(target)))
    limited = api.PlanOptions(memory, verify=None, given_arena_limit=900 * 1024)
    report = api.plan(path, options=limited).report
    assert report.may_fit and not report.fits
    assert "about" in done.out and done.out.startswith("NOT KNOWN TO FIT")
    texts = {report.suffix: report.read_text() for report in reports}
    for text in (done.out, *texts.values()):
        assert not CLAIMS.search(text)
    document = json.loads(texts[".json"])
    assert document["arena"]["bound"] == document["before"]["map"]["bound"] == "about"
    assert document["budget"]["met"] is None
    assert document["after"]["arena"]["exact"] is False
    assert ",about," in texts[".csv"]
    for kind in (".html", ".svg"):
        assert "about" in texts[kind]
    assert "ESP-NN" in done.out or "mystery" in done.out  # the reason
    small = Run(
        [path, tmp_path / "b", "--target", target, "--budget", "100", "--no-verify", *tiles], capsys
    )
    assert small.code == 3 and small.out.startswith("NOT KNOWN TO FIT in 100 B: arena about")
    assert re.search(r"arena about [\d,]+ B, about [\d,]+ B more than the budget", small.out)


def test_check_lets_pass_only_what_fits_by_its_figure(doubtful, capsys) -> None:
    path, target = doubtful
    check = ["check", path, "--target", target, "--max-arena"]
    for room, code in (("900K", 0), ("100", 3)):
        done = Run([*check, room, "--allow-at-least"], capsys)
        assert done.code == code and done.out.startswith("NOT KNOWN TO FIT")
        assert Run([*check, room], capsys).code == 3


def test_inspect_and_export_say_about(doubtful, tmp_path: Path, capsys) -> None:
    path, target = doubtful
    svg = tmp_path / "map.svg"
    done = Run(["inspect", path, "--target", target, "--svg", svg], capsys)
    assert "head about" in done.out and "head about" in svg.read_text()
    shown = json.loads(Run(["inspect", path, "--target", target, "--json"], capsys).out)
    assert shown["map"]["bound"] == "about"
    if target == "esp32s3":
        assert Run(["export", path, tmp_path / "cpp", "--target", target, "-q"], capsys).code == 0
        text = (tmp_path / "cpp" / "in_arena.h").read_text()
        assert not CLAIMS.search(text) and "a margin of" in text


def test_pictures_say_about_where_they_are_read_out(doubtful, tmp_path: Path) -> None:
    path, target = doubtful
    arena = arena_of(api.read_model(path.read_bytes()), load_target(target))
    root = ElementTree.fromstring(arena_svg([ArenaBar("before", arena)], title="t"))
    assert root.attrib["aria-label"] == f"t: before about {arena.arena:,} B"


def test_networks_that_may_fit_are_drawn_so(tmp_path: Path, capsys) -> None:
    svg = tmp_path / "fit.svg"
    few = ["--resolutions", "16", "--widths", "0.5", "--searches", "0", "--budget", "90K"]
    done = Run(["fit", "--family", "resnet8", "-t", "esp32s3", *few, "--svg", svg], capsys)
    assert done.code == 0, done.err
    texts = [element.text or "" for element in ElementTree.parse(svg).iter()]
    dots = [text for text in texts if " MACs" in text]
    assert dots and all(": about " in dot for dot in dots)
    assert any(text.endswith("ring: may fit") for text in texts)


@pytest.mark.slow
def test_streamed_input_says_at_least(tmp_path: Path, capsys) -> None:
    path, header = tmp_path / "in.tflite", tmp_path / "in.h"
    path.write_bytes(NETWORK)
    arguments = ["stream-input", path, tmp_path / "front", tmp_path / "back", "--target", "esp32s3",
                 "--no-verify", "--header", header, "--force", "--time-limit", "5"]  # fmt: skip
    done = Run(arguments, capsys)
    assert "SRAM         about" in done.out and "ESP-NN" in done.out
    found = json.loads(Run([*arguments, "--json"], capsys).out)
    assert found["bound"] == "about"
    text = header.read_text()
    assert f"kBackArena = {found['back']['reserved']};" in text
    assert f"kFrontPersistent = {found['front']['reserved']};" in text
    assert found["back"]["reserved"] > found["back"]["arena"] and "with a margin" in text
    assert not CLAIMS.search(done.out + text)


def test_what_is_known_is_said_as_ever(tmp_path: Path, capsys) -> None:
    """So that none of the tests above passes for want of the words."""
    path = tmp_path / "in.tflite"
    path.write_bytes(NETWORK)
    said = Run(["arena", path, "--target", "nano33ble"], capsys).out
    assert len(CLAIMS.findall(said)) == 2 and "at least" not in said
    exact = api.arena(path, load_target("nano33ble"))
    assert exact.reserved == exact.arena and f"kTensorArenaSize = {exact.arena};" in said
    done = Run([path, tmp_path / "out", "--budget", "900K", "--no-verify"], capsys)
    assert done.out.startswith("FITS in ") and "at least" not in done.out


def test_a_measurement_keeps_the_bound() -> None:
    assert MeasuredSize("arena", 1, 2).bound == "exact"


def test_words_and_margins() -> None:
    assert fits_words(10, 20, "exact") == fits_words(10, 20, "enough") == "fits"
    assert fits_words(10, 20, "at least") == "not known to fit"
    assert fits_words(30, 20, "at least") == "DOES NOT FIT"
    assert fits_words(30, 20, "about") == fits_words(10, 20, "about") == "not known to fit"
    large, small = Uncertainty("a", 1.25), Uncertainty("b", 0.25, in_head=False)
    assert bytes_to_reserve(1000, [large, small]) == 2256
    assert bytes_to_reserve(1001, []) == 1001
    assert bound_of([Uncertainty("c", 0.0, bound="enough")]) == "enough"
    assert bound_of([Uncertainty("c", 0.0, bound="enough"), small]) == "at least"


def test_esp_nn_is_within_the_margin() -> None:
    """What ESP-NN needs on an ESP32-S3, of what is predicted: 2.1 times at most (facts from its
    sources, versions 1.1.2 to 1.2.3, and from field logs)."""
    for predicted, needed in ((100_800, 122_576), (55_068, 110_236), (27_360, 57_344),
                              (27_888, 34_096)):  # fmt: skip
        arena = arena_of(api.read_model(NETWORK), load_target("xtensa-lx7/unknown"))
        assert bytes_to_reserve(predicted, arena.uncertainties) >= needed  # fmt: skip


def test_a_plan_for_other_kernels_is_no_plan_here(tmp_path: Path, capsys) -> None:
    """It would corrupt memory: `arena` and `export` say so, as `inspect` does."""
    options = api.MemoryOptions(kernels=api.kernels_of(load_target("x86-64/reference")))
    made = api.plan(CNN, None, api.PlanOptions(options, verify=None)).data
    path = tmp_path / "planned.tflite"
    path.write_bytes(made)
    said = "beyond what the kernels of cortex-m4/cmsis-nn allow"
    assert said in Run(["arena", path], capsys).out
    assert said not in Run(["arena", path, "--target", "x86-64/reference"], capsys).out
    assert said in Run(["export", path, tmp_path / "cpp", "-q"], capsys).refused(5)
