"""Files as clean-up leaves them."""

from __future__ import annotations

from tflm_planner.model.serde import read_model, write_model
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize


def cleaned(data: bytes) -> bytes:
    """A file, cleaned up."""
    model = read_model(data)
    run(model, Normalize())
    return write_model(model)


def kinds_but_reshapes(data: bytes) -> list[str]:
    """The operators of a file without its RESHAPEs, in order."""
    return [op.kind for op in read_model(data, dialect=True).ops() if op.kind != "RESHAPE"]
