"""Checks that the front and back of a split model together compute the same bits as the original.

The pair is run like one model: `pair_worker` feeds strips to it as an application would, image
after image on the same interpreters, so that leftovers of the previous image show.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tflm_planner.model.serde import read_model
from tflm_planner.support.progress import Progress, silent
from tflm_planner.transforms.row_loop.split_input import StripSchedule
from tflm_planner.verification.compare import (
    PACKAGES,
    SideBySide,
    VerifyOptions,
    write_temporary,
)  # fmt: skip
from tflm_planner.verification.inputs import dtype_of
from tflm_planner.verification.locate import Place
from tflm_planner.verification.session import RUNTIME_IMPORTS, Child
from tflm_planner.verification.stand_ins import as_registered, cleaned_up, first_choice
from tflm_planner.verification.verdict import CANNOT_RUN, NOT_AVAILABLE, RuntimeCheck, Verdict
from tflm_planner.verification.workload import answer_limit, roomy_arena


@dataclass(frozen=True)
class Pair:
    """The files of a split model. twin: the portable twin of a back in the TFLM dialect."""

    front: bytes
    back: bytes
    strips: StripSchedule
    twin: bytes | None = None


def verify_pair(
    original: bytes,
    pair: Pair,
    options: VerifyOptions | None = None,
    on_progress: Progress = silent,
) -> Verdict:
    """Compare original and pair on every runtime that is installed here. A back in the TFLM dialect
    runs on TFLM, and its portable twin runs on LiteRT."""
    options = options or VerifyOptions()
    model, about = read_model(original), json.dumps(describe_pair(pair))
    arena, outputs = roomy_arena(original, model), str(len(model.main.outputs))
    limit = answer_limit(model, options.time_limit)
    checks: list[RuntimeCheck] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        paths = {n: folder / f"{n}.tflite" for n in ("front", "back", "twin")}
        write_temporary(tuple(paths.values()), (pair.front, pair.back, pair.twin or pair.back))

        def compare(name: str, whole: bytes) -> RuntimeCheck:
            """Compare the pair on a runtime with `whole`, the original or what stands for it."""
            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "original.tflite"
            write_temporary([path], [as_registered(name, whole, model)])
            back = paths["back" if name == "TFLM" else "twin"]
            halves = [str(paths["front"]), str(back)]
            ways = (
                [f"{__package__}.worker", name, str(path), str(arena), outputs],
                [f"{__package__}.pair_worker", name, *halves, str(arena), outputs, about],
            )
            sessions = [
                stack.enter_context(Child(arguments, limit, RUNTIME_IMPORTS[name]))
                for arguments in ways
            ]
            return SideBySide(name, model, sessions, options, lambda _: Place()).compare()

        for name in (n for n in PACKAGES if n in options.runtimes):
            if importlib.util.find_spec(PACKAGES[name]) is None:
                checks.append(RuntimeCheck(name, NOT_AVAILABLE, 0, False, "not installed here"))
                continue
            on_progress(f"comparing on {name}")
            given = first_choice(name, original, model)
            check = compare(name, given)
            if name == "TFLM" and check.status == CANNOT_RUN and given is original:
                cleaned = cleaned_up(original)
                check = check if cleaned is None else compare(name, cleaned)
            checks.append(check)
    return Verdict(tuple(checks))


def describe_pair(pair: Pair) -> dict[str, Any]:
    """What an application must know about a pair: the fields of `StripSchedule`, shapes and
    types."""
    front, back = read_model(pair.front).main, read_model(pair.back, dialect=True).main
    halos = [front.inputs[index] for index, _ in pair.strips.states]
    boundary, room = back.inputs
    return {
        **asdict(pair.strips),
        "halo_shapes": [t.shape for t in halos],
        "halo_types": [str(dtype_of(t)) for t in halos],
        "boundary_shape": boundary.shape,
        "boundary_type": str(dtype_of(boundary)),
        "room": room.nbytes,
    }
