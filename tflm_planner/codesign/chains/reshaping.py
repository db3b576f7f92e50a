"""The operators on a late skip whose source has another shape than the result.

    source --> sums over windows --> zeros appended, or groups of channels added up --> result
               (stride > 1)          (more channels)    (fewer channels)

They have no weights to be learned, except a factor and an addend for each channel of the result if
the skip is scaled. These go into the last operator. Mendis et al. 2024 (DERO), section 4.2. It must
not know how operators are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tflm_planner.codesign.chains.chain import Layer, Shape, Step, depthwise


@dataclass(frozen=True, slots=True)
class SkipOperator:
    """One operator on a late skip. kind: "window" sums each channel over a window (of one pixel:
    the channel itself); "zeros" appends channels of zeros; "groups" adds channel i to channel i
    modulo the result's channels. layer: the convolution that computes it; None for zeros. shape:
    the shape of its result. is_scaled: whether it also multiplies each channel by a factor and adds
    an addend."""

    kind: Literal["window", "zeros", "groups"]
    layer: Layer | None
    shape: Shape
    is_scaled: bool = False


def reshaping(step: Step) -> tuple[SkipOperator, ...]:
    """The operators from a late skip's source to the summand; empty if the source itself is
    added."""
    assert step.source is not None and step.is_late, "no late skip ends here"
    width, goal = step.source[2], step.shape_out[2]
    is_scaled = step.layer.join == "scaled late sum"
    parts = [*_windows(step)]
    if width > goal:
        groups = Layer("conv", (1, 1), 1, width, goal)
        return (*parts, SkipOperator("groups", groups, step.shape_out, is_scaled))
    if width < goal:
        parts.append(SkipOperator("zeros", None, step.shape_out))
    if is_scaled and width == goal and parts:
        last = parts.pop()
        parts.append(SkipOperator("window", last.layer, last.shape, is_scaled=True))
    elif is_scaled:
        parts.append(
            SkipOperator("window", depthwise((1, 1), 1, goal), step.shape_out, is_scaled=True)
        )
    return tuple(parts)


def _windows(step: Step) -> Iterator[SkipOperator]:
    """Yield a sum over windows for each strided layer that the skip goes around."""
    assert step.source is not None, "no skip ends here"
    height, width, channels = step.source
    for layer in step.path:
        stride = layer.stride
        if stride == 1:
            continue
        kernel = (stride, stride) if layer.kernel == (1, 1) else layer.kernel
        height, width = -(-height // stride), -(-width // stride)
        yield SkipOperator("window", depthwise(kernel, stride, channels), (height, width, channels))
