"""The first operator and element that matter are found, with few runs where they come first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.models.small import bottleneck
from tflm_planner.model.serde import read_model
from tflm_planner.ops.terms.field import LANES
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import Symbols, Values
from tflm_planner.verification.terms.foreign_elements import (
    ForeignElements,
    KnownElements,
    first_that_matters,
    replaced,
)

OPS = read_model(bottleneck()).main.ops


@pytest.mark.parametrize("at, element", [(0, 0), (0, 6), (1, 3), (2, 0), (3, 6)])
def test_the_first_that_matters_is_found(at: int, element: int) -> None:
    found = [ForeignElements(OPS[i % len(OPS)], 10 * i + np.arange(7)) for i in range(4)]
    runs = list[int]()

    def matters(elements: Sequence[ForeignElements]) -> bool:
        runs.append(len(elements))
        return any(place >= 10 * at + element for each in elements for place in each.places)

    first = first_that_matters(found, matters)
    assert first is not None and first.op is found[at].op
    assert first.places.tolist() == [10 * at + element]
    assert len(runs) <= (2 if (at, element) == (0, 0) else 10)


def test_none_is_found_if_none_matters() -> None:
    found = [ForeignElements(OPS[0], np.arange(3))]
    assert first_that_matters(found, lambda _: False) is None
    assert first_that_matters([], lambda _: True) is None


def test_only_elements_that_were_never_made_are_replaced() -> None:
    symbols = Symbols(Mixer())
    known = KnownElements()
    old, new = symbols.of_name((2, 3), "old"), symbols.of_name((2, 3), "new")
    counts = Values(np.zeros(4, np.int8), True)
    known.add([old, counts])
    assert known.foreign(OPS[0], [old, counts]).places.size == 0
    mixed = Values(np.concatenate([old.data, new.data], 1), False)
    foreign = known.foreign(OPS[0], [counts, old, mixed])
    assert foreign.places.tolist() == [12, 13, 14, 15, 16, 17]
    others = replaced([counts, old, mixed], foreign, symbols)
    assert others[0] is counts and others[1].is_same_as(old)
    kept, changed = np.split(others[2].data.reshape(LANES, 4, 3), 2, axis=1)
    assert (kept == old.data).all() and (changed != new.data).any(axis=0).all()
