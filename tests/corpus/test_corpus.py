"""Small models made the way people make them: planned and proved, or refused for a reason.

Every fifth network, in one of the seven types, which take turns; a dozen of these in CI, all with
`--long`. `python -m tests.corpus` does all networks in all types.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.conftest import needs_tflm
from tests.corpus.convert import TYPES, ConversionError
from tests.corpus.networks import NETWORKS
from tests.corpus.outcome import UNHELPFUL, reached
from tests.corpus.workshop import Workshop
from tflm_planner.pipeline import api

pytestmark = [
    needs_tflm,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow (.[zoo])"
    ),
]

CASES = [(n, TYPES[at % len(TYPES)]) for at, n in enumerate(NETWORKS) if at % 5 == 0]


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    with Workshop() as made:
        yield made


def test_the_corpus_is_large_and_of_every_type() -> None:
    assert len(CASES) >= 18
    assert {kind for _, kind in CASES} == set(TYPES)


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.slow
@pytest.mark.mostly_long(short=12)
def test_a_model_as_people_make_it(workshop: Workshop, name: str, kind: str) -> None:
    try:
        data = workshop.converted(name, kind)
    except ConversionError as error:
        pytest.skip(f"the converter makes no file of it: {error}")
    stock = reached(data, "arena")
    assert stock.arena is not None, stock
    for command in ("plan", "tiles"):
        made = reached(data, command)
        assert not made.fault, (command, made)
        if made.arena is None:
            assert len(made.refused) > 20 and not UNHELPFUL.search(made.refused), made
        else:
            assert made.proof == "verified", (command, made)
            assert made.arena <= stock.arena or api.arena(data).cannot_run, (made, stock)
