"""Replays planned models where the planner and TFLM put them: see `tests/model_replay.py`."""

from __future__ import annotations

from tests.model_replay import Place, Ranges, replay
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.kernels.scratch import reference_scratch
from tflm_planner.tflm.liveness import timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.transforms.attach_plan import carried_plan


def replay_planned(data: bytes, scratch: Ranges | None = None) -> list[str]:
    """What goes wrong by the plan that `data` carries; where it carries none, as a plan would have
    cost memory, by TFLM's own placement."""
    if carried_plan(read_model(data)) is None:
        return replay(data, *placement(data))
    return replay(data, scratch=scratch)


def placement(data: bytes) -> tuple[dict[Place, int], Ranges]:
    """Where TFLM puts every tensor and every scratch buffer of a planned model, as predicted."""
    model = read_model(data)
    line = timeline_of(model, reference_scratch)
    at = placement_of(line, carried_plan(model)).offsets
    tensors = {
        t: (g, i) for g, graph in enumerate(model.graphs) for i, t in enumerate(graph.tensors)
    }
    ops = {o: (g, i) for g, graph in enumerate(model.graphs) for i, o in enumerate(graph.ops)}
    offsets = {tensors[t]: o for t, o in zip(line.planned, at, strict=False)}
    scratch: dict[Place, list[tuple[int, int]]] = {}
    for s, offset in zip(line.scratch, at[len(line.planned) :], strict=True):
        scratch.setdefault(ops[s.op], []).append((offset, s.size))
    return offsets, scratch
