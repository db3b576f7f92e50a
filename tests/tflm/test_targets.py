import dataclasses
from pathlib import Path

import pytest

from tests.conftest import PUBLISHED
from tflm_planner.pipeline import read_only
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.arena.struct_sizes import struct_sizes
from tflm_planner.tflm.target_file import BoardTable, TargetTable
from tflm_planner.tflm.targets import (
    DEFAULT_TARGET,
    Board,
    Target,
    all_boards,
    all_targets,
    kernel_twin,
    load_target,
)

REQUIRED = [
    "x86-64/reference", "x86-64/wheel", "cortex-m4/cmsis-nn", "cortex-m4/reference",
    "cortex-m3/cmsis-nn", "cortex-m55/cmsis-nn", "arduino-2023", "cortex-m0plus/cmsis-nn",
    "cortex-m7/cmsis-nn", "cortex-m33/cmsis-nn", "cortex-m85/cmsis-nn",
]  # fmt: skip


@pytest.mark.parametrize("name", REQUIRED)
def test_built_in_targets_are_there(name: str) -> None:
    assert load_target(name).id == name


def test_default_target() -> None:
    assert load_target(DEFAULT_TARGET).kernels == "cmsis-nn"


def test_a_board_is_its_target_with_the_board() -> None:
    target = load_target("nano33ble")
    assert target.id == "cortex-m4/cmsis-nn"
    assert target.board is not None
    assert (target.board.sram, target.board.clock) == (256 * 1024, 64_000_000)


def test_zephyrs_targets_are_those_of_their_cores_in_larger_structures() -> None:
    """Compiled by arm-none-eabi-gcc of Zephyr's copy of TFLM, without TF_LITE_STATIC_MEMORY."""
    zephyr = [target for name, target in all_targets().items() if name.endswith("/zephyr")]
    assert len(zephyr) == 6
    for target in zephyr:
        plain = load_target(target.id.replace("zephyr", "cmsis-nn"))
        sizes = struct_sizes(target)
        assert (sizes.node, sizes.tensor, sizes.dims_end) == (44, 64, 12)
        same = dataclasses.replace(sizes, node=32, tensor=32, dims_end=struct_sizes(plain).dims_end)
        assert same == struct_sizes(plain)
        as_plain = dataclasses.replace(target, static_memory=True, tflm="")
        assert kernel_twin(as_plain) == kernel_twin(plain)


def test_zephyrs_arenas_are_about_so_large() -> None:
    arena = read_only.arena(PUBLISHED / "vww_96_int8.tflite", load_target("cortex-m4/zephyr"))
    assert (arena.arena, arena.bound) == (101_148, "about")
    assert arena.reserved > arena.arena


def test_every_board_refers_to_a_target() -> None:
    assert all_boards()
    assert {board.target for board in all_boards().values()} <= set(all_targets())


def test_unknown_names_are_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match=r"cortex-m4/cmsis.*did you mean cortex-m4/cmsis-nn"):
        load_target("cortex-m4/cmsis")


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_file_may_build_on_a_target(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[target]\nbase = "cortex-m4/cmsis-nn"\nid = "mine"\nextension = "none"\n'
        '[board]\nid = "b"\nname = "B"\nsram = 1000\nflash = 2000\nclock = 3\n',
    )
    target = load_target(path)
    assert (target.id, target.extension, target.kernels) == ("mine", "none", "cmsis-nn")
    assert target.board == Board("b", "B", "mine", 1000, 2000, 3)


def test_a_file_may_say_everything(tmp_path: Path) -> None:
    path = write(
        tmp_path, '[target]\nid = "t"\nname = "T"\ncore = "C"\nkernels = "unknown"\npointer = 8\n'
    )
    assert load_target(str(path)) == Target("t", "T", "C", "unknown", pointer=8)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[target", "not TOML"),
        ("x = 1", "unknown field `x`; its keys are target, board"),
        ("target = 3", "target: Expected `object`"),
        ("", "required field `target`"),
        ('[target]\nbase = "nowhere"', "target.base"),
        ('[target]\nid = "t"\nname = "T"\ncore = "C"', "target.kernels: missing"),
        (
            '[target]\nbase = "arduino-2023"\nkernel = "unknown"',
            "target: .*unknown field `kernel`; .*kernels",
        ),
        ('[target]\nbase = "arduino-2023"\nkernels = "esp"', "target.kernels: 'esp' is unknown"),
        ('[target]\nbase = "arduino-2023"\npointer = 5', "target.pointer: .* 5; choose from 4, 8"),
        ('[target]\nbase = "arduino-2023"\nshort_enums = 1', "target.short_enums: Expected `bool`"),
        (
            '[target]\nbase = "arduino-2023"\n'
            '[board]\nid = "b"\nname = "B"\nsram = 0\nflash = 1\nclock = 1',
            "board.sram: Expected `int` >= 1",
        ),
    ],
)
def test_wrong_files_are_refused_by_file_and_key(tmp_path: Path, text: str, named: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UsageError, match=named) as refusal:
        load_target(path)
    assert "mine.toml" in str(refusal.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.toml cannot be read"):
        load_target(tmp_path / "absent.toml")


def test_a_file_may_give_what_a_target_has() -> None:
    keys = {f.name for f in dataclasses.fields(Target)} - {"board", "file"}
    assert set(TargetTable.__struct_fields__) == keys | {"base"}
    assert set(BoardTable.__struct_fields__) == {f.name for f in dataclasses.fields(Board)}


def test_any_is_short_for_any_known_library() -> None:
    assert load_target("any") is load_target("cortex-m/any")


def test_a_target_s_word_loads_it_again(tmp_path: Path) -> None:
    file = tmp_path / "a board.toml"
    board = '[board]\nid = "mine"\nname = "mine"\nsram = 65536\nflash = 1048576\nclock = 64000000\n'
    file.write_text(f'[target]\nbase = "cortex-m4/cmsis-nn"\nid = "mine"\n{board}')
    for name in ("any", "cortex-m4/cmsis-nn", "nano33ble", "nano33ble+lean", str(file)):
        for target in (load_target(name), load_target(name, lean=name != "any")):
            assert load_target(target.word) == target
    assert load_target(file).word == str(file)
