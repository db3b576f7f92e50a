"""Compiles the kernels once for an installation, in child processes side by side, while the parent
goes on; processes that start later load the machine code from disk.

    parent   start ---- reads, orders ---- ready? ---- packs       a stamp file beside the machine
    child      |------- compiles exact ---->|                      code says that it is complete
    child      |--- compiles climbing -->|

If a child fails, the parent compiles the code when it needs it. This module knows names of modules,
each with a function `warm_up` that calls all its compiled functions once; it must not know what
they compute.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tflm_planner.support.children import ChildProcess, start_module
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop

_POLL_SECONDS = 0.05
"""Seconds between two polls of a child."""


@dataclass(frozen=True)
class CompiledModules:
    """The modules that one child compiles, by name."""

    modules: tuple[str, ...]

    @property
    def stamp(self) -> Path:
        """The file whose existence says that all modules are compiled, for these sources, this
        numba and this processor."""
        import llvmlite.binding
        import numba

        from tflm_planner.memory.allocators import exact_kernel
        from tflm_planner.memory.allocators.machine_code import folder_of

        facts = [numba.__version__, sys.version, str(llvmlite.binding.get_host_cpu_name())]
        specs = [find_spec(name) for name in self.modules]
        others = [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
        for path in (*others, *sorted(Path(__file__).parent.glob("*.py"))):
            state = path.stat()
            facts += [path.name, str(state.st_mtime_ns), str(state.st_size)]
        facts += self.modules
        name = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
        return folder_of(exact_kernel.search) / f"tflm_planner.{name}.compiled"


EXACT = CompiledModules(("tflm_planner.memory.allocators.exact",))
CLIMBING = CompiledModules(("tflm_planner.memory.allocators.packing",))

_known: set[CompiledModules] = set()
"""Groups that this process knows to be compiled, or has already tried to compile."""
_children: dict[CompiledModules, ChildProcess] = {}


def start(groups: Sequence[CompiledModules]) -> None:
    """Begin to compile the groups that are not compiled yet."""
    for group in groups:
        if group in _known or group in _children:
            continue
        if group.stamp.exists():
            _known.add(group)
            continue
        _children[group] = start_module(
            [f"{__package__}.compile_worker", *group.modules], subprocess.DEVNULL
        )


def ready(groups: Sequence[CompiledModules], stop: Stop, on_progress: Progress = silent) -> bool:
    """Wait until these groups are compiled; False if `stop` ended the wait."""
    start(groups)
    waiting = [group for group in groups if group in _children]
    if waiting:
        on_progress("compiling the packer, once per installation: some 10 s")
    for group in waiting:
        while _children[group].poll() is None:
            if stop.is_over:
                return False
            time.sleep(_POLL_SECONDS)
        _end(group)
    return True


def abandon() -> None:
    """End the children that still compile; what they had to do is done again when needed."""
    for group in list(_children):
        _children[group].kill()
        _end(group, compiled=False)


def _end(group: CompiledModules, *, compiled: bool = True) -> None:
    child = _children.pop(group)
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            stream.close()
    if compiled:
        _known.add(group)
