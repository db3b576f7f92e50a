"""Measures patches: receptive fields, the rows that a patch reads, and the multiplications that
patches repeat.

    image ---- layers of the stage, in p x p patches ----> result of the stage; the rest runs whole

    m rows of a layer's result read (m - 1) * stride + kernel rows of its operand

Lin et al. 2021 (MCUNetV2), section 3.1 and table 1. A stage consists of the first layers of a
chain. All its images must be square. It must not know how patches are executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from tflm_planner.codesign.chains.chain import Chain, Layer, Step, steps
from tflm_planner.codesign.chains.sizes import macs_of

_MOVING = ("conv", "max_pool", "average_pool")
"""The layers whose window and stride change the receptive field."""


@dataclass(frozen=True, slots=True)
class Patched:
    """A stage that is computed in patches. side: rows of the image that an inner patch reads.
    whole: multiplications of the stage without patches. inner: its multiplications in patches, if
    all patches are counted as inner ones, as in table 1. clipped: the real number of
    multiplications in patches, since patches at the border read fewer rows."""

    side: int
    whole: int
    inner: int
    clipped: int

    @property
    def overhead(self) -> float:
        """Repeated multiplications relative to `whole`, counted as in table 1."""
        return self.inner / self.whole - 1


def receptive_field(layers: Sequence[Layer]) -> int:
    """How many rows of the image one row of the last result depends on."""
    with_jumps = zip(layers, jumps(layers), strict=True)
    return 1 + sum((x.kernel[0] - 1) * jump for x, jump in with_jumps if x.kind in _MOVING)


def jumps(layers: Sequence[Layer]) -> list[int]:
    """For each layer, how many rows of the image lie between two adjacent rows that it reads."""
    strides = (layer.stride if layer.kind in _MOVING else 1 for layer in layers)
    return list(accumulate(strides, mul, initial=1))[:-1]


def measure_patches(chain: Chain, layers: int, patches: int) -> Patched:
    """Measure the first `layers` layers of a chain in patches x patches. Raises ValueError if the
    result of the stage cannot be cut into equal patches, or if an image or window is not square."""
    stage = steps(chain)[:layers]
    if any(s.shape_in[0] != s.shape_in[1] or s.layer.kernel[0] != s.layer.kernel[1] for s in stage):
        raise ValueError(f"{chain.name}: patches are counted for squares only")
    side = stage[-1].shape_out[0]
    if side % patches:
        raise ValueError(f"{chain.name}: {side} rows cannot be cut into {patches} equal parts")
    whole = sum(map(macs_of, stage))
    rows = side // patches
    inner = clipped = 0
    spans = [(i * rows, (i + 1) * rows) for i in range(patches)]
    for step in reversed(stage):
        macs, pixels = macs_of(step), step.made[0] * step.made[1]
        inner += macs * (patches * rows) ** 2 // pixels
        clipped += macs * sum(last - first for first, last in spans) ** 2 // pixels
        if step.layer.kind in _MOVING:
            rows = (rows - 1) * step.layer.stride + step.layer.kernel[0]
            spans = [_operand_rows(step, *span) for span in spans]
    return Patched(rows, whole, inner, clipped)


def _operand_rows(step: Step, first: int, last: int) -> tuple[int, int]:
    """The rows of an operand, without padding, that rows [first, last) of the result read."""
    layer, size = step.layer, step.shape_in[0]
    kernel, stride = layer.kernel[0], layer.stride
    before = max((step.made[0] - 1) * stride + kernel - size, 0) // 2
    return max(first * stride - before, 0), min((last - 1) * stride + kernel - before, size)


def removable_blocks(chain: Chain, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last layer of each block between layers `first` and `last` that has a
    skip without projection around it. If such a block is removed, the channels still match."""
    for end, step in enumerate(steps(chain)[:last]):
        start = end + 1 - step.layer.skip
        if step.layer.skip and start >= first and not step.is_projected:
            yield start, end
