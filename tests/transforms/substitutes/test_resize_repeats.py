"""TILE becomes RESIZE_NEAREST_NEIGHBOR wherever that takes the same elements, and every bit is
equal: on LiteRT, which runs both, and by terms."""

from __future__ import annotations

import pytest

from tests.command import Run
from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.verification import VerifyOptions, verify, why_unable
from tflm_planner.verification.stand_ins import as_registered, cleaned_up
from tflm_planner.verification.terms import prove_by_terms

Step = tuple[int, ...] | str
"""The shape of a RESHAPE; or how often a TILE repeats, as in "1 2 1"."""


def repeated(
    shape: tuple[int, ...], *steps: Step, dtype: str = "int8", ends: bool = True, **scales: float
) -> bytes:
    """RELU, these RESHAPEs and TILEs, and RELU. ends: with the RELUs; without them the steps make
    the outputs. scales: of the result, if it has another one."""
    net = Net()
    graph = net.graph()
    scale = {"scale": 0.05} if dtype.startswith("int") else {}
    x = graph.input("x", shape, dtype, **scale)
    current = x
    if ends:
        current = graph.tensor("first", shape, dtype, **scale)
        graph.op("RELU", [x], [current])
    for number, step in enumerate(steps):
        if isinstance(step, str):
            factors = [int(word) for word in step.split()]
            shape = tuple(n * m for n, m in zip(shape, factors, strict=True))
            kind, constant = "TILE", graph.constant(f"often{number}", factors)
        else:
            shape = step
            kind, constant = "RESHAPE", graph.constant(f"shape{number}", list(shape))
        scale = {**scale, **(scales if step is steps[-1] else {})}
        made = graph.tensor(f"step{number}", shape, dtype, **scale)
        if kind == "TILE":
            graph.op(kind, [current, constant], [made], version=3 if "int8" in dtype else 1)
        else:
            graph.op(kind, [current, constant], [made], "ReshapeOptions")
        current = made
    if ends:
        last = graph.tensor("last", shape, dtype, **scale)
        graph.op("RELU", [current], [last])
        current = last
    graph.outputs(current)
    return net.finish()


def upsampled(
    rows: int, columns: int, factors: tuple[int, int], dtype: str = "int8", images: int = 1
) -> bytes:
    """An image as Keras' UpSampling2D enlarges it: repeated along a new axis, for either side."""
    down, across = factors
    steps = (
        (images, rows, 1, columns, 3), f"1 1 {down} 1 1",
        (images, rows * down, columns, 1, 3), f"1 1 1 {across} 1",
        (images, rows * down, columns * across, 3),
    )  # fmt: skip
    return repeated((images, rows, columns, 3), *steps, dtype=dtype)


def cleaned(data: bytes) -> Model:
    model = read_model(data)
    run(model, Normalize())
    return model


def kinds_of(model: Model) -> list[str]:
    return [op.kind for op in model.main.ops if op.kind != "RELU"]


def check_equal(data: bytes, model: Model) -> None:
    """The rewritten model computes what the file does."""
    assert prove_by_terms(read_model(data), model).status == "equal"
    checks = verify(data, write_model(model), VerifyOptions(inputs=3)).checks
    assert [c.status for c in checks] == ["equal", "equal"], checks


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize(("sides", "factors", "images"), [
    ((4, 5), (2, 2), 1), ((1, 3), (3, 1), 1), ((3, 2), (1, 4), 2), ((2, 2), (41, 47), 1),
])  # fmt: skip
def test_an_image_that_keras_enlarges_is_resized_at_once(
    dtype: str, sides: tuple[int, int], factors: tuple[int, int], images: int
) -> None:
    data = upsampled(*sides, factors, dtype, images)
    model = cleaned(data)
    assert kinds_of(model) == ["RESIZE_NEAREST_NEIGHBOR"]
    check_equal(data, model)


