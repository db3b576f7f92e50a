"""The C++ that `export` writes: compiled with warnings as errors, run, compared."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command import Run
from tests.conftest import CNN
from tests.models.build import Net
from tests.models.handmade import MODELS
from tests.transforms.row_loops import chain
from tflm_planner.device.cpp.export import export
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.attach_plan import AttachPlan
from tflm_planner.transforms.base import run

STUB = Path(__file__).parents[1] / "stubs" / "resolver"
ROOT = Path(__file__).parents[2]
M4 = load_target("cortex-m4/cmsis-nn")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

MAIN = """
#include <cstdint>
#include <cstdio>

#include "{snake}_arena.h"
#include "{snake}_model_data.h"
#include "{snake}_op_resolver.h"

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
    methods = sorted(set(re.findall(r"resolver\.(Add\w+)\(\)", texts[f"{snake}_op_resolver.h"])))
    (folder / "stub_methods.inc").write_text("\n".join(f"STUB_METHOD({m})" for m in methods))
    main = MAIN.format(
        camel=camel,
        snake=snake,
        registrations="TFLMRegistration none;" if custom else "",
        arguments=", &none" * custom,
    )
    (folder / "main.cpp").write_text(main)
    compiled(folder, ["main.cpp", f"{snake}_model_data.cpp"], STUB)
    return subprocess.run([folder / "program"], capture_output=True, check=False), dict(texts)


def compiled(folder: Path, sources: list[str], *headers: Path) -> None:
    """Builds `program` in the folder, with warnings as errors."""
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    include = [word for path in (*headers, Path()) for word in ("-I", str(path))]
    subprocess.run(["g++", *flags, *include, *sources, "-o", "program"], cwd=folder, check=True)


@needs_compiler
def test_a_program_holds_the_model(tmp_path: Path) -> None:
    done, texts = built(tmp_path, CNN.read_bytes(), "cnn_int8", "CnnInt8", "cnn_int8")
    assert done.returncode == 0
    assert done.stdout == CNN.read_bytes()
    arena = arena_of(read_model(CNN.read_bytes()), M4)
    assert f"kCnnInt8ArenaSize = {arena.arena};" in texts["cnn_int8_arena.h"]
    for part, size in arena.tail_parts.items():
        assert not size or f"{part.replace('_', ' '):<20} {size:>9,}" in texts["cnn_int8_arena.h"]


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
    done, texts = built(tmp_path, net.finish(), "9 evil\\", "Model_9Evil", "model_9_evil", custom=2)
    assert done.returncode == 0
    assert texts["model_9_evil_op_resolver.h"].count("AddCustom(") == 2


def test_operators_are_those_used_and_no_others() -> None:
    for model in MODELS.values():
        data = model.make()
        kinds = {op.kind for op in read_model(data).ops()}
        if any(resolver_method(kind) is None for kind in kinds) or arena_in(data, M4)[1].cannot_run:
            continue
        text = export(data, "it", M4)["it_op_resolver.h"]
        assert set(re.findall(r"resolver\.(Add\w+)\(", text)) == {
            resolver_method(kind) for kind in kinds
        }
        assert f"<{max(1, len(kinds))}>" in text


def test_names() -> None:
    texts = export(CNN.read_bytes(), "class", M4)
    assert "g_model_class_model_data" in texts["model_class_model_data.h"]
    with pytest.raises(UsageError, match="--name"):
        export(CNN.read_bytes(), "模型", M4)


def test_an_operator_that_no_tflm_has() -> None:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4), "float32")
    y = graph.tensor("y", (1, 4), "float32")
    graph.op("ATAN2", [x, x], [y])
    graph.outputs(y)
    data = net.finish()
    with pytest.raises(ModelError, match=r"TFLM has no kernel for ATAN2.*--own-kernels"):
        export(data, "atan", M4)
    text = export(data, "atan", M4, own_kernels=True)["atan_op_resolver.h"]
    assert "has no kernel for ATAN2" in text and "<1>" in text and "Add" not in text


