"""A kernel library is a module that is found, and a target file: nothing else asks for its name."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.models import handmade  # noqa: F401  (fills the registry)
from tests.models.handmade import MODELS as HANDMADE
from tests.tflm.custom_models import MODELS as OPERATORS
from tflm_planner.cost.families import FAMILIES
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm import kernels, targets
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.kernels import (
    KernelBuild,
    known_builds,
    libraries,
    library_names,
    library_of,
)
from tflm_planner.tflm.kernels.conservative import UNKNOWN
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE, ReferenceKernels
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.targets import all_targets, load_target

PACKAGE = Path(kernels.__file__).parents[2]
PAGE = PACKAGE.parent / "docs/kernel-libraries.md"
FILE = """
[target]
base = "cortex-m4/reference"
id = "mine"
name = "Cortex-M4, a library of my own"
kernels = "{}"
"""


class Empty(ReferenceKernels):
    """A name, and nothing else."""

    name = "empty"


class Greedy(ReferenceKernels):
    """It asks for more scratch than any other, and nobody has read its loops."""

    name = "greedy"

    def scratch_requests(self, op: Op, target: Target) -> tuple[int, ...]:
        return (*super().scratch_requests(op, target), 4096)

    def builds(self, target: Target) -> tuple[KernelBuild, ...]:
        return (UNKNOWN,)

    def all_builds(self) -> tuple[KernelBuild, ...]:
        return ()


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Both libraries, for the length of a test."""
    with mock.patch.dict(kernels.LIBRARIES):
        kernels.register(Empty())
        kernels.register(Greedy())
        yield


def own_target(folder: Path, library: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(FILE.format(library))
    return path


def test_a_target_file_names_a_library(tmp_path: Path) -> None:
    target = load_target(own_target(tmp_path, "empty"))
    assert isinstance(library_of(target), Empty)
    with pytest.raises(UsageError, match=r"'other' is unknown; choose from cmsis-nn, .*empty"):
        load_target(own_target(tmp_path, "other"))


def test_an_empty_library_is_the_reference(tmp_path: Path) -> None:
    target = load_target(own_target(tmp_path, "empty"))
    reference = load_target("cortex-m4/reference")
    models = [make() for make in OPERATORS.values()] + [
        m.make() for m in HANDMADE.values() if m.runs_on_tflm
    ]
    for data in models:
        model = read_model(data)
        assert arena_of(model, target) == arena_of(model, reference)
    assert api.kernels_of(target).builds == (REFERENCE,)


@pytest.mark.slow
def test_arena_and_plan_work_for_an_empty_library(tmp_path: Path, cnn: bytes) -> None:
    target = load_target(own_target(tmp_path, "empty"))
    assert api.arena(cnn, target).arena == api.arena(cnn, load_target("cortex-m4/reference")).arena
    written = [tmp_path / "mine.tflite", tmp_path / "reference.tflite"]
    for path, on in zip(written, (target, load_target("cortex-m4/reference")), strict=True):
        options = api.PlanOptions(
            api.MemoryOptions(kernels=api.kernels_of(on)), verify=api.VerifyOptions(inputs=2)
        )
        report = api.plan(cnn, path, options).report
        assert report.verified and report.after.head < report.before.head
    assert written[0].read_bytes() == written[1].read_bytes()


def test_what_a_library_overrides_is_asked_for(tmp_path: Path, cnn: bytes) -> None:
    greedy = load_target(own_target(tmp_path, "greedy"))
    model = read_model(cnn)
    on = api.kernels_of(greedy)
    assert all(on.scratch_of(op)[-1] == 4096 for op in model.ops())
    assert not any(list(on.input_overlaps_of(op)) for op in model.ops())
    everywhere = api.kernels_of(load_target("cortex-m/any"))
    assert all(on_any >= 4096 for op in model.ops() for on_any in everywhere.scratch_of(op)[:1])
    assert UNKNOWN not in everywhere.builds and set(everywhere.builds) == set(known_builds())


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="'empty' is registered already"):
        kernels.register(Empty())


@pytest.mark.parametrize(
    "name", ["reference", "cmsis-nn", "any", "unknown", "esp-nn", "esp-nn-1.1.2"]
)
def test_every_library_answers_on_every_target(name: str) -> None:
    library = next(k for k in kernels.LIBRARIES.values() if k.name == name)
    (op,) = read_model(OPERATORS["conv_int8_3x3_1"]()).ops()
    for target in all_targets().values():
        assert library.builds(target) and library.latency_profiles(target)
        assert library.prepare_steps(op, target) and library.op_data_bytes(op, target) > 0
        assert library.fault_of(op, target) is None and library.computes_single_row(op, 9, 9, 1)
        assert all(v.pointer == target.pointer for v in library.variants(target))


