"""Hand-made schemes on published models: what they reach, and that they are right."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm, published
from tests.transforms.plans import dialect_plan, portable_plan
from tests.transforms.tiled import same_bits
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.transforms.tile.tile import band

pytestmark = pytest.mark.slow

SCHEMES = {
    "vww_96_int8": (band(2, 3, 4, border="waste"), band(6, 7, 2, border="waste")),
    "pretrainedResnet_quant": (band(0, 3, 4, border="waste"),),
}


@needs_tflm
@pytest.mark.parametrize(
    ("name", "arena", "macs"),
    [("vww_96_int8", 59_000, 1.02), ("pretrainedResnet_quant", 34_600, 1.09)],
)
def test_smaller_arenas_on_untouched_firmware(name, arena, macs):
    """Cortex-M4 with CMSIS-NN: stock takes 100,712 and 55,000 bytes."""
    data = published(name)
    options = MemoryOptions(order="file", time_limit=5.0)
    dialect = dialect_plan(data, SCHEMES[name], options)
    assert dialect.new_kinds == () and dialect.arena.arena <= arena
    assert dialect.macs[1] <= macs * dialect.macs[0]
    assert same_bits(data, dialect.data, runtimes=("TFLM",)) == []
    portable = portable_plan(data, SCHEMES[name], options)
    assert portable.new_kinds == ("CONCATENATION", "SLICE")
    assert same_bits(data, portable.data) == []
    assert api.arena(portable.data).arena == portable.arena.arena


def test_the_dialect_is_read_only_when_asked_for():
    data = published("vww_96_int8")
    options = MemoryOptions(order="file", time_limit=5.0)
    made = dialect_plan(data, SCHEMES["vww_96_int8"], options).data
    with pytest.raises(api.ModelError, match="nothing writes"):
        read_model(made)
    views = [t for t in read_model(made, dialect=True).tensors() if t.is_view]
    assert views and all(t.producer is None and t.consumers for t in views)
