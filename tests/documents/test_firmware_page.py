"""The applications of docs/firmware.md: whole, built with what `export` writes, and run.

TFLM, the systems' headers and their CMake are stand-ins (tests/stubs). Every file that the page
shows stands behind a line that names it:

    `main/main.cpp`:

    ```cpp
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import CNN, ROOT
from tflm_planner.device.cpp.export import export
from tflm_planner.tflm.targets import load_target

STUBS = ROOT / "tests" / "stubs"
PAGE = (ROOT / "docs" / "firmware.md").read_text()
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^`([\w./]+)`:\n\n" + FENCE.pattern[1:], FENCE.flags)
OUTPUT = "42\n"
"""Of the stand-in of an interpreter for an input of zero."""
TFLM_SPEAKS = "TFLM\n"
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")


def section(title: str) -> str:
    (_, text) = PAGE.split(f"\n## {title}\n")
    return text.split("\n## ")[0]


def files(title: str) -> dict[str, str]:
    """Path -> text of the files in a section."""
    return dict(FILE.findall(section(title)))


def write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def write_sources(folder: Path) -> None:
    """What every system compiles: model.h and model.cpp of the page, and exported files."""
    write(folder, files("The application"))
    write(folder, export(CNN.read_bytes(), "vww", load_target("cortex-m4/cmsis-nn")))


@pytest.fixture
def tflm(tmp_path: Path) -> Path:
    """A folder with the stand-in of TFLM, as an include path or a source tree."""
    folder = tmp_path / "tflm"
    for name in ("application", "resolver"):
        shutil.copytree(STUBS / name / "tensorflow", folder / "tensorflow", dirs_exist_ok=True)
    resolver = export(CNN.read_bytes(), "vww", load_target("cortex-m4/cmsis-nn"))
    methods = sorted(set(re.findall(r"resolver\.(Add\w+)\(\)", resolver["vww_op_resolver.h"])))
    write(folder, {"stub_methods.inc": "\n".join(f"STUB_METHOD({name})" for name in methods)})
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def printed_by_cmake(project: Path, tflm: Path, program: str, **environment: str) -> str:
    """Configure, build and run; what the program prints."""
    flags = "-Wall -Wextra -Werror"
    words = ["-DCMAKE_BUILD_TYPE=Debug", f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_C_FLAGS={flags}"]
    known = {**os.environ, "TFLM_STAND_IN": str(tflm), **environment}
    for command in (["-S", ".", "-B", "made", *words], ["--build", "made"]):
        done = subprocess.run(
            ["cmake", *command], cwd=project, env=known, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return subprocess.run(
        [project / "made" / program], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
@needs_compiler
def test_the_arduino_sketch(project: Path, tflm: Path) -> None:
    write_sources(project)
    sketch = files("Arduino")["vww.ino"]
    runs = "int main() { setup(); loop(); loop(); }"
    write(project, {"sketch.cpp": f'#include "Arduino.h"\n{sketch}{runs}\n'})
    includes = [f"-I{folder}" for folder in (STUBS / "application", tflm)]
    sources = ["sketch.cpp", "model.cpp", "vww_model_data.cpp", "-o", "program"]
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", *includes, *sources]
    subprocess.run(command, cwd=project, check=True)
    done = subprocess.run([project / "program"], capture_output=True, text=True, check=True)
    assert done.stdout == 2 * OUTPUT


@pytest.mark.slow
@needs_cmake
@needs_compiler
def test_the_esp_idf_project(project: Path, tflm: Path) -> None:
    write_sources(project / "main")
    write(project, files("ESP-IDF"))
    idf = STUBS / "build_systems" / "esp_idf"
    assert printed_by_cmake(project, tflm, "vww", IDF_PATH=str(idf)) == OUTPUT


@pytest.mark.slow
@needs_cmake
@needs_compiler
def test_the_zephyr_application(project: Path, tflm: Path) -> None:
    write_sources(project / "src")
    write(project, files("Zephyr"))
    base = STUBS / "build_systems" / "zephyr"
    assert printed_by_cmake(project, tflm, "app", ZEPHYR_BASE=str(base)) == OUTPUT


@pytest.mark.slow
@needs_cmake
@needs_compiler
def test_the_stm32_project(project: Path, tflm: Path) -> None:
    shutil.copytree(STUBS / "build_systems" / "stm32", project, dirs_exist_ok=True)
    shutil.copytree(tflm, project / "tflm-tree")
    write_sources(project / "model")
    write(project, files("TFLM as a CMake library") | files("STM32 with CMake"))
    main = project / "Core" / "Src" / "main.c"
    main.write_text(with_user_code(main.read_text(), section("STM32 with CMake")))
    assert printed_by_cmake(project, tflm, "vww") == TFLM_SPEAKS + OUTPUT


def with_user_code(main: str, text: str) -> str:
    """CubeMX's main.c with the lines that the page puts between its marks."""
    region = re.compile(r"/\* USER CODE BEGIN (\w+) \*/\n.*?/\* USER CODE END \1 \*/", re.DOTALL)
    regions = {found[1]: found[0] for found in region.finditer(text)}
    assert set(regions) == {"PFP", "2"}
    return region.sub(lambda found: regions[found[1]], main)


