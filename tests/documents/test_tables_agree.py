"""Tables of several documents that show the same figures, held to the one that is measured:
docs/tiers.md, as `benchmarks/tiers.py` writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

TIERS = ROOT / "docs" / "tiers.md"
MODELS = {
    "MobileNetV1 0.25@96 (vww)": "vww_96_int8",
    "ResNet8": "pretrainedResnet_quant",
    "DS-CNN (kws)": "kws_ref_model",
    "MobileNetV2 0.30@80": "mobilenet_v2_030_80",
    "MobileNetV2 0.35@96": "mobilenet_v2_035_96",
    "MobileNetV2 0.35@144": "mobilenet_v2_035_144",
    "MobileNetV2 1.0@224": "mobilenet_v2_100_224",
    "MCUNet in3@176": "mcunet_in3_176",
    "MCUNet-like, squeeze-excite@224": "mcunet_like_se_224",
    "MnasNet-A1@224": "mnasnet_a1",
    "FBNet-A@224": "fbnet_a",
    "SqueezeNet 1.1@224": "squeezenet_11",
    "ResNet34@224": "resnet34",
    "tflite-micro issue 2513, int8": "issue_2513",
    "the same, float": "issue_2513_float",
    "BERT-Tiny, 512 tokens": "bert_tiny",
    "InceptionV1@224": "inception_v1",
    "PoseNet": "posenet",
    "DenseNet121@224": "densenet121",
    "DARTS cells@64": "darts",
    "randomly wired@96": "randwire",
    "NASNetMobile@224": "nasnet_mobile",
}
"""Rows of the documents' tables, by the name of the model in docs/tiers.md."""


def rows(page: Path, after: str = "") -> list[list[str]]:
    """The cells of the table that follows these words."""
    text = page.read_text("utf-8")
    lines = text[text.index(after) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    end = next((i for i, line in enumerate(lines) if i > start and not line.startswith("|")), None)
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[start + 2 : end]]


def measured(name: str) -> list[str]:
    """Of a Cortex-M4: model, operators, stock, order+plan, +overlap, own, slower, all, slower,
    MACs, L0, ..."""
    (row,) = [row for row in rows(TIERS, "## cortex-m4/cmsis-nn") if row[0] == name]
    return row


def arena(cell: str) -> str:
    return cell.partition(" (")[0]


def head(cell: str) -> str:
    return re.findall(r"\((.+)\)", cell)[0]


@pytest.mark.parametrize(
    "row", rows(ROOT / "docs" / "tiling.md", "| model | stock |"), ids=lambda row: row[0]
)
def test_the_table_of_tiles_and_loops(row: list[str]) -> None:
    of = measured(MODELS[row[0]])
    slower = [of[6].lstrip("+"), of[8].lstrip("+")]
    expected = [arena(of[2]), arena(of[4]), of[5], slower[0], arena(of[7]), slower[1], head(of[7])]
    assert row[1:] == [*expected, of[10], of[14]]


@pytest.mark.parametrize(
    "row", rows(ROOT / "README.md", "## What it does to real models"), ids=lambda row: row[0]
)
def test_the_table_of_the_readme(row: list[str]) -> None:
    """Its column "same firmware" is what the plain command reaches, a little more at most."""
    of = measured(MODELS[row[0]])
    assert [row[1], row[2], row[4]] == [arena(of[2]), arena(of[4]), arena(of[7])]
    own, plain = (int(cell.replace(",", "")) for cell in (of[5], row[3]))
    assert own <= plain <= 1.02 * own


@pytest.mark.parametrize(
    "row",
    [r for r in rows(ROOT / "docs" / "results.md", "| model |") if r[0] in MODELS],
    ids=lambda row: row[0],
)
def test_the_table_of_results(row: list[str]) -> None:
    of = measured(MODELS[row[0]])
    stock, _, planned = row[5].partition(" -> ")
    assert (row[2], row[3]) == (head(of[2]), head(of[4]))
    assert (stock, planned or stock) == (arena(of[2]), arena(of[4]))


def test_the_table_of_the_comparison() -> None:
    page = ROOT / "docs" / "comparison.md"
    table = {row[0]: row[1:4] for row in rows(page, "## The same files")}
    of = [measured(name) for name in ("vww_96_int8", "pretrainedResnet_quant", "kws_ref_model")]
    assert table["stock TFLM, Cortex-M4"] == [arena(row[2]) for row in of]
    assert table["tflm_planner, order and plan"] == [arena(row[4]) for row in of]
    readme = {row[0]: row[3] for row in rows(ROOT / "README.md", "## What it does to real models")}
    published = ("MobileNetV1 0.25@96 (vww)", "ResNet8", "DS-CNN (kws)")
    assert table["tflm_planner, same firmware"] == [readme[name] for name in published]
