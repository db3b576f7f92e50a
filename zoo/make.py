"""Build models of the zoo: `python -m zoo.make [names...] --out zoo/models`.

Needs TensorFlow (`pip install '.[zoo]'`). Prints, for each model, its parameters and
MACs beside the published ones, and what `zoo.probe` found out. Errors are: counts outside the
stated tolerance, a runtime that fails, outputs that hardly vary (nothing could be proved with
them). Each model is built in a process of its own, so that memory is given back.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

SEED = 2024


def build(name: str, folder: Path) -> int:
    """Build one model into `folder`, then count; return the number of complaints."""
    # First of all, because it sets what TensorFlow reads while it is imported.
    from zoo.recipe import bake  # isort: skip
    from zoo.count import counts
    from zoo.networks import NETWORKS

    entry = NETWORKS[name]
    content = bake(entry.build, SEED, deviation=entry.deviation, quantised=entry.quantised)
    (folder / f"{name}.tflite").write_bytes(content)
    # Afterwards, so that building more models cannot change the bytes of this one.
    facts = counts(entry)
    print(json.dumps({"model": name, **facts}), flush=True)
    return len(facts["wrong"])


def _make(name: str, folder: Path, run: bool) -> int:
    start = time.perf_counter()
    command = [sys.executable, "-m", "zoo.make", name, "--out", str(folder), "--here"]
    status = subprocess.run(command, check=False).returncode
    path = folder / f"{name}.tflite"
    print(f"{path}: status {status} after {time.perf_counter() - start:.0f} s", flush=True)
    if run and path.exists():
        from zoo.probe import complaints, probe

        facts = probe(path)
        print(json.dumps({"model": name, **facts}), flush=True)
        for complaint in complaints(facts):
            print(f"{name}: {complaint}", flush=True)
            status = 1
    return status


def main() -> int:
    """Parse the command line, build, probe, print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m zoo.make", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        help="models to build (default: all but the variants, which are only made when named)",
    )
    parser.add_argument("--out", type=Path, default=Path("zoo/models"), help="folder to write to")
    parser.add_argument("--no-probe", action="store_true", help="build only, run nothing")
    parser.add_argument("--here", action="store_true", help="build in this process, run nothing")
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.here:
        return int(sum(build(name, arguments.out) for name in arguments.names) > 0)
    import zoo.recipe  # noqa: F401  before Keras, which `zoo.networks` imports
    from zoo.networks import NETWORKS

    unknown = set(arguments.names) - set(NETWORKS)
    if unknown:
        parser.error(f"unknown model {', '.join(sorted(unknown))}; known: {', '.join(NETWORKS)}")
    names = arguments.names or [name for name, entry in NETWORKS.items() if not entry.variant]
    return int(sum(_make(name, arguments.out, not arguments.no_probe) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