@pytest.mark.slow
@needs_cmake
@needs_compiler
def test_the_mbed_project(project: Path, tflm: Path) -> None:
    shutil.copytree(STUBS / "build_systems" / "mbed", project, dirs_exist_ok=True)
    shutil.copytree(tflm, project / "tflm-tree")
    write_sources(project)
    write(project, files("TFLM as a CMake library") | files("Mbed"))
    assert printed_by_cmake(project, tflm, "vww") == TFLM_SPEAKS + OUTPUT


def test_every_block_with_code_of_a_system_is_a_file_of_it() -> None:
    """But for main.c's lines, a target of one's own, and the command that copies TFLM."""
    systems = ["Arduino", "ESP-IDF", "Zephyr", "STM32 with CMake", "Mbed"]
    common = ["The application", "TFLM as a CMake library"]
    blocks = [text for title in (*common, *systems) for text in FENCE.findall(section(title))]
    shown = [text for title in (*common, *systems) for text in files(title).values()]
    left = [text for text in blocks if text not in shown]
    assert len(shown) == 17
    assert [text.split()[0] for text in left] == ["python3", "[target]", "/*"]


def test_settings_are_ones_that_the_systems_know() -> None:
    """By the names in the systems' own documents and samples."""
    zephyr = files("Zephyr")["prj.conf"].split()
    names = ["CPP", "STD_CPP17", "TENSORFLOW_LITE_MICRO"]
    names += ["TENSORFLOW_LITE_MICRO_CMSIS_NN_KERNELS", "MAIN_STACK_SIZE"]
    assert [line.split("=")[0] for line in zephyr] == [f"CONFIG_{name}" for name in names]
    assert files("ESP-IDF")["sdkconfig.defaults"] == "CONFIG_ESP_MAIN_TASK_STACK_SIZE=8192\n"
    mbed = json.loads(files("Mbed")["mbed_app.json"])
    assert set(mbed["target_overrides"]["*"]) == {
        "target.c_lib", "platform.stdio-baud-rate", "rtos.main-thread-stack-size"
    }  # fmt: skip


def test_the_idf_manifest_pins_the_release_of_its_target() -> None:
    yaml = pytest.importorskip("ruamel.yaml")
    manifest = yaml.YAML(typ="safe").load(files("ESP-IDF")["main/idf_component.yml"])
    needed = manifest["dependencies"]
    assert set(needed) == {"idf", "espressif/esp-tflite-micro", "espressif/esp-nn"}
    assert all(re.fullmatch(r"(==|>=)\d+(\.\d+)+", version) for version in needed.values())
    (target,) = re.findall(r"export OUT main --target (\S+)", section("ESP-IDF"))
    assert load_target(target).id.endswith("esp-nn-" + needed["espressif/esp-nn"].lstrip("="))
