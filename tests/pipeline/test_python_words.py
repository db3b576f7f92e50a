"""Errors of the public functions name keywords, those of the command its options."""

from __future__ import annotations

import inspect

import pytest

import tflm_planner as tp
from tests.conftest import CNN
from tests.models.small import joined_uint8
from tflm_planner.pipeline import api
from tflm_planner.pipeline.interface import Planned
from tflm_planner.pipeline.interface.python_words import KEYWORDS, in_python_words


def test_a_wrong_keyword_is_named_as_one() -> None:
    with pytest.raises(tp.UsageError) as refused:
        tp.plan(CNN, io="int9", verify=False)  # type: ignore[arg-type]
    assert str(refused.value) == "`io` 'int9' is unknown; choose from keep, int8"
    with pytest.raises(tp.UsageError, match="--io 'int9' is unknown"):
        api.PlanOptions(io="int9")  # type: ignore[arg-type]


def test_what_to_try_is_said_in_keywords() -> None:
    with pytest.raises(tp.ModelError) as refused:
        tp.plan(joined_uint8())
    said = str(refused.value)
    assert "`verify=False` plans it all the same" in said
    assert "with `tile=Tile(portable=True)` LiteRT proves it" in said
    assert "--" not in said
    with pytest.raises(tp.ModelError, match="--no-verify plans it all the same"):
        api.plan(joined_uint8(), None, api.PlanOptions())


def test_options_without_a_keyword_stay_those_of_the_command() -> None:
    said = "try --order file, or --tflm; see a--b and -- there"
    expected = "try `tflm-plan --order` file, or `target`; see a--b and -- there"
    assert in_python_words(said) == expected


def test_the_functions_have_these_keywords() -> None:
    """A keyword that is renamed must be renamed in messages too."""
    functions = tp.plan, tp.stream_input, Planned.save
    keywords = {name for f in functions for name in inspect.signature(f).parameters}
    assert {word.partition("=")[0] for word in KEYWORDS.values()} <= keywords
    assert {"operators", "portable"} <= {*inspect.signature(tp.Tile).parameters}
