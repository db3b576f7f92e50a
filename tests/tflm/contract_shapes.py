"""Small shapes that meet every branch of every kernel, and at which distances they are safe."""

from itertools import product

import pytest

from tests.tflm.kernel_loops import (
    Shape,
    depthwise_mve,
    kernel,
    safe_distances,
)
from tflm_planner.tflm.kernels import KernelBuild, known_builds
from tflm_planner.tflm.kernels.libraries.cmsis_nn.access_orders import MVE

LIBRARIES = pytest.mark.parametrize("library", known_builds(), ids=lambda library: library.name)


def grid() -> list[Shape]:
    """Small shapes that meet every branch of every kernel."""
    found = [
        Shape("conv", 5, 4, ci, co, k, k, s, s, same=same)
        for ci, co, k, s, same in product((2, 3), (2, 3, 5), (1, 3), (1, 2), (True, False))
    ]
    found += [
        Shape(kind, 5, 5, c, c, k, k, s, s, same=same)
        for kind, c, k, s, same in product(
            ("depthwise", "max", "average"), (3, 6), (2, 3), (1, 2), (True, False)
        )
    ]
    found += [
        Shape("conv", 4, 5, 4, 4, 3, 3, groups=2),
        Shape("conv", 5, 4, 4, 8, 3, 2, groups=4),
        Shape("conv", 3, 3, 6, 6, 1, 1, groups=3),
        Shape("conv", 6, 5, 3, 3, 3, 3, dh=2, dw=2),
        Shape("conv", 4, 3, 3, 2, dh=2, dw=2),
        Shape("conv", 5, 7, 3, 4, 5, 3, 2, 3),
        Shape("conv", 1, 13, 4, 4, 1, 5),
        Shape("conv", 1, 14, 4, 3, 1, 3, sw=2),
        Shape("conv", 1, 13, 4, 5, 1, 4, same=False),
        Shape("conv", 1, 3, 4, 4, 1, 5),
        Shape("conv", 1, 11, 4, 5, 1, 5),
        Shape("conv", 1, 11, 4, 2, 1, 7),
        Shape("conv", 1, 12, 4, 3, 1, 4),
        Shape("conv", 2, 2, 3, 1),
        Shape("conv", 3, 3, 2, 1),
        Shape("conv", 3, 4, 3, 3, 3, 3, batch=2),
        Shape("conv", 3, 3, 2, 3, batch=2),
        Shape("conv", 1, 5, 3, 5, sh=2, batch=3),
        Shape("conv", 1, 4, 5, 2, sh=2, batch=4),
        Shape("conv", 1, 1, 4, 3, sh=2, batch=5),
        Shape("conv", 5, 4, 3, 4, sh=2, sw=2, batch=2),
        Shape("conv", 4, 4, 2, 3, 3, 3, element=2),
        Shape("conv", 4, 4, 3, 3, element=2),
        Shape("conv", 4, 4, 2, 3, 3, 3, element=4),
        Shape("depthwise", 4, 4, 3, 6, 3, 3),
        Shape("depthwise", 4, 4, 2, 8, 3, 3),
        Shape("depthwise", 5, 4, 3, 3, 3, 3, dh=2, dw=2),
        Shape("depthwise", 5, 4, 1, 4, 3, 3),
        Shape("depthwise", 2, 3, 130, 130, 3, 3),
        Shape("depthwise", 4, 4, 3, 3, 3, 3, element=2),
        Shape("depthwise", 3, 3, 3, 3, 3, 3, batch=2),
        Shape("max", 4, 4, 3, 3, 3, 3, element=2),
        Shape("average", 4, 4, 18, 18, 3, 3),
        Shape("average", 4, 4, 9, 9, 3, 3, element=2),
        Shape("max", 3, 3, 3, 3, 2, 2, batch=2),
    ]
    return found


SHAPES = grid()


def really_safe(shape: Shape, library: KernelBuild, distances: range) -> list[bool]:
    """By the loops written out; both of them, where the compiler chooses."""
    safe = safe_distances(shape, kernel(shape, library.name), distances)
    if shape.kind == "depthwise" and shape.ci == 1 and library is MVE:
        other = depthwise_mve if shape.co == 1 else lambda s: kernel(s, "cmsis-nn")
        others = safe_distances(shape, other(shape), distances)
        safe = [a and b for a, b in zip(safe, others, strict=True)]
    return safe
