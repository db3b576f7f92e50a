"""`tflm-plan mcp`: what a client of the official SDK sees of it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.command import Run
from tests.conftest import CNN, PUBLISHED
from tests.models.small import mystery
from tflm_planner.pipeline import api

pytest.importorskip("mcp")
import anyio
import mcp.types as sdk
from mcp import Client, MCPError, StdioServerParameters

from tflm_planner.cli.mcp_server import make_server
from tflm_planner.cli.mcp_tools import TOOLS, Workspace

KWS = "kws.tflite"
TOML = '[target]\nid = "mine"\nbase = "cortex-m4/cmsis-nn"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model, and things beside it that are not served."""
    served = tmp_path / "served"
    served.mkdir()
    shutil.copy(PUBLISHED / "kws_ref_model.tflite", served / KWS)
    shutil.copy(CNN, tmp_path / "secret.tflite")
    (tmp_path / "secret.toml").write_text(TOML)
    (served / "mine.toml").write_text(TOML)
    (served / "link.tflite").symlink_to(tmp_path / "secret.tflite")
    (served / "damaged.tflite").write_bytes(b"TFL3" * 9)
    return served.resolve()


def with_client(folder: Path, use: Callable[[Client], Any]) -> Any:
    """What `use` gives with a client of a server of the folder."""

    async def main() -> Any:
        async with Client(make_server(Workspace(folder))) as client:
            return await use(client)

    return anyio.run(main)


def call(folder: Path, tool: str, **arguments: Any) -> sdk.CallToolResult:
    return with_client(folder, lambda client: client.call_tool(tool, arguments))


def result_of(folder: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    """A result without error, which follows the schema that the tool announces."""
    result = call(folder, tool, **arguments)
    assert not result.is_error, result.content
    (schema,) = [other.output_schema for other in TOOLS if other.name == tool]
    jsonschema.validate(result.structured_content, schema)
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def error_of(folder: Path, tool: str, **arguments: Any) -> tuple[int, str, str]:
    result = call(folder, tool, **arguments)
    assert result.is_error
    error = result.structured_content
    assert result.content[0].text.startswith(f"error {error['code']} ({error['kind']}): ")
    return error["code"], error["kind"], error["message"]


def test_tools_are_announced_with_their_schemas(folder: Path) -> None:
    listed = with_client(folder, lambda client: client.list_tools()).tools
    assert [tool.name for tool in listed] == ["arena", "compare", "inspect", "plan"]
    for tool in listed:
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert tool.annotations.read_only_hint == (tool.name != "plan")


def test_arena_is_what_the_command_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = result_of(folder, "arena", model=KWS, target="nano33ble")
    printed = Run(["arena", folder / KWS, "--target", "nano33ble", "--json"], capsys)
    assert found == json.loads(printed.out)
    assert found["arena"] == 22824


def test_compare_names_boards(folder: Path) -> None:
    found = result_of(folder, "compare", model=KWS, boards="nano*")
    assert {row["board"] for row in found["boards"]} == {"nano33ble", "nanorp2040"}
    assert [len(row["rungs"]) for row in found["boards"]] == [1, 1]


def test_compare_plans_where_asked(folder: Path) -> None:
    found = result_of(folder, "compare", model=KWS, boards="nano33ble", planned=True)
    assert found["columns"] == ["stock", "plan", "lean"]


def test_compare_makes_no_verdict_of_what_is_about(folder: Path) -> None:
    """By its figure it fits the one board and not the other; neither is said."""
    (folder / "mystery.tflite").write_bytes(mystery(3 << 10))
    for planned in (False, True):
        found = result_of(folder, "compare", model="mystery.tflite", boards="*no*", planned=planned)
        cells = {row["board"]: row["rungs"] for row in found["boards"]}
        for board, left in (("nano33ble", True), ("unor4", False)):
            assert {cell["bound"] for cell in cells[board]} == {"about"}
            assert {cell["fits"] for cell in cells[board]} == {None}
            assert all((cell["margin"] >= 0) == left for cell in cells[board])
            assert all("no entry for this operator" in cell["warnings"][0] for cell in cells[board])


def test_inspect_lists_the_largest_first(folder: Path) -> None:
    found = result_of(folder, "inspect", model=KWS, operators=3)
    sizes = [operator["live_bytes"] for operator in found["largest"]]
    assert len(sizes) == 3
    assert sizes == sorted(sizes, reverse=True)
    assert found["peak"]["live_bytes"] == sizes[0] == found["arena"]["head"]
    own = sum(tensor["own"] for tensor in found["peak_tensors"])
    assert own + found["peak"]["workspace_bytes"] == sizes[0]


@pytest.mark.slow
def test_plan_writes_a_proved_model(folder: Path) -> None:
    said: list[str] = []

    async def on_progress(_: float, __: float | None, words: str | None) -> None:
        said.append(words or "")

    shutil.copy(PUBLISHED / "pretrainedResnet_quant.tflite", folder / "resnet8.tflite")
    arguments = {"model": "resnet8.tflite", "output": "small.tflite", "budget": "40K"}
    result = with_client(
        folder, lambda client: client.call_tool("plan", arguments, progress_callback=on_progress)
    )
    found = result.structured_content
    assert (found["fits"], found["verified"], found["proof"]) == (True, True, "equal")
    written = api.arena(folder / "small.tflite", api.load_target("cortex-m4/cmsis-nn"))
    assert found["arena"]["after"] == written.arena < found["arena"]["before"] == 55000
    assert any("ordering" in words for words in said)
    commands = [rung["command"] for rung in found["ladder"] if rung["command"]]
    assert any("--firmware more-ops" in command for command in commands)


async def cancel_plan(client: Client, folder: Path, words: str, budget: str) -> None:
    """Cancel a plan once it says these words. The next call is answered after it has ended."""
    heard: list[str] = []
    arguments = {"model": KWS, "output": "small.tflite", "budget": budget}
    with anyio.CancelScope() as scope:

        async def on_progress(_: float, __: float | None, said: str | None) -> None:
            heard.append(said or "")
            if words in heard[-1]:
                scope.cancel()

        await client.call_tool("plan", arguments, progress_callback=on_progress)
    assert scope.cancelled_caught
    assert words in heard[-1]
    after = await client.call_tool("arena", {"model": KWS})
    assert after.structured_content["arena"] == 22824
    names = {path.name for path in folder.iterdir()}
    assert names == {KWS, "mine.toml", "link.tflite", "damaged.tflite"}


@pytest.mark.parametrize(
    ("words", "budget"), [("ordering", "20K"), ("looking for tiles", "20K"), ("proving", "30K")]
)
def test_a_plan_that_is_cancelled_ends_and_writes_nothing(
    folder: Path, words: str, budget: str
) -> None:
    with_client(folder, lambda client: cancel_plan(client, folder, words, budget))


def test_plan_replaces_no_file_unless_told(folder: Path) -> None:
    before = (folder / "damaged.tflite").read_bytes()
    code, kind, words = error_of(folder, "plan", model=KWS, output="damaged.tflite")
    assert (code, kind) == (2, "usage")
    assert "exists" in words
    assert (folder / "damaged.tflite").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ({"model": "../secret.tflite"}, 2, "outside"),
        ({"model": "link.tflite"}, 2, "outside"),
        ({"model": "/etc/passwd"}, 2, "outside"),
        ({"model": "mine.toml"}, 2, "does not end in .tflite"),
        ({"model": "x\0.tflite"}, 2, "no path"),
        ({"model": "none.tflite"}, 2, "none.tflite"),
        ({"model": "damaged.tflite"}, 5, ""),
        ({"model": KWS, "target": "../secret.toml"}, 2, "outside"),
        ({"model": KWS, "target": "nano33bla"}, 2, "did you mean nano33ble"),
        ({"model": 3}, 2, "model: Expected `str`, got `int`"),
        ({"modell": KWS}, 2, "its keys are model, target"),
        ({}, 2, "missing required field `model`"),
    ],
)
def test_what_is_wrong_is_said_with_a_code(
    folder: Path, arguments: dict[str, Any], code: int, words: str
) -> None:
    found = error_of(folder, "arena", **arguments)
    assert found[:2] == (code, {2: "usage", 5: "model"}[code])
    assert words in found[2]


