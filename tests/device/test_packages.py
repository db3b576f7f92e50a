"""Manifests of packages: what `export` writes for four build systems, and of the lean library.

No linter of these systems is installed (docs/testing.md says which were tried by hand). The rules
here are those that their documents state, as far as the manifests use them: the Arduino library
specification, PlatformIO's library.json, ESP-IDF's component manifest, Zephyr's module.yml and
Kconfig. CMake runs their build files where it is here, with stand-ins for their functions.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.command import Run
from tests.conftest import PUBLISHED, ROOT
from tflm_planner.device.cpp.names import cpp_names
from tflm_planner.device.cpp.packages import packages
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.targets import load_target

LEAN = ROOT / "arduino_runner" / "src" / "lean"
KINDS = "arduino,platformio,esp-idf,zephyr"
SEMVER = {"type": "string", "pattern": r"^\d+\.\d+\.\d+$"}
WORDS = {"type": "string", "minLength": 1}
SCHEMAS: dict[str, dict[str, Any]] = {
    "library.properties": {
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}$"},
            "version": SEMVER,
            "author": WORDS,
            "maintainer": WORDS,
            "sentence": WORDS,
            "paragraph": WORDS,
            "category": {
                "enum": [
                    "Display", "Communication", "Signal Input/Output", "Sensors",
                    "Device Control", "Timing", "Data Storage", "Data Processing", "Other",
                ]
            },
            "url": {"type": "string", "pattern": "^https://"},
            "architectures": WORDS,
            "includes": {"type": "string", "pattern": r"^[\w.]+\.h(,[\w.]+\.h)*$"},
        },
        "required": [
            "name", "version", "author", "maintainer", "sentence", "paragraph", "category",
            "url", "architectures",
        ],
    },
    "library.json": {
        "properties": {
            "name": {"type": "string", "pattern": "^[^:;/,@<>]{1,100}$"},
            "version": SEMVER,
            "description": {"type": "string", "minLength": 1, "maxLength": 1000},
            "keywords": {"type": "array", "items": WORDS},
            "license": {"const": "Apache-2.0"},
            "headers": {"type": ["string", "array"]},
            "frameworks": {"const": "*"},
            "platforms": {"const": "*"},
            "build": {
                "type": "object",
                "properties": {
                    "srcDir": {"const": "."},
                    "includeDir": {"const": "."},
                    "srcFilter": {"type": "array", "items": {"pattern": r"^\+<[\w.]+>$"}},
                },
                "additionalProperties": False,
            },
        },
        "required": ["name", "version", "description"],
    },
    "idf_component.yml": {
        "properties": {
            "version": SEMVER,
            "description": WORDS,
            "license": {"const": "Apache-2.0"},
            "targets": {"type": "array", "items": {"pattern": r"^esp32(s2|s3|c3|c6|h2|p4)?$"}},
            "dependencies": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {
                        "version": {"type": "string", "pattern": r"^(==|>=)\d+\.\d+\.\d+$"},
                        "require": {"enum": ["public", "private", "no"]},
                    },
                    "required": ["version"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["version", "dependencies"],
    },
    "zephyr/module.yml": {
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z0-9_-]+$"},
            "build": {
                "type": "object",
                "properties": {
                    "cmake": {"const": "zephyr"},
                    "kconfig": {"const": "zephyr/Kconfig"},
                },
                "required": ["cmake", "kconfig"],
                "additionalProperties": False,
            },
        },
        "required": ["name", "build"],
    },
}  # fmt: skip
STAND_INS = """
foreach(name IN ITEMS zephyr_library zephyr_include_directories)
  function(${name})
  endfunction()
endforeach()
function(zephyr_library_sources)
  message("SOURCES zephyr ${ARGN}")
endfunction()
function(idf_component_register)
  cmake_parse_arguments(given "" "" "SRCS;INCLUDE_DIRS;REQUIRES" ${ARGN})
  message("SOURCES idf ${given_SRCS}")
