"""The text form is stable: the committed model reads as its golden file."""

from __future__ import annotations

import os
from pathlib import Path

from tests.models.handmade import MODELS
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.model.text import to_text

GOLDEN = Path(__file__).parents[1] / "golden"


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def test_cnn(cnn):
    check_golden("cnn_int8", to_text(read_model(cnn)))


def test_control_flow():
    check_golden("while_in_if", to_text(read_model(MODELS["while_in_if"].make())))


def test_metadata_and_signatures():
    text = to_text(read_model(MODELS["metadata"].make()))
    text += to_text(read_model(MODELS["several_signatures"].make()))
    check_golden("metadata", text)


def test_writing_does_not_change_the_text(cnn):
    model = read_model(cnn)
    assert to_text(read_model(write_model(model))) == to_text(model)
