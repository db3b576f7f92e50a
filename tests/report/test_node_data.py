"""Node data for Model Explorer: the operators that it draws, with what the memory map says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from tests.command import Run
from tests.conftest import PUBLISHED
from tests.models.small import narrow_rows
from tflm_planner.pipeline import api
from tflm_planner.pipeline.planning.by_hand import parse_regions
from tflm_planner.report.node_data import node_data
from tflm_planner.transforms.tile.boxes import box_in_name

VWW = PUBLISHED / "vww_96_int8.tflite"
SCHEMA = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            "results": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {
                    "type": "object",
                    "properties": {"value": {"type": ["number", "string"]}},
                    "required": ["value"],
                    "additionalProperties": False,
                },
            },
            "gradient": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "stop": {"type": "number", "minimum": 0, "maximum": 1},
                        "bgColor": {"type": "string", "pattern": "^#[0-9a-f]{6}$"},
                        "textColor": {"type": "string", "pattern": "^#[0-9a-f]{6}$"},
                    },
                    "required": ["stop"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["results"],
        "additionalProperties": False,
    },
}
"""ModelNodeData of Model Explorer's node_data_builder.py, as far as it is used: a graph's id, then
GraphNodeData with NodeDataResult and GradientItem."""


def planned(splits: list[str], loops: list[str] | None = None) -> api.Inspection:
    tiles = api.TilePermission(
        by_hand=parse_regions(None, splits, loops or []), operators=api.AllowedOperators.ALL
    )
    return api.inspect(api.plan(VWW, None, api.PlanOptions(tiles=tiles, verify=None)).data)


def test_every_operator_has_its_live_bytes() -> None:
    seen = api.inspect(VWW)
    found = node_data(seen.model, seen.map)
    for document in found.values():
        jsonschema.validate(document, SCHEMA)
    results = found["live_bytes"]["main"]["results"]
    assert [results[str(step.index)]["value"] for step in seen.map.steps] == [
        step.live_bytes for step in seen.map.steps
    ]
    scratch = found["scratch_bytes"]["main"]["results"]
    assert {int(place) for place in scratch} == {
        step.index for step in seen.map.steps if step.workspace_bytes
    }
    assert "tile" not in found


def test_tiles_say_which_rows_they_compute() -> None:
    seen = planned(["2-4:rows=3"])
    tiles = node_data(seen.model, seen.map)["tile"]["main"]["results"]
    names = [op.outputs[0].name for op in seen.model.main.ops]
    cut = {place for place, name in enumerate(names) if re.search(r"/h\d+:\d+(/|$)", name)}
    assert len(cut) >= 9
    assert {int(place) for place in tiles} == cut
    for place, result in tiles.items():
        assert f"/{result['value']}/" in f"{names[int(place)]}/"


def live_bytes(seen: api.Inspection) -> list[list[int]]:
    """Live bytes of each graph's operators."""
    places = range(len(seen.model.graphs))
    return [[s.live_bytes for s in seen.map.steps if s.graph == place] for place in places]


@pytest.mark.slow
def test_bodies_of_several_loops_have_names_of_their_own() -> None:
    """So that their operators go by their places, and a viewer finds the body of each loop."""
    seen = planned([], ["2-4:rows=2", "6-8:rows=2"])
    documents = node_data(seen.model, seen.map)
    jsonschema.validate(documents["live_bytes"], SCHEMA)
    found = {graph: document["results"] for graph, document in documents["live_bytes"].items()}
    assert list(found) == ["main", "body", "condition", "body_2", "condition_2"]
    assert list(found) == [graph.name for graph in seen.model.graphs]
    assert [
        [results[str(place)]["value"] for place in range(len(results))]
        for results in found.values()
    ] == live_bytes(seen)


def test_graphs_without_names_go_by_those_that_the_viewer_gives_them() -> None:
    seen = planned([], ["2-4:rows=2", "6-8:rows=2"])
    for graph in seen.model.graphs:
        graph.name = ""
    found = node_data(seen.model, seen.map)["live_bytes"]
    assert list(found) == ["main", "subgraph_1", "subgraph_2", "subgraph_3", "subgraph_4"]


def test_operators_of_graphs_of_one_name_go_by_their_results() -> None:
    seen = planned([], ["2-4:rows=2", "6-8:rows=2"])
    for graph in seen.model.graphs:
        graph.name = graph.name.removesuffix("_2")
    bodies = [place for place, graph in enumerate(seen.model.graphs) if graph.name == "body"]
    live = {
        op.outputs[0].name: size
        for place in bodies
        for op, size in zip(seen.model.graphs[place].ops, live_bytes(seen)[place], strict=True)
    }
    results = node_data(seen.model, seen.map)["live_bytes"]["body"]["results"]
    assert results
    assert {name: result["value"] for name, result in results.items()}.items() <= live.items()


@pytest.mark.parametrize(
    ("name", "box"),
    [
        ("conv/Relu/h0:10", "h0:10"),
        ("conv/Relu/h0:10/h2:5", "h2:5"),
        ("conv/Relu/h0:10,w4:8/padded", "h0:10,w4:8"),
        ("x/15:10", "15:10"),
        ("StatefulPartitionedCall:0", None),
        ("serving_default/keras_tensor:0", None),
    ],
)
def test_the_part_in_a_name(name: str, box: str | None) -> None:
    assert box_in_name(name) == box


def test_the_command_writes_a_file_a_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "small.tflite"
    model.write_bytes(narrow_rows())
    assert Run(["inspect", model, "--node-data", tmp_path / "data"], capsys).code == 0
    (live, *_) = sorted((tmp_path / "data").iterdir())
    assert live.name == "small.live_bytes.json"
    jsonschema.validate(json.loads(live.read_text()), SCHEMA)
