"""What LiteRT computes of a model: the shapes of all its tensors, and its outputs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tflm_planner.model.ir import Model
from tflm_planner.verification.compare import VerifyOptions, write_temporary
from tflm_planner.verification.inputs import input_sets
from tflm_planner.verification.runnable import why_untried
from tflm_planner.verification.session import RuntimeFailureError, Session
from tflm_planner.verification.workload import answer_limit

Shape = tuple[int, ...]


class Computed(NamedTuple):
    """What LiteRT computes of a model. shapes: of each tensor of the main graph, the same for all
    inputs; None for those that it does not know. outputs: their shapes and bytes, input after
    input."""

    shapes: list[Shape | None]
    outputs: list[tuple[Shape, bytes]]


def computed_on_litert(data: bytes, model: Model, inputs: int) -> Computed | None:
    """What LiteRT computes of the model in `data` from that many inputs; None if it does not run it
    or does not answer, or if shapes depend on the inputs."""
    options = VerifyOptions(runtimes=("LiteRT",))
    if why_untried(model, "LiteRT", options) is not None:
        return None
    tensors, limit = len(model.main.tensors), answer_limit(model, options.time_limit)
    seen: list[list[Shape | None]] = []
    outputs: list[tuple[Shape, bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "original.tflite"
        write_temporary([path], [data])
        with Session("LiteRT shapes", path, arena=0, outputs=tensors, time_limit=limit) as session:
            try:
                session.describe()
                for _, values in islice(input_sets(model.main, options.seed), inputs):
                    session.send(values)
                    shapes, *results = session.receive()
                    seen.append([None if s is None else _shape(s) for s in shapes])
                    outputs += [(_shape(r.shape), r.tobytes()) for r in results]
            except RuntimeFailureError:
                return None
    if not seen or any(shapes != seen[0] for shapes in seen):
        return None
    return Computed(seen[0], outputs)


def _shape(sizes: Iterable[Any]) -> Shape:
    return tuple(map(int, sizes))