def test_a_target_of_the_folder_is_taken(folder: Path) -> None:
    assert result_of(folder, "arena", model=KWS, target=str(folder / "mine.toml"))["target"]


def test_output_lies_in_the_folder(folder: Path) -> None:
    assert error_of(folder, "plan", model=KWS, output="../out.tflite")[0] == 2
    assert not (folder.parent / "out.tflite").exists()


def test_an_unknown_tool_is_an_error_of_the_protocol(folder: Path) -> None:
    async def use(client: Client) -> None:
        with pytest.raises(MCPError, match="there are arena"):
            await client.call_tool("format_disk", {})

    with_client(folder, use)


def test_a_fault_of_ours_is_an_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("at the seam")

    monkeypatch.setattr("tflm_planner.pipeline.read_only.arena", broken)
    assert error_of(folder, "arena", model=KWS) == (1, "internal", "ZeroDivisionError: at the seam")


@pytest.mark.slow
def test_it_is_served_over_stdin_and_stdout(folder: Path) -> None:
    command = "from tflm_planner.cli.app import main; main()"
    server = StdioServerParameters(
        command=sys.executable, args=["-c", command, "mcp", "--folder", str(folder)]
    )

    async def main() -> sdk.CallToolResult:
        async with Client(server) as client:
            await cancel_plan(client, folder, "looking for tiles", "20K")
            return await client.call_tool("arena", {"model": KWS})

    assert anyio.run(main).structured_content["arena"] == 22824


def test_without_the_sdk_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "tflm_planner.cli.mcp_server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.types", None)
    assert "pip install 'tflm-planner[mcp]'" in Run(["mcp"], capsys).refused(2)


def test_a_folder_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is no folder" in Run(["mcp", "--folder", CNN], capsys).refused(2)
