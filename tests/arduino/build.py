"""Builds and runs the tests of the runner's portable core: `python -m tests.arduino.build`.

With g++ and its address and undefined-behaviour sanitizers, every warning an error; the shared
vectors are handed over as lines of text, so that the C++ side needs no JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "arduino_runner" / "src" / "runner"
ESP = ROOT / "arduino_runner" / "src" / "esp"
LEAN = ROOT / "arduino_runner" / "src" / "lean" / "lean.cpp"
HERE = Path(__file__).parent
FLAGS = (
    "-std=c++14", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wshadow", "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
)  # fmt: skip
TYPES = {
    "float32": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9,
    "uint64": 13, "uint32": 16, "uint16": 17,
}  # fmt: skip
"""TfLiteType."""


def compiler() -> str | None:
    """Path of g++, or None."""
    return shutil.which("g++")


def core_sources() -> list[Path]:
    """The portable core: everything but the engine on TFLM."""
    return sorted(p for p in SOURCES.glob("*.cpp") if p.name != "tflm_engine.cpp")


def build(name: str, folder: Path) -> Path:
    """Compiles tests/arduino/`name`.cpp with the core, which is compiled once for a folder; the
    program's path."""
    return _compiled(name, folder / name, _core_objects(folder), HERE)


def _core_objects(folder: Path) -> list[Path]:
    return [_object(source, folder) for source in core_sources()]


def _object(source: Path, folder: Path, flags: tuple[str, ...] = ()) -> Path:
    made = folder / f"{source.stem}.o"
    if not made.exists():
        subprocess.run([*_command(flags), "-c", str(source), "-o", str(made)], check=True)
    return made


ESP_LINES = {
    "uart": (),
    "usb": ("-DCONFIG_RUNNER_LINE_USB_SERIAL_JTAG=1", "-DCHIP_PSRAM=0"),
    "sketch": ("-DSKETCH", "-DARDUINO_ARCH_ESP32"),
}
"""Definitions, by the line that the runner has on a chip of Espressif's."""
_ESP_STUBS = tuple(
    part
    for folder in (HERE.parent / "stubs" / "esp_idf", HERE.parent / "stubs" / "arduino_esp32")
    for part in ("-I", str(folder))
)
_ESP_STACK = "-DRUNNER_STACK_BYTES=262144"
"""Sanitizers take more than a chip has."""


def build_esp(line: str, folder: Path) -> Path:
    """Compiles the runner for Espressif's chips with stubs of ESP-IDF and of the Arduino core; the
    program's path."""
    flags = ("-DESP_PLATFORM", _ESP_STACK, *_ESP_STUBS, "-I", str(SOURCES.parents[1]))
    objects = [
        *_core_objects(folder),
        *(_object(source, folder, flags) for source in sorted(ESP.glob("*.cpp"))),
    ]
    return _compiled("esp_serve", folder / line, objects, HERE, (*flags, *ESP_LINES[line]))


def build_lean(folder: Path, old: bool) -> Path:
    """Compiles the lean library with stubs of TFLM; `old`: as the library of 2023."""
    stubs = HERE.parent / "stubs" / "kernels"
    flags = ("-DSTUB_2023",) if old else ()
    (made := folder / ("old" if old else "new")).mkdir()
    library = _object(LEAN, made, (*flags, "-I", str(stubs)))
    return _compiled("lean_test", made / "lean_test", [library], stubs, flags)


def _command(flags: tuple[str, ...] = ()) -> list[str]:
    return [compiler() or "g++", *FLAGS, *flags, "-I", str(SOURCES.parent)]


def _compiled(
    name: str, program: Path, objects: list[Path], headers: Path, flags: tuple[str, ...] = ()
) -> Path:
    """A test is not optimized, unlike what it tests: that takes a third of the time."""
    command = [*_command(flags), "-O0", "-I", str(headers), str(HERE / f"{name}.cpp")]
    subprocess.run([*command, *map(str, objects), "-o", str(program)], check=True)
    return program


def vector_lines() -> list[str]:
    """schema/protocol_vectors.json as the C++ test reads it."""
    vectors = json.loads((ROOT / "schema" / "protocol_vectors.json").read_text())
    wires = {f["name"]: f["wire"] for f in vectors["frames"]}
    lines = [f"crc {v['data'] or '-'} {v['crc']}" for v in vectors["crc"]]
    lines += [
        f"cobs {v['data'] or '-'} {v['encoded']} {v.get('also', '-')}" for v in vectors["cobs"]
    ]
    lines += [
        f"frame {v['wire']} {v['type']} {v['status']} {v['sequence']} {v['payload'] or '-'}"
        for v in vectors["frames"]
    ]
    lines += [f"bad {v['wire']}" for v in vectors["bad"]]
    lines += [
        " ".join(["stream", v["wire"], *(wires[n] for n in v["frames"])])
        for v in vectors["streams"]
    ]
    lines += [
        f"fill {TYPES[v['type']]} {v['seed']} {v['input']} {v['bytes']}" for v in vectors["fill"]
    ]
    return lines


def run_core_test(folder: Path) -> None:
    """Unit tests and vectors; raises CalledProcessError when they fail."""
    vectors = folder / "vectors.txt"
    vectors.write_text("\n".join(vector_lines()) + "\n")
    subprocess.run([str(build("core_test", folder)), str(vectors)], check=True)


def run_lean(folder: Path, seconds: float) -> None:
    """The lean wrappers against made-up kernels, with both generations of TFLM."""
    for old in (False, True):
        subprocess.run([str(build_lean(folder, old)), str(seconds)], check=True)


def run_fuzz(folder: Path, seconds: float, seed: int = 1) -> None:
    """Fuzzes for so long; raises CalledProcessError when a law is broken."""
    subprocess.run([str(build("fuzz", folder)), str(seconds), str(seed)], check=True)


def main() -> None:
    """Everything, in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fuzz", type=float, default=0, metavar="SECONDS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run_core_test(Path(folder))
        run_lean(Path(folder), max(1, arguments.fuzz / 10))
        if arguments.fuzz:
            run_fuzz(Path(folder), arguments.fuzz)


if __name__ == "__main__":
    main()