def test_pixels_are_taken_at_their_centres_only_where_rounding_asks_for_it() -> None:
    """41 times 1/41 is less than 1 in floats of 32 bits."""
    for factors, half in (((2, 3), False), ((41, 2), True)):
        (_, op, _) = cleaned(upsampled(2, 2, factors)).main.ops
        assert op.options.has_half_pixel_centers is half


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize(("shape", "steps", "left"), [
    # UpSampling1D: a row of pixels, with a RESHAPE before and behind
    ((1, 6, 4), ((1, 6, 1, 4), "1 1 3 1", (1, 18, 4)), "RESHAPE RESIZE RESHAPE"),
    # repeated as a whole: along rows, along rows and columns, images, elements, two of three axes
    ((1, 3, 2, 4), ("1 2 1 1",), "RESHAPE RESIZE RESHAPE"),
    ((1, 3, 2, 4), ("1 2 3 1",), "RESHAPE RESIZE RESHAPE RESIZE RESHAPE"),
    ((1, 3, 2, 4), ("2 1 1 1",), "RESHAPE RESIZE RESHAPE"),
    ((5,), ("3",), "RESHAPE RESIZE RESHAPE"),
    ((2, 3, 4), ("3 1 2",), "RESHAPE RESIZE RESHAPE RESIZE RESHAPE"),
    # one pixel for all, as squeezed weights are spread: columns, rows and columns
    ((1, 1, 1, 4), ("1 1 5 1",), "RESIZE"),
    ((1, 1, 1, 4), ("1 3 5 1",), "RESIZE"),
    # one axis between RESHAPEs that nothing else reads, of six axes
    ((1, 2, 3, 4), ((1, 2, 1, 3, 1, 4), "1 1 2 1 2 1", (1, 4, 6, 4)), "RESIZE"),
    # UpSampling3D
    ((1, 2, 2, 2, 3), (
        (1, 2, 1, 2, 2, 3), "1 1 2 1 1 1", (1, 4, 2, 1, 2, 3), "1 1 1 2 1 1", (1, 4, 4, 2, 3)
    ), "RESHAPE RESIZE RESHAPE RESIZE RESHAPE"),
    # an image that is flattened behind it
    ((1, 2, 2, 3), ((1, 2, 1, 2, 3), "1 1 2 1 1", (1, 4, 2, 3), (1, 24)), "RESIZE RESHAPE"),
    # nothing is repeated
    ((1, 3, 2, 4), ("1 1 1 1",), ""),
])  # fmt: skip
def test_other_repeats_are_resized_axis_by_axis(
    shape: tuple[int, ...], steps: tuple[Step, ...], left: str, dtype: str
) -> None:
    data = repeated(shape, *steps, dtype=dtype)
    model = cleaned(data)
    assert kinds_of(model) == left.replace("RESIZE", "RESIZE_NEAREST_NEIGHBOR").split()
    check_equal(data, model)


@needs_tflm
def test_repeats_that_make_the_outputs_are_resized() -> None:
    data = repeated((1, 2, 2, 3), (1, 2, 1, 2, 3), "1 1 2 1 1", (1, 4, 2, 3), ends=False)
    model = cleaned(data)
    assert kinds_of(model) == ["RESIZE_NEAREST_NEIGHBOR"]
    check_equal(data, model)


@needs_tflm
def test_what_repeats_nothing_and_makes_an_output_is_no_tile_either() -> None:
    for shape in ((1, 2, 2, 3), (2, 3), (2, 1, 2, 2, 2)):
        data = repeated(shape, " ".join("1" * len(shape)), ends=False)
        model = cleaned(data)
        assert set(kinds_of(model)) < {"RESIZE_NEAREST_NEIGHBOR", "RESHAPE"}
        check_equal(data, model)


