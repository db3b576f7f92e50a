"""Reading and writing loses nothing, settles after one trip, and aligns every buffer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from tests.conftest import CNN, shared_models
from tests.models.build import unpack
from tests.models.generator import random_model
from tests.models.handmade import MODELS
from tflm_planner.model.check import check
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import add_metadata, keep_inside, reorder, resize, set_option
from tflm_planner.model.flatbuffer import build
from tflm_planner.model.flatbuffer.layout import places_of
from tflm_planner.model.flatbuffer.learnt import generated, layout_of
from tflm_planner.model.flatbuffer.read import read_flatbuffer
from tflm_planner.model.serde import COMPRESSION_METADATA, read_model, write_model
from tflm_planner.support.errors import ModelError

# Where the data of large models lie is layout, not content.
LAYOUT = {"offset", "size", "largeCustomOptionsOffset", "largeCustomOptionsSize"}
CORNERS = sorted(MODELS)
FILES = [CNN, *shared_models()]


def assert_equal(a: Any, b: Any, where: str = "model") -> None:
    if type(a).__module__ == generated.__name__:
        assert type(a) is type(b), where
        for name in vars(a).keys() - LAYOUT:
            assert_equal(getattr(a, name), getattr(b, name), f"{where}.{name}")
    elif isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray) and a.dtype == b.dtype, where
        assert a.tobytes() == b.tobytes(), where
    elif isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_equal(x, y, f"{where}[{i}]")
    else:
        same = a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))
        assert same, f"{where}: {a!r} became {b!r}"


def outside(model: Any, data: bytes) -> list[bytes]:
    """The data that lie behind the flatbuffer."""
    pieces = [(b.offset, b.size) for b in model.buffers or []]
    for graph in model.subgraphs:
        pieces += [
            (o.largeCustomOptionsOffset, o.largeCustomOptionsSize) for o in graph.operators or []
        ]
    return [data[at : at + size] for at, size in pieces if at > 1]


def check_trip(data: bytes) -> None:
    written = write_model(read_model(data))
    before, after = unpack(data), unpack(written)
    assert_equal(before, after)
    assert outside(before, data) == outside(after, written)
    assert write_model(read_model(written)) == written, "the second trip changed the file"
    check_alignment(written)
    assert len(written) <= len(data), "the file grew"


def buffer_starts(data: bytes) -> list[int]:
    """Byte positions of all buffers, found with an independent reader."""
    model = tflite.Model.GetRootAsModel(data, 0)
    starts: list[int] = []
    for i in range(model.BuffersLength()):
        buffer = model.Buffers(i)
        if buffer.DataLength() > 0:
            view = np.asarray(buffer.DataAsNumpy())
            starts.append(view.ctypes.data - np.frombuffer(data, np.uint8).ctypes.data)
        if buffer.Offset() > 1:
            starts.append(buffer.Offset())
    return starts


def misaligned(data: bytes) -> int:
    return sum(at % 16 != 0 for at in buffer_starts(data))


def check_alignment(data: bytes) -> None:
    assert misaligned(data) == 0


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_published_models_survive(path):
    data = path.read_bytes()
    check_trip(data)
    assert len(write_model(read_model(data))) <= len(data)


@pytest.mark.parametrize("name", CORNERS)
def test_corners_of_the_schema_survive(name):
    check_trip(MODELS[name].make())


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.mostly_slow(fast=6)
def test_random_models_survive(seed):
    check_trip(random_model(seed))


def test_second_reader_agrees(cnn):
    """The `tflite` package, generated from another version of the schema, sees the same model."""

    def seen(data: bytes) -> list[Any]:
        model = tflite.Model.GetRootAsModel(data, 0)
        graph = model.Subgraphs(0)
        tensors = [graph.Tensors(i) for i in range(graph.TensorsLength())]
        ops = [graph.Operators(i) for i in range(graph.OperatorsLength())]
        return [
            [(t.Name(), t.ShapeAsNumpy().tolist(), t.Type(), t.Buffer()) for t in tensors],
            [(o.InputsAsNumpy().tolist(), o.OutputsAsNumpy().tolist()) for o in ops],
            [model.Buffers(i).DataLength() for i in range(model.BuffersLength())],
        ]

    assert seen(cnn) == seen(write_model(read_model(cnn)))


@pytest.mark.parametrize("to_look_at", [True, False])
def test_compressed_weights_are_refused_in_words(cnn: bytes, *, to_look_at: bool) -> None:
    """They are shorter than their tensors: without this the file would be called damaged."""
    model = read_model(cnn)
    weights = max((t for t in model.main.tensors if t.is_constant), key=lambda t: t.nbytes)
    weights.buffer.data = np.zeros(8, np.uint8)
    with pytest.raises(ModelError, match="its buffer holds 8"):
        read_model(write_model(model), to_look_at=to_look_at)
    add_metadata(model, COMPRESSION_METADATA, np.zeros(16, np.uint8))
    with pytest.raises(ModelError, match="plan the model as it was before"):
        read_model(write_model(model), to_look_at=to_look_at)


def test_equal_scalars_of_different_width_are_not_shared():
    """Tables are shared by the bytes and widths of their fields, not by Python's equality."""

    builder: Any = build.Builder()
    first = generated.MetadataT(name=b"m", buffer=1).Pack(builder)
    again = generated.MetadataT(name=b"m", buffer=1).Pack(builder)
    other = generated.MetadataT(name=b"m", buffer=2).Pack(builder)
    assert first == again != other
    softmax = generated.SoftmaxOptionsT(beta=1.0).Pack(builder)
    leaky = generated.LeakyReluOptionsT(alpha=1.0).Pack(builder)
    gather = generated.GatherOptionsT(axis=1, batchDims=0).Pack(builder)
    assert softmax == leaky != gather, "equal bytes may be shared whatever the table's name"


