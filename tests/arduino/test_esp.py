"""The runner on Espressif's chips: what it adds to the core, compiled with stand-ins for ESP-IDF's
and the Arduino core's headers, behind a pseudo-terminal; manifests, and what the build says of its
kernels. Not the real toolchains, drivers and chips."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.arduino import build
from tflm_planner.device.measuring.measure import target_of
from tflm_planner.device.protocol import board as boards
from tflm_planner.device.protocol import line as lines
from tflm_planner.device.protocol import messages as m
from tflm_planner.tflm.targets import all_targets

RUNNER = build.ROOT / "arduino_runner"
needs_compiler = pytest.mark.skipif(build.compiler() is None, reason="there is no g++ here")
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake here")
MODEL = b"FAKE" + struct.pack("<IIB3x", 3, 1000, 0) + bytes(50_000)
"""As in fakes.h; padded, so that its place shows in what is left for the arena."""
INTERNAL = (96 - 24) << 10
"""Internal RAM of the chip of esp_chip.h, without what drivers keep."""


@contextmanager
def connected(program: Path) -> Iterator[boards.BoardClient]:
    ours, theirs = pty.openpty()
    tty.setraw(ours)
    tty.setraw(theirs)
    with subprocess.Popen([str(program)], stdin=ours, stdout=ours) as process:
        os.close(ours)
        try:
            yield boards.connect(lines.SerialLine(os.ttyname(theirs)))
        finally:
            process.kill()
            os.close(theirs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("esp")


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("line", build.ESP_LINES)
def test_a_whole_measurement(line: str, folder: Path) -> None:
    with connected(build.build_esp(line, folder)) as board:
        says = board.says
        assert (says.board, says.clock, says.tick_hz) == ("esp32s3", "cycles", 240_000_000)
        assert board.greeting.reset == "watchdog"
        assert m.Feature.STACK in says.features
        board.upload(MODEL)
        has_psram = line != "usb"
        assert (m.Feature.SHARED_STORE in says.features) != has_psram
        assert says.model_room == (1 << 20 if has_psram else INTERNAL)
        assert says.arena_room == INTERNAL
        assert board.arena() == INTERNAL - (0 if has_psram else len(MODEL) // 16 * 16)
        assert board.allocate(smallest=True, step=1).smallest == 1000
        board.set_inputs([bytes([1, 2, 3, 4, 5]), bytes(8)])
        ran = board.invoke(1, log=True, operators=True)
        assert (ran.runs, ran.entries) == (1, 7)
        assert ran.stack is not None and 0 < ran.stack < 1 << 18
        assert board.output(0, 5) == bytes([0, 255, 254, 253, 252])
        memory = board.memory()
        assert (memory.stack_size, memory.bad_frames) == (1 << 18, 0)
        assert memory.heap_free == 48 << 10


def test_the_manifest_of_the_component() -> None:
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("needs check-jsonschema")
    schema, manifest = (
        Path(__file__).parent / "idf_component.schema.json",
        RUNNER / "idf_component.yml",
    )
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(schema)]
    done = subprocess.run([*command, str(manifest)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pinned_release_is_one_that_was_read() -> None:
    (pinned,) = re.findall(
        r'esp-nn:\n +version: "==([\d.]+)"', (RUNNER / "idf_component.yml").read_text()
    )
    assert f"esp32s3/esp-nn-{pinned}" in all_targets()


def test_the_readme_lists_every_profile_of_the_sketch() -> None:
    profiles = re.findall(r"^  (\w+):\n    notes:", (RUNNER / "sketch.yaml").read_text(), re.M)
    readme = (RUNNER / "README.md").read_text()
    assert len(profiles) == 8
    assert all(f"| `{name}` |" in readme for name in profiles)


CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(stand_in CXX)
set(IDF_VERSION_MAJOR 5)
set(IDF_VERSION_MINOR 4)
set(CONFIG_NN_ANSI_C {ansi})
function(idf_component_register)
  cmake_parse_arguments(given "" "" "SRCS;INCLUDE_DIRS;PRIV_REQUIRES" ${{ARGN}})
  add_library(runner OBJECT ${{given_SRCS}})
  set(COMPONENT_LIB runner PARENT_SCOPE)
  file(WRITE "{requires}" "${{given_PRIV_REQUIRES}}")
endfunction()
function(idf_build_get_property result name)
  if(name STREQUAL IDF_TARGET)
    set(${{result}} esp32c3 PARENT_SCOPE)
  else()
    set(${{result}} main arduino_runner espressif__esp-nn PARENT_SCOPE)
  endif()
endfunction()
function(idf_component_get_property result component name)
  set(${{result}} "{esp_nn}" PARENT_SCOPE)
endfunction()
add_subdirectory("{runner}" build_of_runner)
"""
"""A project with as much of ESP-IDF's build system as the component asks for."""


@needs_cmake
@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ansi", "wanted"), [("", "esp32c3/esp-nn-1.2.3"), ("y", "esp32c3/reference")]
)
def test_the_firmware_names_the_release_that_it_was_built_with(
    ansi: str, wanted: str, tmp_path: Path
) -> None:
    esp_nn = tmp_path / "esp-nn"
    esp_nn.mkdir()
    (esp_nn / "idf_component.yml").write_text('version: "1.2.3"\ndescription: a stand-in\n')
    requires = tmp_path / "requires.txt"
    text = CMAKE.format(ansi=ansi, esp_nn=esp_nn, runner=RUNNER, requires=requires)
    (tmp_path / "CMakeLists.txt").write_text(text)
    command = ["cmake", "-S", ".", "-B", "out", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    compiled = json.loads((tmp_path / "out" / "compile_commands.json").read_text())
    names = {Path(entry["file"]).name for entry in compiled}
    assert {"tflm_engine.cpp", "esp_board.cpp", "session.cpp", "lean.cpp"} <= names
    said = compiled[0]["command"].replace("\\", "")
    (target,) = re.findall(r'RUNNER_TARGET="([^"]+)"', said)
    assert target == wanted and target in all_targets()
    assert "esp_driver_usb_serial_jtag" in requires.read_text()
    capabilities = m.Capabilities(
        board="esp32c3", core="RISC-V", kernels="esp-nn", tflm="current", firmware="test",
        tick_hz=1, model_room=1, arena_room=1, log_room=1, features=m.Feature(0), target=target,
    )  # fmt: skip
    assert target_of(capabilities).id == wanted
