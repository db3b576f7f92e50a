"""Limits what a runtime may be asked to run: by the file's size, regardless of what it declares."""

from __future__ import annotations

from tflm_planner.model.ir import Model
from tflm_planner.ops.macs import macs
from tflm_planner.support.units import align_up
from tflm_planner.tflm.unread import why_unread
from tflm_planner.verification.inputs import can_make_values
from tflm_planner.verification.turns import Runs, runs_of

_MINIMUM_INPUTS = 2
MOST_MACS = 3_000_000_000
"""About 20 s of reference kernels, at 150 million per second."""
MACS_BESIDE_TERMS = 300_000_000
"""The same where terms have proved the models equal for every input, so that inputs only show that
the runtimes agree. All eight inputs of networks up to MobileNetV2 0.35 at 144x144; two of 1.0 at
224x224, whose comparisons then take half of the seconds (docs/proof.md)."""
_MACS_A_BYTE = 4
"""The cost of making, moving and comparing one byte of activations, in multiply-accumulates."""
_MOST_BYTES, _FREE_BYTES, _ACTIVATION_BYTES_PER_FILE_BYTE = 1 << 28, 1 << 24, 64
"""Limits on the bytes of all activations: the largest limit, the limit for any file, and what each
byte of the file adds. A file of a kilobyte can declare tensors of gigabytes, which a runtime is not
asked to hold."""
_RUN_MACS_A_BYTE = 2048
"""Multiply-accumulates of one run that each byte of the file allows, in addition to `MOST_MACS` for
any file. Classifiers need fewer than 800 per byte; networks with few weights and large images
(upscaling, segmentation) need more."""
_FREE_MACS = 1 << 28
"""Multiply-accumulates of all inputs together that any file may need: about two seconds."""
_OPEN_SECONDS = 30.0
"""Limit for one answer of a model in which an input decides how often a loop runs, perhaps
forever."""


def why_unfit(model: Model, runtime: str) -> str | None:
    """Why it is pointless to run the model on this runtime; None if it is not."""
    if not can_make_values(model.main):
        return "no values can be made for its inputs"
    most = min(_FREE_BYTES + _ACTIVATION_BYTES_PER_FILE_BYTE * model.file_size, _MOST_BYTES)
    if (size := _activations(model)) > most:
        return (
            f"its activations of {size:,} bytes are too large to be run here ({most:,} for a file "
            f"of {model.file_size:,})"
        )
    runs = runs_of(model)
    if runs.too_many:
        where = "" if runs.longest is None else f" (in {runs.longest.label})"
        return (
            f"its loops run more than {runs.most:,} operators, turns counted{where}: too many to "
            f"be run here for a file of {model.file_size:,} bytes; fewer turns of more rows each "
            "take fewer"
        )
    most = MOST_MACS + _RUN_MACS_A_BYTE * model.file_size
    if (work := macs_of(model, runs)) > most:
        return (
            f"its {work:,} multiply-accumulates are too many to be run here ({most:,} for a file "
            f"of {model.file_size:,} bytes)"
        )
    if (moved := bytes_made(model, runs)) > most:
        return (
            f"its loops make {moved:,} bytes of activations: too many to be run here ({most:,} for "
            f"a file of {model.file_size:,} bytes)"
        )
    return why_misread(model) if runtime == "TFLM" else why_miscomputed(model)


def why_miscomputed(model: Model) -> str | None:
    """Why LiteRT's reference kernels compute the model wrong, planned or not, so that a comparison
    proves nothing; None if they do not. SUM of int16 gives only -1 (ai-edge-litert 2.3), while the
    optimised kernels give the sums."""
    for op in model.ops():
        if op.kind == "SUM" and op.outputs[0].type_name == "int16":
            return f"LiteRT's reference kernel is known to compute SUM of int16 wrong ({op.label})"
    return None


def why_misread(model: Model) -> str | None:
    """Why TFLM would load the model and compute nonsense, because it ignores some features; None if
    it would not."""
    unread = ((t, why_unread(t)) for t in model.tensors())
    return next((f"{why} ({t.name!r})" for t, why in unread if why is not None), None)


def answer_limit(model: Model, seconds: float) -> float:
    """Seconds that a runtime may take for one answer of a model: `seconds`, but less if an input
    decides how often a loop runs."""
    return seconds if runs_of(model).decided else min(seconds, _OPEN_SECONDS)


def macs_of(model: Model, runs: Runs) -> int:
    """Multiply-accumulates of one invoke, including all iterations of loops."""
    return sum(runs.times.get(g, 1) * sum(map(macs, g.ops)) for g in model.graphs)


def _activations(model: Model) -> int:
    return sum(t.nbytes for t in model.tensors() if not t.is_constant)


def bytes_made(model: Model, runs: Runs) -> int:
    """Bytes of activations that one invoke makes, including all iterations of loops."""
    return sum(
        runs.times.get(g, 1) * sum(t.nbytes for t in g.tensors if not t.is_constant)
        for g in model.graphs
    )


def roomy_arena(data: bytes, model: Model) -> int:
    """Arena bytes that certainly suffice for TFLM on x86-64: separate memory for every tensor, and
    a generous tail."""
    tensors = list(model.tensors())
    activations = _activations(model)
    channels = sum(max(t.shape or (1,)) for t in tensors if t.is_constant)
    # A multiple of 16: the tail is aligned downward from the end.
    tail = len(data) + 64 * channels + 1024 * len(tensors)
    return align_up(2 * activations + tail + (1 << 20))


def inputs_within(model: Model, inputs: int, most_macs: int) -> int:
    """How many of `inputs` inputs to compare. It is limited by counted work, not by time, so that
    every machine compares the same inputs."""
    runs = runs_of(model)
    work = macs_of(model, runs) + _MACS_A_BYTE * bytes_made(model, runs)
    for_file = _FREE_MACS + _RUN_MACS_A_BYTE * model.file_size
    fitting = min(most_macs, for_file) // max(work, 1)
    return min(inputs, max(fitting, _MINIMUM_INPUTS))


def work_in_words(model: Model) -> str:
    """The work of one invoke, in words."""
    runs = runs_of(model)
    products, size = macs_of(model, runs), bytes_made(model, runs)
    return f"{products:,} multiply-accumulates and {size:,} bytes of activations"
