"""Tells whether an installed runtime can run a model at all, by running the first input of the
verification. It is asked before a search, so that no search runs whose results could not be
verified. It compares nothing.
"""

from __future__ import annotations

import importlib.util
import platform
import tempfile
from importlib import metadata
from pathlib import Path

from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.verification.compare import (
    PACKAGES,
    VerifyOptions,
    write_temporary,
)  # fmt: skip
from tflm_planner.verification.inputs import input_sets
from tflm_planner.verification.session import RuntimeFailureError, RuntimeTimeoutError, Session
from tflm_planner.verification.stand_ins import as_registered, cleaned_up, first_choice
from tflm_planner.verification.workload import answer_limit, roomy_arena, why_unfit


def is_installed(runtime: str) -> bool:
    """Whether a runtime is installed."""
    return importlib.util.find_spec(PACKAGES[runtime]) is not None


def any_installed() -> bool:
    """Whether any runtime is installed."""
    return any(map(is_installed, PACKAGES))


def installed_versions() -> tuple[str, ...]:
    """Python and the packages of the runtimes that are here, each with its version, as in
    "ai_edge_litert 2.3.0"; by its name alone where it says none."""
    packages = [PACKAGES[runtime] for runtime in PACKAGES if is_installed(runtime)]
    return (f"Python {platform.python_version()}", *map(_with_version, packages))


def _with_version(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package


def why_untried(model: Model, runtime: str, options: VerifyOptions) -> str | None:
    """Why `runtime` is not even asked to run a model. None if it is, so that a failure is its
    own."""
    if runtime not in options.runtimes:
        return "not asked"
    if not is_installed(runtime):
        return "not installed here"
    return why_unfit(model, runtime)


def why_unable(data: bytes, runtime: str, options: VerifyOptions | None = None) -> str | None:
    """Why `runtime` cannot run the model in `data`, nor, on TFLM, the same cleaned up. None if it
    can, and also if it does not answer in time: the machine may be busy, and the later verification
    reports a model that hangs."""
    options, model = options or VerifyOptions(), read_model(data)
    untried = why_untried(model, runtime, options)
    if untried is not None:
        return untried
    why = _why_it_fails(first_choice(runtime, data, model), model, runtime, options)
    cleaned = cleaned_up(data) if why is not None and runtime == "TFLM" else None
    if cleaned is None or _why_it_fails(cleaned, model, runtime, options) is not None:
        return why
    return None


def _why_it_fails(data: bytes, model: Model, runtime: str, options: VerifyOptions) -> str | None:
    """What `runtime` says of a first invoke of a file of `model`; None if it runs or hangs."""
    label, values = next(input_sets(model.main, options.seed))
    arena, outputs = options.arena or roomy_arena(data, model), len(model.main.outputs)
    limit = answer_limit(model, options.time_limit)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "original.tflite"
        write_temporary([path], [as_registered(runtime, data, model)])
        session = Session(runtime, path, arena=arena, outputs=outputs, time_limit=limit)
        with session:
            doing = ""
            try:
                session.describe()
                doing = f"{label} input: "
                session.send(values)
                session.receive()
            except RuntimeTimeoutError:
                return None
            except RuntimeFailureError as failure:
                return f"{doing}{failure}"
    return None