def test_every_table_of_the_schema_has_a_layout() -> None:
    accessors = [
        thing
        for name, thing in vars(generated).items()
        if isinstance(thing, type) and hasattr(generated, f"{name}T")
    ]
    assert len(accessors) > 150
    for accessor in accessors:
        layout = layout_of(accessor)
        assert [f.name for f in layout.fields] == list(vars(layout.made()))
        slots = [f.slot for f in layout.fields]
        assert len({*slots}) == len(slots) and all(s >= 4 and s % 2 == 0 for s in slots)


def check_read(data: bytes) -> None:
    """What is read is what the generated code reads, attribute by attribute, in their order."""
    ours, theirs = read_flatbuffer(data), unpack(data)
    assert_equal(theirs, ours)
    assert list(vars(ours)) == list(vars(theirs))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_reads_published_models_as_the_generated_code_does(path: Path) -> None:
    check_read(path.read_bytes())


@pytest.mark.parametrize("name", CORNERS)
def test_reads_corners_as_the_generated_code_does(name: str) -> None:
    check_read(MODELS[name].make())


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.mostly_slow(fast=5)
def test_reads_random_models_as_the_generated_code_does(seed: int) -> None:
    check_read(random_model(seed))


def test_fields_that_lie_over_each_other_are_read_each_for_itself() -> None:
    # A vtable that puts type, buffer and more of a tensor at the same place.
    layout = layout_of(generated.Tensor)
    by_name = {f.name: f for f in layout.fields}
    slots = {by_name[name].slot: 4 for name in ("type", "buffer", "isVariable")}
    vtable = b"".join(slots.get(s, 0).to_bytes(2, "little") for s in range(4, 16, 2))
    loads = places_of(layout, vtable).loads
    assert sorted(name for _, names in loads for name in names) == sorted(
        by_name[n].name for n in ("type", "buffer", "isVariable") if by_name[n].slot < 16
    )
    data = (0).to_bytes(4, "little") + b"\x07\x01\x00\x00"
    values = {n: v for load, ns in loads for n, v in zip(ns, load.unpack_from(data), strict=True)}
    assert values["type"] == 7 and values["buffer"] == 263


_MANAGED = {
    "graph": ("inputs", "outputs", "tensors", "operators"),
    "tensor": ("name", "shape", "quantization"),
    "operator": (
        "inputs", "outputs", "intermediates", "builtinOptions", "customOptions",
        "largeCustomOptionsOffset", "largeCustomOptionsSize",
    ),
    "signature": ("signatureKey", "inputs", "outputs"),
    "metadata": ("name",),
}  # fmt: skip
"""Fields of the flatbuffer that live in the model alone."""


@pytest.mark.parametrize("name", CORNERS)
def test_what_the_model_manages_is_not_kept_beside_it(name: str) -> None:
    """What is changed in the model could else come back when the file is written."""
    model = read_model(MODELS[name].make())
    parts: list[tuple[str, Any]] = [
        *(("graph", g) for g in model.graphs),
        *(("tensor", t) for t in model.tensors()),
        *(("operator", op) for op in model.ops()),
        *(("signature", s) for s in model.signatures),
        *(("metadata", m) for m in model.metadata),
    ]
    for what, part in parts:
        for field in _MANAGED[what]:
            kept = getattr(part.raw, field)
            assert kept is None or kept == 0 or len(kept) == 0, (what, field)


@pytest.mark.parametrize("name", CORNERS)
def test_a_clone_is_written_as_its_original(name: str) -> None:
    model = read_model(MODELS[name].make())
    before = write_model(model)
    copied = clone(model)
    check(copied)
    assert write_model(copied) == before
    mine = {*model.graphs, *model.ops(), *model.tensors(), *model.buffers}
    theirs = {*copied.graphs, *copied.ops(), *copied.tensors(), *copied.buffers}
    assert not mine & theirs


def test_changing_a_clone_leaves_the_original_alone(cnn: bytes) -> None:
    model = read_model(cnn)
    before = write_model(model)
    copied = clone(model)
    for graph in copied.graphs:
        for tensor in graph.tensors:
            resize(tensor, (1, *(tensor.shape or ())))
        for op in graph.ops:
            if "padding" in op.options.fields():
                set_option(op, "padding", 1 - op.options.padding)
        reorder(graph, list(reversed(graph.ops)))
    keep_inside(copied)
    add_metadata(copied, "more", np.zeros(4, np.uint8))
    assert write_model(model) == before
    assert write_model(clone(read_model(cnn))) == before