class Narrow(ReferenceKernels):
    """It leaves transpositions of more than three axes unwritten."""

    name = title = "narrow"
    most_transposed_axes = 3


def test_the_strictest_library_limits_what_transpositions_are_left() -> None:
    assert kernels.transpose_limit() == (4, "CMSIS-NN")
    kernels.register(Narrow())
    assert kernels.transpose_limit() == (3, "narrow")


@pytest.fixture
def documented(tmp_path: Path) -> Iterator[Path]:
    """The module that the documents show, where libraries are found; its target file beside it."""
    module, table = (
        re.sub("^   ", "", block, flags=re.M)
        for block in re.findall(r"```(?:python|toml)\n(.*?)```", PAGE.read_text(), re.S)
    )
    (tmp_path / "nmsis_nn.py").write_text(module)
    (tmp_path / "nmsis-nn.toml").write_text(table)
    name = f"{libraries.__name__}.nmsis_nn"
    with mock.patch.object(libraries, "__path__", [*libraries.__path__, str(tmp_path)]):
        yield tmp_path / "nmsis-nn.toml"
    sys.modules.pop(name, None)


def test_the_library_of_the_documents_is_found(documented: Path, cnn: bytes) -> None:
    """A module in the folder and a target file are all it takes."""
    found = {library.name: library for library in libraries.found_libraries()}
    stand_for_others = {"any", "unknown"}
    assert {*found} == {*library_names(), "nmsis-nn"} - {"empty", "greedy"} - stand_for_others
    kernels.register(found["nmsis-nn"])
    target = load_target(documented)
    assert target.id == "riscv/nmsis-nn" and library_of(target) is found["nmsis-nn"]
    scratch = api.kernels_of(target).scratch_of
    model = read_model(cnn)
    depthwise = [op for op in model.ops() if op.kind == "DEPTHWISE_CONV_2D"]
    assert depthwise
    assert all(scratch(op) == (4 * op.outputs[0].elements,) for op in depthwise)
    assert arena_of(model, target).arena > arena_of(model, load_target("esp32c3/reference")).arena


class OfChips(ReferenceKernels):
    """What Espressif's chips alone run."""

    name = "of-chips"
    title = "kernels of theirs"
    chips = "espressif"


def test_every_chip_of_a_family_is_a_target_with_its_libraries() -> None:
    kernels.register(OfChips())
    with mock.patch.object(targets, "all_targets", all_targets.__wrapped__):
        on_s3, c3 = load_target("esp32s3/of-chips"), load_target("esp32c3/of-chips")
        assert not any(t.startswith("cortex") and "of-chips" in t for t in targets.all_targets())
    assert on_s3.name == "ESP32-S3, kernels of theirs" and on_s3.extension == "pie-s3"
    assert not c3.short_enums and "of-chips" not in {k.name for k in kernels.known_libraries()}


def imports_of(path: Path) -> set[str]:
    """The modules that a module imports."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module}


def test_no_other_module_imports_a_library() -> None:
    """But for the reference kernels, to which all others fall back, and which run here; and for
    the loops that ESP-NN's latency is counted in, which go by the same geometry."""
    folder = Path(libraries.__file__).parent
    others = {p.name for p in folder.iterdir() if (p / "__init__.py").exists()} - {"reference"}
    assert others >= {"cmsis_nn", "esp_nn"}
    importers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for name in others
        if not path.is_relative_to(folder / name)
        and any(module.startswith(f"{libraries.__name__}.{name}") for module in imports_of(path))
    }
    assert importers == {"cost/families/esp_nn_s3.py"}


def test_no_module_compares_the_name_of_a_family_of_kernels() -> None:
    """What differs between families is in their loops."""
    named = re.compile("|".join(f'== "{name}"|!= "{name}"' for name in FAMILIES))
    for path in (PACKAGE / "cost").rglob("*.py"):
        assert not named.search(path.read_text()), path


def test_no_other_module_compares_the_name_of_a_library() -> None:
    """Prints may show it (`says.kernels` of a board); a decision asks the library."""
    decides = re.compile(r"\.kernels\s*(==|!=|in\b|not in\b|is\b)|(==|!=)\s*\w+(\.\w+)*\.kernels\b")
    named = re.compile("|".join(f'"{name}"' for name in ("cmsis-nn", "any", "unknown")))
    files = [p for p in PACKAGE.rglob("*.py") if "tflm/kernels" not in p.as_posix()]
    assert len(files) > 200 and {"empty", "greedy"} < set(library_names())
    for path in files:
        text = path.read_text()
        assert not decides.search(text), path
        assert path.name == "targets.py" or not re.search(rf"kernels.*({named.pattern})", text), (
            path
        )
