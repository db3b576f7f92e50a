"""The table of hand-made models, and the few pieces most of them are built from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.models.build import Graph, Net


@dataclass(frozen=True)
class Handmade:
    """A model by its maker, and which runtimes run it to a meaningful result.

    TFLM loads some models whose features it ignores and computes nonsense; that is not running.
    """

    make: Callable[[], bytes]
    runs_on_litert: bool
    runs_on_tflm: bool


def is_refused(name: str) -> bool:
    """Whether nothing is planned for a hand-made model that LiteRT runs: the hybrid one, and those
    whose zeros are left out, which TFLM reads as if they were dense."""
    return name == "dynamic_range" or name.startswith("sparse")


MODELS: dict[str, Handmade] = {}
"""Every hand-made model by name. Import `tests.models.handmade`, which fills it."""


def handmade(litert: bool = True, tflm: bool = True) -> Callable[..., Callable[[], bytes]]:
    """Register a maker under its own name."""

    def register(make: Callable[[], bytes]) -> Callable[[], bytes]:
        MODELS[make.__name__] = Handmade(make, litert, tflm)
        return make

    return register


IMAGE = (1, 6, 6, 4)
SCALE = 0.05


def noise(shape: tuple[int, ...], low: int = -127, high: int = 127, seed: int = 7) -> np.ndarray:
    """Draw integers from low..high, both included; the same for the same arguments."""
    return np.random.default_rng([seed, *shape]).integers(low, high + 1, shape)


def conv(
    graph: Graph, x: int, shape: tuple[int, ...], name: str = "conv", *, per_channel: bool = True
) -> int:
    """Append a 3x3 SAME int8 convolution of `x`, whose `shape` is given; return its output."""
    depth = shape[3]
    scales = np.linspace(0.6, 1.4, depth) / 800 if per_channel else np.float32(1 / 800)
    kernel = noise((depth, 3, 3, depth), seed=len(name))
    weights = graph.constant(f"{name}/filter", kernel, "int8", scale=scales)
    shift = noise((depth,), -9000, 9000, seed=len(name))
    bias = graph.constant(f"{name}/bias", shift, scale=SCALE * scales)
    out = graph.tensor(name, shape, scale=SCALE, zero=3)
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    graph.op("CONV_2D", [x, weights, bias], [out], "Conv2DOptions", version=3, **options)
    return out


def relu(graph: Graph, x: int, shape: tuple[int, ...], name: str = "relu") -> int:
    """Append a RELU of `x` and return its output."""
    out = graph.tensor(name, shape, scale=SCALE, zero=-60)
    graph.op("RELU", [x], [out], version=2)
    return out


def add(graph: Graph, x: int, y: int, shape: tuple[int, ...], name: str = "add") -> int:
    """Append an ADD and return its output."""
    out = graph.tensor(name, shape, scale=2 * SCALE, zero=-5)
    graph.op("ADD", [x, y], [out], "AddOptions", version=2)
    return out


def start(shape: tuple[int, ...] = IMAGE, description: str = "hand-made") -> tuple[Net, Graph, int]:
    """Return a net with one graph that has one int8 input."""
    net = Net(description)
    graph = net.graph()
    return net, graph, graph.input("x", shape, scale=SCALE, zero=2)
