"""Axis maps, the axis connecting graph, and which splits are exact."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from tests.conftest import needs_tflm, published
from tests.models.build import Net
from tests.transforms.tiled import tiled
from tflm_planner.cli.app import app
from tflm_planner.model.serde import read_model
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Same, Scatter, Slide
from tflm_planner.ops.macs import macs, total_macs
from tflm_planner.pipeline.planning.by_hand import parse_split
from tflm_planner.report.text.axes import axes_text
from tflm_planner.transforms.axis_graph import REDUCE, axis_graph, cells, schemes_along


def perceptron():
    """(N, C) = (2, 12) through FULLY_CONNECTED to (2, 5), then SOFTMAX."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (2, 12), scale=0.1)
    weights = graph.constant("w", [[1] * 12] * 5, "int8", scale=0.1)
    y, z = graph.tensor("y", (2, 5), scale=0.1), graph.tensor("z", (2, 5), scale=1 / 256)
    graph.op("FULLY_CONNECTED", [x, weights], [y], "FullyConnectedOptions")
    graph.op("SOFTMAX", [y], [z], "SoftmaxOptions", beta=1.0)
    graph.outputs(z)
    return read_model(net.finish())


def test_the_example_of_the_paper():
    """Linear: u@1 -- v@1 is spatial, u@2 -- v@0 the reduce axis."""
    model = perceptron()
    names = [axis.names for axis in axis_graph(model.main.ops[:1]).axes()]
    assert sorted(names) == [("x@1", "y@1"), ("x@2", f"y@{REDUCE}")]


def test_the_two_conditions_of_a_scheme():
    model = perceptron()
    ops = model.main.ops
    rows, reduce = sorted(axis_graph(ops).axes(), key=lambda a: a.names)
    assert rows.names == ("x@1", "y@1", "z@1")
    good = schemes_along(model.main, ops, rows, 2)
    assert good.faults() == [] and good.exact
    bad = schemes_along(model.main, ops, reduce, 2)
    assert len(bad.faults()) == 2 and bad.exact  # z untouched, y reduced inside
    alone = schemes_along(model.main, ops[:1], reduce, 2)
    assert alone.faults() == [] and not alone.exact


def test_axes_of_a_residual_cell():
    model = read_model(published("pretrainedResnet_quant"))
    assert [len(c) for c in cells(model.main)] == [4, 4, 4, 4]
    axes = axis_graph(cells(model.main)[1]).axes()
    assert [(len(a.names), a.sizes) for a in axes[:3]] == [(5, (1,)), (5, (32, 16)), (5, (32, 16))]
    text = axes_text(model.main)
    cell = text[text.index("cell 1") : text.index("cell 2")].splitlines()
    assert cell[0] == "cell 1: operators 4 to 7"
    assert cell[2].endswith("1      16 A    16 B    32 E   sums over C")
    assert [" ".join(line.split()) for line in cell[6:11]] == [
        "A length 32 16 exact: --split 4-7:rows=N",
        "B length 32 16 exact: --split 4-7:columns=N",
        "C length 16 summed up by 4, 6 NOT exact: --split 4,6:sum=N --allow-inexact",
        "D length 32 exact: --split 5-7:channels=N",
        "E length 32 summed up by 5 NOT exact: --split 4-5:sum=N --allow-inexact",
    ]
    assert total_macs(model.main.ops) == 12_501_632


def test_maps_of_the_operators_of_vww():
    ops = read_model(published("vww_96_int8")).main.ops
    first = axis_map(ops[0])
    assert first.links_of(1)[0].rule == Slide(3, 2, 1, 0)
    assert first.reduces == ((0, 3), (1, 3))
    assert [k.operand for k in axis_map(ops[1]).links_of(3)] == [0, 1, 2]
    assert not axis_map(ops[-1]).links_of(1)
    assert macs(ops[0]) == 48 * 48 * 8 * 27


@pytest.mark.parametrize(
    ("rule", "wanted", "size", "needs"),
    [
        (Same(-2), (0, 5), 9, (0, 3)),
        (Slide(3, 2, 1, 0), (4, 6), 96, (8, 13)),
        (Slide(3, 1, 2, 2), (0, 2), 10, (0, 4)),
        (Slide(1, 4, 1, 0), (1, 3), 9, (4, 9)),
        (Scatter(3, 2, 0), (3, 5), 8, (1, 3)),
    ],
)
def test_what_a_range_needs(rule, wanted, size, needs):
    assert rule.needs(wanted, size) == needs


def test_inspect_axes(cnn, tmp_path):
    path = tmp_path / "cnn.tflite"
    path.write_bytes(cnn)
    shown = CliRunner().invoke(app, ["inspect", str(path), "--axes"])
    assert shown.exit_code == 0 and "\ncell 0: " in shown.output


@needs_tflm
@pytest.mark.parametrize("name", ["pretrainedResnet_quant", "vww_96_int8"])
def test_what_inspect_says_of_axes_can_be_done(name):
    """Every split that the text spells out is one that the pass makes."""
    data = published(name)
    spelled = re.findall(r"--split (\S+)=N", axes_text(read_model(data).main))
    assert len(spelled) >= 3
    for text in spelled:
        _, (note, *_) = tiled(data, parse_split(f"{text}=2"), inexact=True)
        assert note.startswith("tiled"), (text, note)