endfunction()
"""


@pytest.fixture
def exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    model = PUBLISHED / "kws_ref_model.tflite"
    words = ["--target", "esp32s3/esp-nn-1.2.3", "--name", "2nd kws", "--package", KINDS]
    assert Run(["export", model, tmp_path / "made", *words], capsys).code == 0
    return tmp_path / "made"


@pytest.fixture(params=["exported", "lean"])
def folder(request: pytest.FixtureRequest) -> Path:
    """A package: an exported model, or the lean library."""
    return LEAN if request.param == "lean" else request.getfixturevalue("exported")


def read(path: Path) -> dict[str, Any]:
    text = path.read_text()
    if path.suffix == ".json":
        return json.loads(text)
    if path.suffix == ".yml":
        yaml = pytest.importorskip("ruamel.yaml")
        return yaml.YAML(typ="safe").load(text)
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_manifest_keeps_to_the_rules(folder: Path, name: str) -> None:
    schema = {"type": "object", "additionalProperties": False, **SCHEMAS[name]}
    jsonschema.validate(read(folder / name), schema)


def test_versions_and_headers_agree(folder: Path) -> None:
    arduino, platformio = read(folder / "library.properties"), read(folder / "library.json")
    assert arduino["version"] == platformio["version"]
    assert arduino["version"] == read(folder / "idf_component.yml")["version"]
    headers = platformio["headers"]
    headers = [headers] if isinstance(headers, str) else headers
    assert arduino["includes"].split(",") == headers
    assert all((folder / header).is_file() for header in headers)
    (pattern,) = platformio["build"]["srcFilter"]
    assert (folder / pattern[2:-1]).is_file()


def test_kconfig_and_cmake_name_one_option(folder: Path) -> None:
    (option,) = re.findall(r"^config (\w+)$", (folder / "zephyr/Kconfig").read_text(), re.MULTILINE)
    kconfig = (folder / "zephyr/Kconfig").read_text()
    assert re.fullmatch(
        r'config \w+\n\tbool "[^"\n]+"\n\tdepends on TENSORFLOW_LITE_MICRO\n(\tdefault y\n)?',
        kconfig,
    )
    assert f"CONFIG_{option})" in (folder / "zephyr/CMakeLists.txt").read_text()


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
@pytest.mark.parametrize(
    ("file", "system"), [("zephyr/CMakeLists.txt", "zephyr"), ("CMakeLists.txt", "idf")]
)
def test_cmake_compiles_a_file_that_is_there(
    folder: Path, tmp_path: Path, file: str, system: str
) -> None:
    option = re.search(r"^config (\w+)$", (folder / "zephyr/Kconfig").read_text(), re.MULTILINE)
    assert option is not None
    script = tmp_path / "run.cmake"
    include = f'set(CONFIG_{option[1]} y)\ninclude("{folder / file}")\n'
    script.write_text(STAND_INS + include)
    done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (source,) = re.findall(rf"SOURCES {system} (\S+)", done.stderr)
    assert ((folder / file).parent / source).resolve().suffix == ".cpp"
    assert ((folder / file).parent / source).is_file()


def test_the_release_that_the_arena_is_for_is_pinned() -> None:
    names = cpp_names("kws")
    pinned = packages("esp-idf", names, load_target("esp32s3/esp-nn-1.2.1"))["idf_component.yml"]
    assert 'espressif/esp-nn:\n    version: "==1.2.1"' in pinned
    for target in ("esp32s3", "esp32s3/reference", "cortex-m4/cmsis-nn"):
        assert "esp-nn:" not in packages("esp-idf", names, load_target(target))["idf_component.yml"]


def test_lean_firmware_requires_the_lean_component() -> None:
    lean = load_target("cortex-m4/cmsis-nn", lean=True)
    assert "REQUIRES lean)" in packages("esp-idf", cpp_names("kws"), lean)["CMakeLists.txt"]


def test_an_unknown_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="choose from arduino, platformio, esp-idf, zephyr"):
        packages("arduino,mbed", cpp_names("kws"), load_target("cortex-m4/cmsis-nn"))
    model = PUBLISHED / "kws_ref_model.tflite"
    run = Run(["export", model, tmp_path / "made", "--package", "mbed"], capsys)
    assert "mbed" in run.refused(2)
    assert not (tmp_path / "made").exists()


def test_a_package_holds_one_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("kws_ref_model.tflite", "hello_world_int8.tflite")
    for name in names:
        words = ["export", PUBLISHED / name, tmp_path / "made", "--package", "arduino"]
        last = Run(words, capsys)
    assert "it is the package of another model or target: name another folder" in last.refused(2)


def test_without_the_option_there_are_no_manifests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Run(["export", PUBLISHED / "kws_ref_model.tflite", tmp_path / "made"], capsys).code == 0
    assert {path.suffix for path in (tmp_path / "made").iterdir()} == {".h", ".cpp"}
