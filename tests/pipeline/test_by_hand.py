"""Tilings that are spelled out: --patch, --split, --allow-inexact."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tests.conftest import PUBLISHED, needs_tflm
from tests.models.small import Chain, bottleneck, wide
from tflm_planner.cli.app import app
from tflm_planner.cost import latency_of
from tflm_planner.model.serde import read_model
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Slide
from tflm_planner.ops.macs import macs, total_macs
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning.by_hand import (
    parse_loop,
    parse_patch,
    parse_split,
    possible_regions,
)
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.pipeline.planning.tiled_file import tiled_model
from tflm_planner.support.errors import UsageError
from tflm_planner.support.progress import silent
from tflm_planner.support.stopping import Stop
from tflm_planner.transforms.axis_graph import blocks
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import SUM, Patch, TiledRegion, band

VWW = PUBLISHED / "vww_96_int8.tflite"


def test_spellings():
    assert parse_patch("3,16") == Patch(3, 16)
    assert parse_patch(" 2, 5b") == Patch(2, 5, blocks=True)
    assert parse_split("2-4:rows=3") == TiledRegion((2, 3, 4), (Split(1, 3),))
    assert parse_split("0,2-3:rows=3,columns=2,border=waste") == TiledRegion(
        (0, 2, 3), (Split(1, 3), Split(2, 2)), border="waste"
    )
    assert parse_split("7:axis0=2,halo=merge,order=backward") == TiledRegion(
        (7,), (Split(0, 2),), "merge", backward=True
    )
    assert parse_split("2:rows=3,growth=-30,columns=2") == TiledRegion(
        (2,), (Split(1, 3, -30), Split(2, 2))
    )
    assert parse_split("7:sum=4") == TiledRegion((7,), (Split(SUM, 4),))


@pytest.mark.parametrize("text", ["", "3", "0,4", "3,0", "3,4c", "-1,3", "3,4,5"])
def test_patches_that_are_not_understood(text):
    with pytest.raises(UsageError, match="--patch"):
        parse_patch(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "2-4", "4-2:rows=3", "2:rows", "2:rows=0", "2:rows=x", "2:halo=none,rows=2",
        "2:halo=merge", "2:rows=2,rows=3", "2:sum=2,rows=2", "x:rows=2", "2,,3:rows=2",
        "2:growth=30,rows=2", "2:rows=2,growth=100", "2:rows=2,growth=x", "2:sum=4,growth=30",
        "2:rows=2,growth=30,growth=10", "2:rows=2,halo=merge,halo=blocks",
    ],
)  # fmt: skip
def test_splits_that_are_not_understood(text):
    with pytest.raises(UsageError, match="--split"):
        parse_split(text)


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (parse_patch("2,6"), "--patch 2,6: the model has 5 operators; give 5 at most"),
        (parse_patch("2,99b"), "--patch 2,99b: the model has 4 blocks; give 4b at most"),
        (parse_split("4-5:rows=2"), "--split: there is no operator 5: the model has 5 operators; "
         "give numbers from 0 to 4"),
        (parse_loop("99-100"), "--loop: there is no operator 100: the model has 5 operators; give "
         "numbers from 0 to 4"),
    ],
)  # fmt: skip
def test_operators_that_are_not_there(region, words):
    """The last operator is there, one more is not, whichever option names it."""
    with pytest.raises(UsageError) as refused:
        possible_regions(wide(), (region,), inexact=False)
    assert str(refused.value) == words
    for there in (parse_patch("2,5"), parse_split("4:rows=2")):
        assert possible_regions(wide(), (there,), inexact=False)


def test_patches_count_operators_as_the_file_does():
    """The first operator of the file does nothing, and is dropped before the others are tiled."""
    net = Chain((1, 16, 16, 4))
    net.pool(net.x)
    net.conv(8, 3)
    net.conv(8, 3)
    data = net.finish()
    (region,) = possible_regions(data, (parse_patch("2,2"),), inexact=False)
    assert region.ops == (0,)
    with pytest.raises(UsageError, match="--patch 2,1: these operators do nothing"):
        possible_regions(data, (parse_patch("2,1"),), inexact=False)


def test_loops_as_they_are_spelled():
    assert parse_loop("2-4") == LoopedRegion((2, 3, 4))
    assert parse_loop(" 2, 4 : rows=2, border=reverse") == LoopedRegion((2, 4), 2, "reverse")


@pytest.mark.parametrize(
    "text", ["", "4-2", "x", "2:rows", "2:rows=0", "2:rows=-1", "2:border=pad", "2:columns=2"]
)
def test_loops_that_are_not_understood(text):
    with pytest.raises(UsageError, match="--loop"):
        parse_loop(text)


@pytest.mark.slow
def test_blocks_of_a_mobile_network():
    """A pair of depthwise and 1x1 convolution each, where they do not widen on the way."""
    model = read_model(VWW.read_bytes())
    found = blocks(model.main)
    assert sum(map(len, found)) == len(model.main.ops) == 31
    assert [op for block in found for op in block] == model.main.ops


@pytest.mark.slow
def test_patches_compute_what_receptive_fields_ask_for_and_no_more():
    """MCUNetV2's overhead: counted here from windows alone, tile by tile."""
    data = VWW.read_bytes()
    model = read_model(data)
    chain = model.main.ops[:8]
    p = 3

    def thirds(size):
        return [(size * k // p, size * (k + 1) // p) for k in range(p)]

    _, height, width, _ = chain[-1].outputs[0].shape
    expected = 0
    for rows in thirds(height):
        for columns in thirds(width):
            wanted = {1: rows, 2: columns}
            for op in reversed(chain):
                out = op.outputs[0].shape
                area = (wanted[1][1] - wanted[1][0]) * (wanted[2][1] - wanted[2][0])
                expected += macs(op) * area // (out[1] * out[2])
                for axis in (1, 2):
                    (link,) = axis_map(op).links_of(axis)
                    assert isinstance(link.rule, Slide)
                    wanted[axis] = link.rule.needs(wanted[axis], op.inputs[0].shape[axis])
    rest = total_macs(model.main.ops[8:])
    Regions((Patch(p, 8).region(model.main),)).apply(model)
    assert total_macs(model.main.ops) == expected + rest


@needs_tflm
@pytest.mark.slow
def test_patch_on_the_command_line(tmp_path):
    out = tmp_path / "out.tflite"
    report = tmp_path / "out.json"
    arguments = ["plan", str(VWW), str(out), "--patch", "2,3b", "--inputs", "2", "--quiet",
                 "--time-limit", "2", "--report", str(report)]  # fmt: skip
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    said = json.loads(report.read_text())
    assert said["verified"] and any("2 parts of rows x 2 parts" in n for n in said["notes"])
    assert any("must also register" in note for note in said["notes"])


def run(tmp_path, data, *arguments):
    source = tmp_path / "in.tflite"
    source.write_bytes(data)
    out = tmp_path / "out.tflite"
    options = ["--force", "--time-limit", "2", "--inputs", "3"]
    return CliRunner().invoke(app, ["plan", str(source), str(out), *options, *arguments]), out


@needs_tflm
@pytest.mark.slow
def test_a_split_sum_is_written_only_if_allowed_and_said_aloud(tmp_path):
    data = bottleneck()
    refused, out = run(tmp_path, data, "--split", "1-3:sum=3")
    assert refused.exit_code == 2 and "--allow-inexact" in refused.output and not out.exists()
    done, out = run(tmp_path, data, "--split", "1-3:sum=3", "--allow-inexact")
    assert done.exit_code == 0, done.output
    assert "NO: the outputs are NOT equal, but within the tolerance" in done.output
    assert "NOT EXACT" in done.output and "largest difference 1 steps" in done.output.replace(
        "\n               ", " "
    )
    source = str(tmp_path / "in.tflite")
    assert CliRunner().invoke(app, ["verify", source, str(out)]).exit_code == 4
    near = CliRunner().invoke(app, ["verify", source, str(out), "--allow-inexact"])
    assert near.exit_code == 0 and "NOT equal, but within tolerance" in near.output
    said = CliRunner().invoke(app, ["verify", source, str(out), "--allow-inexact", "--json"])
    assert json.loads(said.stdout)["equal"] is False


@pytest.mark.slow
@needs_tflm
def test_the_permission_tolerates_nothing_where_all_is_exact(tmp_path):
    done, _ = run(tmp_path, wide(), "--split", "0-3:rows=3", "--allow-inexact")
    assert done.exit_code == 0 and "yes, the outputs are equal" in done.output


@needs_tflm
@pytest.mark.slow
def test_the_slowdown_is_that_of_the_file():
    """Its views copy nothing; those of the portable twin would."""
    data, target = VWW.read_bytes(), api.load_target("cortex-m4/cmsis-nn")
    tiles = api.TilePermission(by_hand=(parse_split("1-6:rows=3"),))
    options = api.PlanOptions(api.MemoryOptions(kernels=api.kernels_of(target)), tiles, verify=None)
    planned = PlanningSession(data, Stop(), silent).plan(options).file
    twin, _ = tiled_model(data, tiles.by_hand, crop=False)
    source = read_model(data)
    Normalize().apply(source)  # slowdowns are those of tiles alone
    before, portable = (latency_of(m, target).instructions for m in (source, twin))
    assert planned.slowdown == planned.instructions(target) / before
    assert 1 < planned.slowdown < portable / before


def test_operators_that_do_nothing_make_no_tiling_faster():
    """They are dropped before tiling, as without tiles: what is told is what tiles cost."""
    net = Chain((1, 16, 16, 4))
    net.pool(net.x)  # nothing reads its result
    net.conv(8, 3)
    net.conv(8, 3)
    tiles = api.TilePermission(by_hand=(parse_split("1-2:rows=2"),))
    options = api.PlanOptions(tiles=tiles, verify=None)
    assert PlanningSession(net.finish(), Stop(), silent).plan(options).file.slowdown > 1


def test_a_loop_beside_tiles_is_proved_and_says_what_it_needs(tmp_path):
    done, out = run(tmp_path, wide(), "--loop", "0-1:rows=2,border=peeled", "--split", "2-3:rows=3")
    assert done.exit_code == 0 and "yes, the outputs are equal" in done.output
    assert "streamed 2 operators" in done.output and "tiled 2 operators" in done.output
    kinds = [op.kind for op in read_model(out.read_bytes(), dialect=True).main.ops]
    assert kinds.count("WHILE") == 1 and "resolver.AddWhile();" in done.output


def test_what_cannot_be_done_by_hand_is_said(tmp_path):
    refused, out = run(tmp_path, wide(), "--split", "0-99:rows=2")
    assert refused.exit_code == 2 and "no operator 99" in refused.output and not out.exists()
    refused, _ = run(tmp_path, wide(), "--split", "0:axis0=2")
    assert refused.exit_code == 2 and "not tiled" in refused.output
    refused, out = run(tmp_path, wide(reshaped=True), "--loop", "0-1")
    assert refused.exit_code == 2 and "not streamed" in refused.output and not out.exists()
    twice = ("--split", "0-2:rows=2", "--split", "2-3:rows=2")
    refused, out = run(tmp_path, wide(), *twice)
    assert refused.exit_code == 2 and "share an operator" in refused.output and not out.exists()


@needs_tflm
@pytest.mark.parametrize("target", ["x86-64/reference", "cortex-m4/cmsis-nn"])
@pytest.mark.slow
def test_outputs_put_together_from_tiles_need_no_operator(target):
    """The graph's output is tiled; the model knows RESHAPE, or TFLM has no scratch to fear."""
    data = wide(reshaped=True)
    memory = api.MemoryOptions(time_limit=2.0, kernels=api.kernels_of(api.load_target(target)))
    tiles = api.TilePermission(
        by_hand=(band(1, 4, 3),), operators=api.AllowedOperators.of(("PAD",))
    )
    result = api.plan(data, options=api.PlanOptions(memory, tiles=tiles))
    assert result.report.verified
    kinds = [op.kind for op in read_model(result.data, dialect=True).main.ops]
    assert "CONCATENATION" not in kinds and kinds[-1] == "RESHAPE"
