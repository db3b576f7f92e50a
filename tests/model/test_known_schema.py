"""Our copy of the schema is the generated module's, and models read with it are the same models."""

from __future__ import annotations

import pytest

from tests.conftest import CNN
from tests.model.known_schema import FILE, as_text
from tests.models.handmade import MODELS
from tflm_planner.model.flatbuffer.known import Vector
from tflm_planner.model.serde import read_model
from tflm_planner.model.text import to_text
from tflm_planner.support.errors import ModelError


def test_the_copy_is_up_to_date() -> None:
    assert FILE.read_text("utf-8") == as_text(), "python -m tests.model.known_schema"


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_model_to_look_at_is_the_model(name: str) -> None:
    data = MODELS[name].make()
    whole, seen = read_model(data), read_model(data, to_look_at=True)
    assert to_text(whole) == to_text(seen)
    for one, other in zip(whole.buffers, seen.buffers, strict=True):
        assert (one.data is None) == (other.data is None)
        if one.data is not None:
            assert isinstance(other.data, Vector)
            assert one.data.tobytes() == other.data.tobytes()
    for one, other in zip(whole.ops(), seen.ops(), strict=True):
        assert one.options.name == other.options.name
        fields = [{k: _plain(v) for k, v in o.options.fields().items()} for o in (one, other)]
        assert fields[0] == fields[1]
    for one, other in zip(whole.tensors(), seen.tensors(), strict=True):
        assert one.quantization == other.quantization


def _plain(value: object) -> object:
    return list(value) if hasattr(value, "tobytes") else value  # pyright: ignore


def test_a_vector_beyond_the_file_is_refused() -> None:
    data = CNN.read_bytes()
    for end in range(8, len(data), len(data) // 60):
        with pytest.raises(ModelError):
            read_model(data[:end], to_look_at=True)
