"""The C++ that `export` writes: compiled with warnings as errors, run, compared."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_cli import Run
from tests.conftest import CNN
from tests.models.build import Net
from tests.models.handmade import MODELS
from tflm_planner.device.export import export
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.targets import load_target

STUB = Path(__file__).parent / "stub_tflm"
M4 = load_target("cortex-m4/cmsis-nn")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

MAIN = """
#include <cstdint>
#include <cstdio>

#include "arena.h"
#include "model_data.h"
#include "op_resolver.h"

alignas(16) static std::uint8_t tensor_arena[k{camel}ArenaSize];

int main() {{
  {camel}OpResolver resolver;
  {registrations}
  if (Register{camel}Operators(resolver{arguments}) != kTfLiteOk) return 1;
  if (reinterpret_cast<std::uintptr_t>(g_{snake}_model_data) % 16 != 0) return 2;
  if (reinterpret_cast<std::uintptr_t>(tensor_arena) % 16 != 0) return 3;
  if (Register{camel}Operators(resolver{arguments}) == kTfLiteOk) return 4;  // room for no more
  std::fwrite(g_{snake}_model_data, 1, k{camel}ModelSize, stdout);
  return 0;
}}
"""


def built(
    folder: Path, data: bytes, name: str, camel: str, snake: str, custom: int = 0
) -> tuple[subprocess.CompletedProcess[bytes], dict[str, str]]:
    """Compile and run a program that uses all four files."""
    texts = export(data, name, M4)
    for file, text in texts.items():
        (folder / file).write_text(text)
    methods = sorted(set(re.findall(r"resolver\.(Add\w+)\(\)", texts["op_resolver.h"])))
    (folder / "stub_methods.inc").write_text("\n".join(f"STUB_METHOD({m})" for m in methods))
    main = MAIN.format(
        camel=camel,
        snake=snake,
        registrations="TFLMRegistration none;" if custom else "",
        arguments=", &none" * custom,
    )
    (folder / "main.cpp").write_text(main)
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    sources = ["main.cpp", "model_data.cpp"]
    subprocess.run(
        ["g++", *flags, "-I", STUB, "-I", ".", *sources, "-o", "program"], cwd=folder, check=True
    )
    return subprocess.run([folder / "program"], capture_output=True, check=False), dict(texts)


@needs_compiler
def test_a_program_holds_the_model(tmp_path: Path) -> None:
    done, texts = built(tmp_path, CNN.read_bytes(), "cnn_int8", "CnnInt8", "cnn_int8")
    assert done.returncode == 0
    assert done.stdout == CNN.read_bytes()
    arena = arena_of(read_model(CNN.read_bytes()), M4)
    assert f"kCnnInt8ArenaSize = {arena.arena};" in texts["arena.h"]
    for part, size in arena.tail_parts.items():
        assert not size or f"{part.replace('_', ' '):<20} {size:>9,}" in texts["arena.h"]


@needs_compiler
def test_custom_operators_are_parameters_and_names_cannot_break_out(tmp_path: Path) -> None:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4), scale=0.1)
    y = graph.tensor("y", (1, 4), scale=0.1)
    z = graph.tensor("z", (1, 4), scale=0.1)
    for name, a, b in (('evil"\\\n??/', x, y), ("other\\", y, z)):
        graph.op("CUSTOM", [a], [b]).opcodeIndex = net.opcode("CUSTOM", 1, name)
    graph.outputs(z)
    done, texts = built(tmp_path, net.finish(), "9 evil\\", "Model9Evil", "model_9_evil", custom=2)
    assert done.returncode == 0
    assert texts["op_resolver.h"].count("AddCustom(") == 2


def test_operators_are_those_used_and_no_others() -> None:
    for name, model in MODELS.items():
        data = model.make()
        kinds = {op.kind for op in read_model(data).ops()}
        if any(resolver_method(kind) is None for kind in kinds):
            continue
        text = export(data, name, M4)["op_resolver.h"]
        assert set(re.findall(r"resolver\.(Add\w+)\(", text)) == {
            resolver_method(kind) for kind in kinds
        }
        assert f"<{max(1, len(kinds))}>" in text


def test_names() -> None:
    texts = export(CNN.read_bytes(), "class", M4)
    assert "g_model_class_model_data" in texts["model_data.h"]
    with pytest.raises(UsageError, match="--name"):
        export(CNN.read_bytes(), "模型", M4)


def test_an_operator_that_no_tflm_has() -> None:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4), "float32")
    y = graph.tensor("y", (1, 4), "float32")
    graph.op("ATAN2", [x, x], [y])
    graph.outputs(y)
    with pytest.raises(ModelError, match="TFLM has no kernel for ATAN2"):
        export(net.finish(), "atan", M4)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    done = Run(["export", CNN, folder, "--target", "nano33ble"], capsys)
    assert done.code == 0
    assert {p.name for p in folder.iterdir()} == {
        "model_data.h", "model_data.cpp", "op_resolver.h", "arena.h"
    }  # fmt: skip
    assert "exists" in Run(["export", CNN, folder], capsys).refused(2)
    assert Run(["export", CNN, folder, "--force"], capsys).code == 0
    assert "folder" in Run(["export", CNN, CNN / "x"], capsys).refused(2)