@needs_compiler
def test_firmware_with_kernels_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What TFLM's kernels cannot run is refused with the option that exports it all the same."""
    model = tmp_path / "net.tflite"
    model.write_bytes(MODELS["dynamic_range"].make())
    assert "--own-kernels" in Run(["export", model, tmp_path], capsys).refused(5)
    assert Run(["export", model, tmp_path, "--own-kernels"], capsys).code == 0
    resolver = (tmp_path / "net_op_resolver.h").read_text()
    assert "AddFullyConnected()" in resolver and "FULLY_CONNECTED of float32 and int8" in resolver
    assert "not counted" in (tmp_path / "net_arena.h").read_text()
    (tmp_path / "stub_methods.inc").write_text("STUB_METHOD(AddFullyConnected)")
    (tmp_path / "main.cpp").write_text('#include "net_op_resolver.h"\nint main() { return 0; }\n')
    compiled(tmp_path, ["main.cpp"], STUB)


def test_operators_of_a_newer_tflm_than_the_targets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal names --tflm, which `export` and `arena` take."""
    net = Net()
    graph = net.graph()
    x, y = graph.input("x", (1, 8), scale=0.1), graph.tensor("y", (1, 8), scale=0.1)
    update = graph.input("part", (1, 2), scale=0.1)
    graph.op("DYNAMIC_UPDATE_SLICE", [x, update, graph.constant("at", [0, 2])], [y])
    graph.outputs(y)
    model = tmp_path / "net.tflite"
    model.write_bytes(net.finish())
    given = ["export", model, tmp_path / "out", "--target", "arduino-2023"]
    assert "--tflm" in Run(given, capsys).refused(5)
    assert Run([*given, "--tflm", "2026-01"], capsys).code == 0
    arena = ["arena", model, "--target", "arduino-2023"]
    assert "CANNOT RUN" in Run(arena, capsys).out
    assert "CANNOT RUN" not in Run([*arena, "--tflm", "2026-01"], capsys).out


def test_a_plan_that_is_wrong_for_the_target() -> None:
    """The refusal says how to make another one, for this very target."""
    model = read_model(CNN.read_bytes())
    run(model, AttachPlan(dict.fromkeys(model.tensors(), 0)))
    data = write_model(model)
    with pytest.raises(ModelError, match=r"`tflm-plan IN OUT --target nano33ble`"):
        export(data, "cnn", load_target("nano33ble"))
    with pytest.raises(ModelError, match=r"--target cortex-m4/cmsis-nn\+lean`"):
        export(data, "cnn", load_target("cortex-m4/cmsis-nn+lean"))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    done = Run(["export", CNN, folder, "--target", "nano33ble"], capsys)
    assert done.code == 0
    assert {p.name for p in folder.iterdir()} == {
        "cnn_int8_model_data.h", "cnn_int8_model_data.cpp", "cnn_int8_op_resolver.h",
        "cnn_int8_arena.h",
    }  # fmt: skip
    assert Run(["export", CNN, folder, "--target", "nano33ble"], capsys).code == 0  # the same
    line = Run(["export", CNN, folder, "--target", "cortex-m55/cmsis-nn"], capsys).refused(2)
    assert "another model or target" in line and "--name" in line and "--force" in line
    again = ["export", CNN, folder, "--target", "cortex-m55/cmsis-nn", "--force"]
    assert Run(again, capsys).code == 0
    assert "folder" in Run(["export", CNN, CNN / "x"], capsys).refused(2)


@needs_compiler
def test_two_models_share_a_folder_and_a_translation_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where their names differ by an underscore before a digit alone."""
    data = CNN.read_bytes()
    other = MODELS["chain"].make()
    (tmp_path / "a_1.tflite").write_bytes(data)
    (tmp_path / "a1.tflite").write_bytes(other)
    folder = tmp_path / "out"
    for name in ("a_1", "a1"):
        assert Run(["export", tmp_path / f"{name}.tflite", folder], capsys).code == 0
    written = {p.name for p in folder.iterdir()}
    assert len(written) == 8
    (folder / "main.cpp").write_text(
        "".join(f'#include "{name}"\n' for name in sorted(written) if name.endswith(".h"))
        + f"int main() {{ return kA_1ModelSize == {len(data)} && kA1ModelSize == {len(other)} "
        "&& kA_1ArenaSize != kA1ArenaSize && g_a_1_model_data[4] == g_a1_model_data[4] ? 0 : 1; }\n"
    )
    texts = "".join((folder / f"{n}_op_resolver.h").read_text() for n in ("a_1", "a1"))
    methods = sorted(set(re.findall(r"resolver\.(Add\w+)\(\)", texts)))
    (folder / "stub_methods.inc").write_text("\n".join(f"STUB_METHOD({m})" for m in methods))
    compiled(folder, ["main.cpp", "a_1_model_data.cpp", "a1_model_data.cpp"], STUB)
    assert subprocess.run([folder / "program"], check=False).returncode == 0


