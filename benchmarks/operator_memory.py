"""What each operator of some models must hold, as CSV: the field of Sudharsan's figure 2.

    python benchmarks/operator_memory.py MODELS... > notebooks/operator_memory.csv

Bytes of operands, of results, and of what a later operator still reads, in the file's own order.
`notebooks/papers.ipynb` draws inception_v1 and squeezenet_11 of the zoo (`python -m zoo.make`).
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from tflm_planner.pipeline import read_only
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target

TARGET = "x86-64/wheel"


def main() -> None:
    """Write the rows of all models."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    kernels = kernels_of(load_target(TARGET))
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["model", "operator", "input_bytes", "output_bytes", "other_bytes"])
    for path in parser.parse_args().models:
        for step in read_only.inspect(path, kernels).map.steps:
            sizes = (step.input_bytes, step.output_bytes, step.other_bytes)
            table.writerow([path.stem, step.operator, *sizes])


if __name__ == "__main__":
    main()
