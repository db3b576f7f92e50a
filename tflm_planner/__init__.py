"""Makes TensorFlow Lite models fit microcontrollers: same bits, a fraction of the SRAM.

    import tflm_planner as tp
    tp.plan("vww.tflite", target="nano33ble", tile=tp.Tile(max_slowdown=1.1)).save("out.tflite")

The names below are the public interface (`pipeline/interface` documents them); the command is
`tflm-plan`. They are loaded when they are first asked for, so that importing the package, and
`tflm-plan --help`, take no time.
"""

from typing import TYPE_CHECKING, Any

from tflm_planner.support.version import __version__ as __version__

if TYPE_CHECKING:
    from tflm_planner.pipeline.inspection.inspect_model import Inspection
    from tflm_planner.pipeline.interface import (
        Planned,
        StreamedInput,
        Tile,
        arena,
        inspect,
        plan,
        stream_input,
        verify,
    )
    from tflm_planner.report.document import Report
    from tflm_planner.support.errors import (
        DeviceError,
        ModelError,
        OutputsDifferError,
        PlannerError,
        UnsoundPlanError,
        UsageError,
    )
    from tflm_planner.tflm.arena.predict import Arena
    from tflm_planner.tflm.targets import Target, load_target
    from tflm_planner.verification import Equality, Verdict

__all__ = [
    "Arena", "DeviceError", "Equality", "Inspection", "ModelError", "OutputsDifferError", "Planned",
    "PlannerError", "Report", "StreamedInput", "Target", "Tile", "UnsoundPlanError", "UsageError",
    "Verdict", "arena", "inspect", "load_target", "plan", "stream_input", "verify",
]  # fmt: skip

_HOMES = {
    "Arena": "tflm_planner.tflm.arena.predict",
    "Equality": "tflm_planner.verification",
    "Inspection": "tflm_planner.pipeline.inspection.inspect_model",
    "Report": "tflm_planner.report.document",
    "Target": "tflm_planner.tflm.targets",
    "load_target": "tflm_planner.tflm.targets",
    "Verdict": "tflm_planner.verification",
}
"""Where names live that are neither errors nor of the interface."""


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first asked for (PEP 562)."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    errors = "tflm_planner.support.errors"
    home = errors if name.endswith("Error") else "tflm_planner.pipeline.interface"
    found = getattr(import_module(_HOMES.get(name, home)), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
