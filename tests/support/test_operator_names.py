"""An operator's name stands where something is said of it alone: once for each topic.

What asks for a kind elsewhere asks for a set or a predicate that has a name (`CONVOLUTIONS`,
`ROW_WISE`, `SPELLABLE`, ...). A module that is to be added to the lists needs a reason of its own.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

import pytest

from tests.support.package_trees import PACKAGE, package_trees
from tflm_planner.tflm.kernels.operator_allocations import OPERATORS

KERNELS = "tflm/kernels/libraries"
FOR_ALL = {
    "codesign/networks/build.py": "makes it, for networks that do not exist yet",
    "model/check_operators.py": "the options, operands and shapes without which it is damaged",
    "model/new_model.py": "the version that files say they need",
    "ops/axes.py": "which axes of its result and its operands correspond",
    f"{KERNELS}/cmsis_nn/operators.py": "what its CMSIS-NN kernel takes in the arena",
    f"{KERNELS}/reference/operators.py": "what it takes in the arena",
}
CONVOLUTION = {
    "cost/families/cmsis_nn.py": "the loops of its CMSIS-NN kernel",
    "cost/families/esp_nn_s3.py": "the loops of its ESP-NN kernel",
    "cost/families/reference.py": "the loops of its reference kernel",
    "ops/macs.py": "its multiplications",
    "ops/roles.py": "which operand is its filter, which its bias",
    "ops/window.py": "the window that it slides, and its groups",
    f"{KERNELS}/cmsis_nn/access_orders.py": "in which order its CMSIS-NN kernel reads and writes",
    f"{KERNELS}/cmsis_nn/wide_sums.py": "the 32 bits in which its int16 sums may wrap around",
    f"{KERNELS}/cmsis_nn/faulty_sums.py": "the garbage in its groups without a bias",
    f"{KERNELS}/cmsis_nn/__init__.py": "since when its CMSIS-NN kernel reads biases of int32",
    f"{KERNELS}/reference/__init__.py": "that its reference kernel reads biases of int32",
    "tflm/lean/pool.py": "its parameters in memory, byte by byte",
    "tflm/resolver_methods.py": "its resolver method, which is not spelled as the schema's name",
    "model/draft.py": "the table of its options, for what is drafted",
    "transforms/spelling.py": "it can be written in rows, or dilated",
    "transforms/substitutes/convolve_rows.py": "it takes the scales that a product does not",
    "transforms/substitutes/fold_dilation.py": "one of parts of an image is dilated of the whole",
    "transforms/subsample.py": "of 1x1 with a stride, it leaves most pixels unread",
    "transforms/merge_moves.py": "such a stride belongs to the chain before it",
    "ops/terms/windows.py": "its rule in the proof",
}
SOFTMAX = {
    "codesign/networks/model_parts.py": "which layer of a network it is",
    "cost/moves.py": "its loops, which are the same in all libraries",
    "ops/pointwise.py": "its result may lie on its operand",
    f"{KERNELS}/esp_nn/scratch.py": "its scratch, which ESP-NN sizes by the wrong dimension",
    "ops/terms/reductions.py": "its rule in the proof",
    "tflm/refusals.py": "its kernel copies shapes, of six axes at most",
    "tflm/scales.py": "the scales of logits with which its Prepare aborts",
}
MOST = 26
"""Modules that name the operator that most of them do: CONCATENATION, which joins tiles, and whose
copies decide where a result may lie."""


@cache
def modules_by_text() -> Mapping[str, set[str]]:
    """Text -> modules of the package in which it stands by itself, not as a part of another."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in package_trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[node.value].add(path.relative_to(PACKAGE).as_posix())
    return found


@pytest.mark.parametrize(("kind", "own"), [("CONV_2D", CONVOLUTION), ("SOFTMAX", SOFTMAX)])
def test_every_module_that_names_an_operator_has_a_reason(kind: str, own: dict[str, str]) -> None:
    assert modules_by_text()[kind] == FOR_ALL.keys() | own.keys()
    assert all(reason for reason in (*FOR_ALL.values(), *own.values()))


def test_no_operator_is_named_in_more_modules() -> None:
    counts = {kind: len(modules_by_text()[kind]) for kind in OPERATORS}
    assert max(counts.values()) <= MOST, max(counts, key=lambda kind: counts[kind])
