"""What a test needs that trains."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

needs_framework = pytest.mark.skipif(
    find_spec("tensorflow") is None and find_spec("torch") is None,
    reason="needs TensorFlow or PyTorch (extra codesign or codesign-torch)",
)
"""Not imported to find out: that takes seconds, and only slow tests need them."""