def test_what_another_operator_reads_in_between_stays() -> None:
    """The first result of a chain is an output, too: each TILE is resized by itself."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 2, 2, 3), scale=0.05)
    shapes = [(1, 2, 1, 2, 3), (1, 2, 2, 2, 3), (1, 4, 2, 3)]
    wide, more, y = (graph.tensor(f"t{i}", s, scale=0.05) for i, s in enumerate(shapes))
    graph.op("RESHAPE", [x, graph.constant("a", list(shapes[0]))], [wide], "ReshapeOptions")
    graph.op("TILE", [wide, graph.constant("b", [1, 1, 2, 1, 1])], [more], version=3)
    graph.op("RESHAPE", [more, graph.constant("c", list(shapes[2]))], [y], "ReshapeOptions")
    graph.outputs(more, y)
    model = cleaned(net.finish())
    assert kinds_of(model).count("RESIZE_NEAREST_NEIGHBOR") == 1
    assert [t.name for t in model.main.outputs] == ["t1", "t2"]
    assert prove_by_terms(read_model(net.finish()), model).status == "equal"


@pytest.mark.parametrize("data", [
    repeated((1, 2, 2, 3), "1 2 1 1", dtype="uint8"),
    repeated((1, 2, 2, 3), "1 2 1 1", dtype="int32", ends=False),
    repeated((1, 2, 2, 3), "1 2 1 1", scale=0.1),
], ids=["uint8", "int32", "another scale"])  # fmt: skip
def test_what_tflm_cannot_resize_stays(data: bytes) -> None:
    assert kinds_of(cleaned(data)) == ["TILE"]


def test_numbers_that_are_unknown_or_wrong_stay() -> None:
    for often in (None, [1, 3, 1, 1], [2, 1], [1, 2**31 - 1, 1, 1]):
        net = Net()
        graph = net.graph()
        x = graph.input("x", (1, 2, 2, 3), scale=0.05)
        unknown = often is None
        times = graph.input("n", (4,), "int32") if unknown else graph.constant("n", often)
        y = graph.tensor("y", (1, 4, 2, 3), scale=0.05)
        graph.op("TILE", [x, times], [y], version=3)
        graph.outputs(y)
        assert kinds_of(cleaned(net.finish())) == ["TILE"]


def test_what_is_too_large_to_be_looked_at_stays() -> None:
    """Declared so in a damaged file, say; a long chain is looked at near its TILE alone."""
    assert kinds_of(cleaned(repeated((1, 1 << 13, 1, 1), "1 1 4096 1"))) == ["TILE"]
    shapes = [(2, 2, 3), (4, 3), (12,)] * 400
    long = repeated((2, 2, 3), *shapes, "2", *[(2, 12), (24,)] * 400)
    assert "TILE" not in kinds_of(cleaned(long))


@needs_tflm
def test_kinds_of_which_nothing_is_left_are_not_listed() -> None:
    """LiteRT's reference kernels refuse a file that lists TILE of int8, though none is in it."""
    model = cleaned(upsampled(2, 2, (2, 2)))
    assert {code.builtin for code in model.codes} == {op.code.builtin for op in model.main.ops}
    assert len(model.codes) == 2


@needs_tflm
def test_a_runtime_that_lacks_tile_is_given_what_terms_prove_equal() -> None:
    data = upsampled(3, 2, (2, 2))
    model = read_model(data)
    cleaned = cleaned_up(data)
    assert cleaned is not None and kinds_of(read_model(cleaned)) == ["RESIZE_NEAREST_NEIGHBOR"]
    assert why_unable(data, "TFLM") is None and as_registered("TFLM", data, model) is data
    on_litert = read_model(as_registered("LiteRT", data, model))
    assert kinds_of(on_litert) == kinds_of(model)
    assert {c.raw.version for c in on_litert.codes if c.builtin == 69} == {2}
    other = repeated((1, 4, 4, 2))
    assert as_registered("LiteRT", other, read_model(other)) is other


@needs_tflm
def test_another_repeat_is_found_different() -> None:
    """Rows repeated as a whole are not each row twice."""
    each = upsampled(2, 2, (2, 1))
    whole = repeated((1, 2, 2, 3), "1 2 1 1")
    assert prove_by_terms(read_model(each), cleaned(whole)).status == "different"
    checks = verify(each, write_model(cleaned(whole))).checks
    assert [c.status for c in checks] == ["different", "different"]


@needs_tflm
def test_a_model_with_repeats_is_planned_in_tiles_and_proved_on_both_runtimes(tmp_path) -> None:
    source, target = tmp_path / "in.tflite", tmp_path / "out.tflite"
    source.write_bytes(upsampled(24, 24, (2, 2)))
    permission = api.TilePermission(operators=api.AllowedOperators.ALL)
    report = api.plan(source, target, api.PlanOptions(tiles=permission)).report
    assert report.verified and report.after.arena.arena < report.before.arena.arena
    assert any("TILE" in note for note in report.notes)
    kinds = {op.kind for op in read_model(target.read_bytes(), dialect=True).main.ops}
    assert "RESIZE_NEAREST_NEIGHBOR" in kinds and "TILE" not in kinds
    assert {check.status for check in report.checks} == {"equal"} and len(report.checks) > 1


def test_the_firmware_as_it_is_may_have_the_operator_that_replaces_them(tmp_path, capsys) -> None:
    source = tmp_path / "in.tflite"
    source.write_bytes(upsampled(24, 24, (2, 2)))
    done = Run([source, tmp_path / "out.tflite", "--firmware", "as-is"], capsys)
    assert done.code == 0 and "AddResizeNearestNeighbor" in done.out
    assert "RESIZE_NEAREST_NEIGHBOR, which the firmware must register" in " ".join(done.out.split())
