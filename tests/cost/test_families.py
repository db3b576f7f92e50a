"""A family of kernels does what its loops say, and leaves the rest to the family it is based on."""

import pickle

import pytest

from tflm_planner.cost.case import Case, Operand
from tflm_planner.cost.families import FAMILIES, KernelFamily
from tflm_planner.cost.kinds import Work
from tflm_planner.cost.profiles import all_profiles, read_profiles

REFERENCE = FAMILIES["reference"]


def conv(type: str) -> Case:
    """A CONV_2D of 3x3 over 8 x 8 pixels, from 4 channels to 16."""
    x, y = (Operand(type, (1, 8, 8, channels), False, 1) for channels in (4, 16))
    weights = Operand("float32" if type == "float32" else "int8", (16, 3, 3, 4), True, 16)
    return Case("CONV_2D", (x, weights), (y,), (("strideH", 1), ("strideW", 1)))


def total(kind: str, type: str) -> Case:
    x = Operand(type, (1, 8, 8, 4), False, 1)
    return Case(kind, (x, x), (x,))


def test_what_a_family_leaves_out_or_refuses_is_its_base_s() -> None:
    base = KernelFamily("base", {"ADD": lambda case: Work("base", {}, 1)})
    refusing = {"ADD": lambda case: Work("own", {}, 2) if case.data.type == "int8" else None}
    family = KernelFamily("family", refusing, base)
    assert family.work_of(total("ADD", "int8")).path == "own"
    assert family.work_of(total("ADD", "int16")).path == "base"
    assert family.work_of(total("MUL", "int8")).path == "other"


@pytest.mark.parametrize("name", ["plain", "dsp", "mve", "pie-s3"])
def test_libraries_of_integers_leave_floats_to_the_reference_kernels(name: str) -> None:
    own, reference = FAMILIES[name].work_of(conv("int8")), REFERENCE.work_of(conv("int8"))
    assert own.counts != reference.counts and own.macs == reference.macs == 64 * 9 * 4 * 16
    assert FAMILIES[name].work_of(conv("float32")) == REFERENCE.work_of(conv("float32"))


def test_every_family_has_constants() -> None:
    profiles = [*all_profiles().values(), *read_profiles().values()]
    assert {profile.family for profile in profiles} == {*FAMILIES.values()}


def test_a_family_can_be_sent_to_another_process() -> None:
    """With a target whose latencies were measured."""
    for family in FAMILIES.values():
        sent = pickle.loads(pickle.dumps(family))
        for case in (conv("int8"), conv("float32"), total("ADD", "int8")):
            assert sent.work_of(case) == family.work_of(case)
