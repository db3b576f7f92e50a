"""Build models of the zoo: `python -m zoo.make [names...] --out zoo/models`.

Needs TensorFlow (`pip install tflm-planner[zoo]`). Prints, for each model, what `zoo.probe`
found out. A model whose outputs do not vary is an error: nothing could be proved with it.
"""

import argparse
import json
import sys
import time
from pathlib import Path

SEED = 2024


def main() -> int:
    """Parse the command line, build, probe, print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m zoo.make", description=__doc__)
    parser.add_argument("names", nargs="*", help="models to build (default: all)")
    parser.add_argument("--out", type=Path, default=Path("zoo/models"), help="folder to write to")
    parser.add_argument("--no-probe", action="store_true", help="build only, run nothing")
    arguments = parser.parse_args()

    from zoo.networks import NETWORKS
    from zoo.probe import probe
    from zoo.recipe import bake

    unknown = set(arguments.names) - set(NETWORKS)
    if unknown:
        parser.error(f"unknown model {', '.join(sorted(unknown))}; known: {', '.join(NETWORKS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    status = 0
    for name in arguments.names or NETWORKS:
        start = time.perf_counter()
        path = arguments.out / f"{name}.tflite"
        path.write_bytes(bake(NETWORKS[name], SEED))
        print(f"{path}: built in {time.perf_counter() - start:.0f} s", flush=True)
        if not arguments.no_probe:
            facts = probe(path)
            print(json.dumps(facts), flush=True)
            spread = facts["spread"]
            dull = not isinstance(spread, dict) or spread.get("logit_range_between_inputs", 0) < 20
            status |= int(dull)
    return status


if __name__ == "__main__":
    sys.exit(main())
