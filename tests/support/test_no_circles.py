"""No modules import each other in a circle, not even inside functions or for types alone."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def order_of(imports: dict[str, set[str]]) -> list[str]:
    """Modules, each behind what it imports. Raises CycleError, with the circle."""
    return list(TopologicalSorter(imports).static_order())


def test_imports_go_one_way() -> None:
    graph = grimp.build_graph("tflm_planner", cache_dir=None)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    assert len(imports) > 300 and sum(map(len, imports.values())) > 1500, "the package was read"
    order = order_of(imports)
    assert order.index("tflm_planner.model.ir") < order.index("tflm_planner.model.serde")


def test_a_circle_is_found() -> None:
    with pytest.raises(CycleError):
        order_of({"a": {"b"}, "b": {"c"}, "c": {"a"}})