def test_a_model_of_the_same_name_is_not_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "CNN-int8.tflite"  # the same identifiers
    other.write_bytes(MODELS["chain"].make())
    folder = tmp_path / "out"
    assert Run(["export", CNN, folder], capsys).code == 0
    before = {p: p.read_bytes() for p in folder.iterdir()}
    assert "--name" in Run(["export", other, folder], capsys).refused(2)
    assert {p: p.read_bytes() for p in folder.iterdir()} == before


LEAN_MAIN = """
#define TF_LITE_ENSURE_STATUS(a) do { if ((a) != kTfLiteOk) return kTfLiteError; } while (0)
#include "net_arena.h"
#include "net_model_data.h"
#include "net_op_resolver.h"

void MicroPrintf(const char*, ...) {}
static const void* asked = nullptr;
static tflite::Model model;
const tflite::Model* tflite::GetModel(const void* data) { asked = data; return &model; }
TfLiteRegistration tflite::Register_CONV_2D() { return {}; }
TfLiteRegistration tflite::Register_DEPTHWISE_CONV_2D() { return {}; }
TfLiteRegistration tflite::Register_FULLY_CONNECTED() { return {}; }
TfLiteStatus tflite::ParseConv2D(
    const Operator*, ErrorReporter*, BuiltinDataAllocator*, void**) { return kTfLiteOk; }
TfLiteStatus tflite::ParseDepthwiseConv2D(
    const Operator*, ErrorReporter*, BuiltinDataAllocator*, void**) { return kTfLiteOk; }

int main() {
  NetOpResolver resolver;
  lean::OpResolver<1>& same = resolver;  // the lean library's, with room for so many
  if (RegisterNetOperators(resolver) != kTfLiteOk) return 1;
  if (same.conv.prepare == nullptr) return 2;  // wrapped
  if (UseNetModel()) return 3;                 // this stub of a model has no pool
  return asked == g_net_model_data ? 0 : 4;
}
"""


@needs_compiler
def test_a_lean_model_gets_the_lean_resolver_and_its_pool(tmp_path: Path) -> None:
    """Compiled with the lean library itself, and linked."""
    lean = load_target("cortex-m4/cmsis-nn+lean")
    data = chain((3, 1, 8), (1, 1, 16))
    texts = export(data, "net", lean)
    arena = arena_of(read_model(data), lean)
    assert f"kNetArenaSize = {arena.arena};" in texts["net_arena.h"]
    assert "MicroMutableOpResolver" not in texts["net_op_resolver.h"]
    assert "lean::OpResolver<1>" in texts["net_op_resolver.h"]
    assert "lean::UseModel(g_net_model_data, kNetModelSize)" in texts["net_op_resolver.h"]
    assert "lean" not in export(data, "net", M4)["net_op_resolver.h"]
    for file, text in texts.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "main.cpp").write_text(LEAN_MAIN)
    library = ROOT / "arduino_runner" / "src" / "lean"
    stub = ROOT / "tests" / "stubs" / "kernels"
    sources = ["main.cpp", "net_model_data.cpp", str(library / "lean.cpp")]
    compiled(tmp_path, sources, stub, library)
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 0


def test_the_arena_of_unread_kernels_carries_a_margin() -> None:
    text = export(CNN.read_bytes(), "net", load_target("xtensa-lx7/unknown"))["net_arena.h"]
    arena = arena_of(read_model(CNN.read_bytes()), load_target("xtensa-lx7/unknown"))
    assert arena.reserved > 2 * arena.arena
    assert f"kNetArenaSize = {arena.reserved};" in text
    assert "smallest that works" not in text
    assert f"At least {arena.arena:,} bytes, and a margin" in text and "ESP-NN" in text
