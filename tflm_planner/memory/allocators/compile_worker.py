"""The child process that compiles kernels:
`python -m tflm_planner.memory.allocators.compile_worker MODULES...`; see `compiling`."""

from __future__ import annotations

import sys
from importlib import import_module

from tflm_planner.memory.allocators.compiling import CompiledModules


def main() -> None:
    """Compile the modules named on the command line, then write the stamp that says so."""
    group = CompiledModules(tuple(sys.argv[1:]))
    for name in group.modules:
        import_module(name).warm_up()
    group.stamp.touch()


if __name__ == "__main__":
    main()
