"""What each transform does, as text: a small model before it and after it, in `before_and_after/`.

Documents that are held true; `python -m tests.transforms.test_before_and_after` writes them anew.
That bits stay equal is shown elsewhere, on both runtimes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.registry import IMAGE, add, conv, relu, start
from tests.models.small import Chain, One
from tests.transforms.test_merge_moves import shifted
from tests.transforms.test_subsample import end_of_a_stage
from tflm_planner.memory.order import best_order
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.model.text import to_text
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import Transform, run
from tflm_planner.transforms.collapse_axes import collapse_transpose_axes
from tflm_planner.transforms.dialect import Crop, Dialect
from tflm_planner.transforms.fold_transpose import fold_transposes
from tflm_planner.transforms.merge_moves import merge_moves as merge_chains_of_moves
from tflm_planner.transforms.minify import Minify
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.reorder import Reorder
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.row_loop.split_input import split_model
from tflm_planner.transforms.subsample import Subsample
from tflm_planner.transforms.tile.tile import band

FOLDER = Path(__file__).parent / "before_and_after"
EXAMPLES: dict[str, Callable[[], tuple[str, str]]] = {}
"""Name of a document -> the model before and after; what happens is told by its docstring."""


def example(make: Callable[[], tuple[str, str]]) -> Callable[[], tuple[str, str]]:
    EXAMPLES[make.__name__] = make
    return make


def document(name: str) -> str:
    meaning = " ".join((EXAMPLES[name].__doc__ or "").split())
    before, after = EXAMPLES[name]()
    return f"{meaning}\n\nbefore\n\n{before}\nafter\n\n{after}"


def rewritten(model: Model, *transforms: Transform) -> tuple[str, str]:
    before = to_text(model)
    run(model, *transforms)
    return before, to_text(model)


def two_convolutions() -> Model:
    net, graph, x = start(IMAGE)
    graph.outputs(conv(graph, conv(graph, x, IMAGE, "first"), IMAGE, "second"))
    return read_model(net.finish())


def one_by_one(*channels: int) -> Model:
    """Convolutions of single pixels: their tiles have no halo."""
    chain = Chain((1, 8, 4, channels[0]))
    for count in channels[1:]:
        chain.conv(count, 1)
    return read_model(chain.finish())


@example
def normalize() -> tuple[str, str]:
    """A graph that nothing calls is dropped; so is a tensor that nothing mentions, which this text
    does not show."""
    net, graph, x = start(IMAGE)
    graph.tensor("orphan", (1, 64, 64, 8), scale=0.1)
    graph.outputs(relu(graph, x, IMAGE))
    unused = net.graph("never called")
    unused.outputs(relu(unused, unused.input("i", (1, 4), scale=0.1), (1, 4)))
    return rewritten(read_model(net.finish()), Normalize())


@example
def fold_transpose() -> tuple[str, str]:
    """A product reads its operand turned (adjY), so that nobody turns it before."""
    one = One((1, 6, 4))
    turned, y = one.tensor((1, 4, 6)), one.tensor((1, 6, 6))
    one.graph.op("TRANSPOSE", [one.x, one.integers(0, 2, 1)], [turned], "TransposeOptions")
    one.graph.op("BATCH_MATMUL", [one.x, turned], [y], "BatchMatMulOptions", adjX=False, adjY=False)
    model = read_model(one.finish((y, (1, 6, 6))))
    before = to_text(model)
    fold_transposes(model)
    return before, to_text(model)


@example
def merge_moves() -> tuple[str, str]:
    """Every second pixel of an image that was shifted by one: no whole image is copied."""
    model = read_model(shifted(9).finish())
    before = to_text(model)
    merge_chains_of_moves(model)
    return before, to_text(model)


@example
def subsample() -> tuple[str, str]:
    """Two convolutions read one pixel in four of a sum: it and what only it reads are computed
    there alone."""
    return rewritten(read_model(end_of_a_stage()), Subsample("AVERAGE_POOL_2D"))


@example
def collapse_axes() -> tuple[str, str]:
    """Channels are shuffled with four axes in place of five, which CMSIS-NN does not turn."""
    one = One((1, 6, 5, 4))
    apart, turned, y = (one.tensor(s) for s in ((1, 6, 5, 2, 2), (1, 6, 5, 2, 2), (1, 6, 5, 4)))
    one.graph.op("RESHAPE", [one.x, one.integers(1, 6, 5, 2, 2)], [apart], "ReshapeOptions")
    order = one.integers(0, 1, 2, 4, 3)
    one.graph.op("TRANSPOSE", [apart, order], [turned], "TransposeOptions")
    one.graph.op("RESHAPE", [turned, one.integers(1, 6, 5, 4)], [y], "ReshapeOptions")
    model = read_model(one.finish((y, (1, 6, 5, 4))))
    before = to_text(model)
    collapse_transpose_axes(model)
    return before, to_text(model)


@example
def minify() -> tuple[str, str]:
    """Names are dropped that nobody finds a tensor by: inputs and outputs keep theirs."""
    model = two_convolutions()
    shown: list[str] = []
    for transforms in ((), (Minify(),)):
        run(model, *transforms)
        names = " ".join(repr(t.name) for t in model.tensors())
        shown.append(f"{to_text(model)}  names {names}\n  {len(write_model(model))} bytes\n")
    return shown[0], shown[1]


@example
def reorder() -> tuple[str, str]:
    """Each branch is made small before the next one begins."""
    net, graph, x = start(IMAGE)
    large = [conv(graph, x, IMAGE, name) for name in ("a", "b")]
    shape = (1, IMAGE[1] // 2, IMAGE[2] // 2, IMAGE[3])
    small = [graph.tensor(f"small{k}", shape, scale=0.1) for k in range(2)]
    fields = {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2, "padding": 1}
    for source, result in zip(large, small, strict=True):
        graph.op("MAX_POOL_2D", [source], [result], "Pool2DOptions", **fields)
    graph.outputs(add(graph, *small, shape))
    return rewritten(read_model(net.finish()), Reorder(best_order, api.kernels_of().scratch_of))


@example
def tile() -> tuple[str, str]:
    """Two convolutions in two bands: both read the rows in the middle, and pad three sides."""
    return rewritten(two_convolutions(), Regions((band(0, 1, 2),)))


@example
def row_loop() -> tuple[str, str]:
    """Two rows a turn; the body writes its rows of the result over rows that no turn reads."""
    return rewritten(one_by_one(2, 6, 2), Regions((LoopedRegion((0, 1), 2),)))


@example
def split_input() -> tuple[str, str]:
    """The front takes two rows at a time and hands on its halo; the back begins with its result."""
    model = two_convolutions()
    halves = split_model(model, (0,), 2)
    return to_text(model), f"{to_text(halves.front)}\n{to_text(halves.back)}"


@example
def dialect() -> tuple[str, str]:
    """Bands without halos: no operator cuts the input apart or puts the result together."""
    model = one_by_one(16, 16, 16)
    run(model, Regions((band(0, 1, 2),)), Crop(has_reshape=False))
    plan = plan_memory(model, MemoryOptions(kernels=api.kernels_of(), bind_views=True))
    return rewritten(plan.model, Dialect(plan.offsets))


@example
def attach_plan() -> tuple[str, str]:
    """The plan is metadata: three numbers, and an offset for each tensor."""
    model = two_convolutions()
    planned = [t for t in model.tensors() if not t.is_constant]
    before, after = rewritten(model, AttachPlan({t: 64 * i for i, t in enumerate(planned)}))
    carried = carried_plan(read_model(write_model(model))) or {}
    told = ", ".join(f"{t.name!r} at {offset}" for t, offset in carried.items())
    return before, f"{after}  {told}\n"


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_transform_does_what_its_document_shows(name: str) -> None:
    assert document(name) == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_every_document_is_of_a_transform() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(EXAMPLES)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for written in EXAMPLES:
        (FOLDER / f"{written}.txt").write_text(document(written), "utf-8")
