"""A folder that grows to a heap of files gets folders of its own."""

from __future__ import annotations

from collections import Counter

from tests.support.package_trees import PACKAGE, package_trees

MOST = 25
"""Modules in one folder: as many as a reader takes in at a glance."""


def test_no_folder_is_a_heap():
    modules = Counter(path.relative_to(PACKAGE).parent.as_posix() for path in package_trees())
    assert len(modules) > 30, "the package was read"
    assert {folder: count for folder, count in modules.items() if count > MOST} == {}
