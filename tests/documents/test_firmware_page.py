"""The application and the sketch of docs/firmware.md, compiled with what `export` writes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import CNN, ROOT
from tflm_planner.device.cpp.export import export
from tflm_planner.tflm.targets import load_target

STUBS = ROOT / "tests" / "stubs"
PAGE = (ROOT / "docs" / "firmware.md").read_text()
MAIN = """
#include <cstdint>
bool model_run(const std::int8_t* input, std::int8_t* scores);
int main() {
  setup();
  const std::int8_t input = 21;
  std::int8_t score = 0;
  return model_run(&input, &score) ? score : 1;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_application_and_the_sketch_compile_and_run(tmp_path: Path) -> None:
    files = export(CNN.read_bytes(), "vww", load_target("cortex-m4/cmsis-nn"))
    methods = sorted(set(re.findall(r"resolver\.(Add\w+)\(\)", files["vww_op_resolver.h"])))
    application, sketch = re.findall(r"^```cpp\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[:2]
    files |= {
        "model.cpp": application,
        "sketch.cpp": f'#include "Arduino.h"\n{sketch}{MAIN}',
        "stub_methods.inc": "\n".join(f"STUB_METHOD({method})" for method in methods),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    includes = [f"-I{folder}" for folder in (STUBS / "application", STUBS / "resolver", tmp_path)]
    sources = ["model.cpp", "sketch.cpp", "vww_model_data.cpp"]
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", *includes, *sources]
    subprocess.run([*command, "-o", "program"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (42, b"")
