"""Measures patches: receptive fields, the rows that a patch reads, and the multiplications that
patches repeat.

    image ---- layers of the stage, in p x p patches ----> result of the stage; the rest runs whole

    m rows of a layer's result read (m - 1) * stride + kernel rows of its operand

Lin et al. 2021 (MCUNetV2), section 3.1 and table 1. A stage consists of the first layers of a
chain. All its images must be square. It must not know how patches are executed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflm_planner.codesign.chains.chain import Chain, Layer, Step, steps
from tflm_planner.codesign.chains.sizes import size_of

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
    field, jump = 1, 1
    for layer in layers:
        if layer.kind in _MOVING:
            field += (layer.kernel[0] - 1) * jump
            jump *= layer.stride
    return field


def measure_patches(chain: Chain, layers: int, patches: int) -> Patched:
    """Measure the first `layers` layers of a chain in patches x patches. Raises ValueError if the
    result of the stage cannot be cut into equal patches, or if an image or window is not square."""
    stage = steps(chain)[:layers]
    if any(s.shape_in[0] != s.shape_in[1] or s.layer.kernel[0] != s.layer.kernel[1] for s in stage):
        raise ValueError(f"{chain.name}: patches are counted for squares only")
    side = stage[-1].shape_out[0]
    if side % patches:
        raise ValueError(f"{chain.name}: {side} rows cannot be cut into {patches} equal parts")
    whole = size_of(Chain(chain.name, chain.image, chain.layers[:layers])).macs
    rows = side // patches
    inner = clipped = 0
    spans = [(i * rows, (i + 1) * rows) for i in range(patches)]
    for step in reversed(stage):
        pixel_macs = _macs_of_pixel(step)
        inner += pixel_macs * (patches * rows) ** 2
        clipped += pixel_macs * sum(last - first for first, last in spans) ** 2
        if step.layer.kind in _MOVING:
            rows = (rows - 1) * step.layer.stride + step.layer.kernel[0]
            spans = [_operand_rows(step, *span) for span in spans]
    return Patched(rows, whole, inner, clipped)


def _macs_of_pixel(step: Step) -> int:
    """Multiplications for one pixel of a layer's result."""
    layer = step.layer
    if layer.kind != "conv":
        return 0
    return math.prod(layer.kernel) * (layer.channels_in // layer.groups) * layer.channels_out


def _operand_rows(step: Step, first: int, last: int) -> tuple[int, int]:
    """The rows of an operand, without padding, that rows [first, last) of the result read."""
    layer, size = step.layer, step.shape_in[0]
    kernel, stride = layer.kernel[0], layer.stride
    before = max((step.made[0] - 1) * stride + kernel - size, 0) // 2
    return max(first * stride - before, 0), min((last - 1) * stride + kernel - before, size)


def removable_blocks(chain: Chain, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last layer of each block between layers `first` and `last` that has a
    skip without projection around it. If such a block is removed, the channels still match."""
    for end, layer in enumerate(chain.layers[:last]):
        start = end + 1 - layer.skip
        if layer.skip and start >= first and not steps(chain)[end].is_projected:
            yield start, end
