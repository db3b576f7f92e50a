"""The board's portable core: built with g++, run under sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.arduino import build

pytestmark = pytest.mark.skipif(build.compiler() is None, reason="there is no g++ here")


@pytest.mark.slow
def test_core_passes_its_tests_and_the_shared_vectors_and_survives_fuzzing(tmp_path: Path) -> None:
    build.run_core_test(tmp_path)
    build.run_fuzz(tmp_path, 3)


@pytest.mark.slow
def test_lean_wrappers_keep_every_bit(tmp_path: Path) -> None:
    build.run_lean(tmp_path, 1)


def test_core_knows_no_header_of_a_platform() -> None:
    for path in [*build.core_sources(), *build.SOURCES.glob("*.h")]:
        text = path.read_text()
        assert not any(name in text for name in ("Arduino.h", "mbed.h", "esp_", "freertos")), (
            path.name
        )
