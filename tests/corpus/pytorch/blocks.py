"""The table of networks of PyTorch, and what they are built of. Nothing here imports torch: `t` is
the package, so that this is read where it is not installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Make = Callable[[Any], Any]
IMAGE, SERIES, SIGNAL = (1, 3, 24, 24), (1, 16, 8), (1, 6, 64)


@dataclass(frozen=True)
class TorchNetwork:
    """make: the module, given the package. words: how many there are; 0 if inputs are floats."""

    make: Make
    shape: tuple[int, ...]
    words: int = 0
    channels_last: bool = False


NETWORKS: dict[str, TorchNetwork] = {}
"""By name. Import `tests.corpus.pytorch.networks`, which fills it."""


def network(shape: tuple[int, ...], **fields: Any) -> Callable[[Make], Make]:
    """Register a maker under its own name. shape: of the input, channels first."""

    def register(make: Make) -> Make:
        NETWORKS[make.__name__] = TorchNetwork(make, shape, **fields)
        return make

    return register


def composed(t: Any, forward: Callable[..., Any], *parts: Any) -> Any:
    """A module that computes `forward(parts, x)`."""

    class Composed(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = t.nn.ModuleList(parts)

        def forward(self, x: Any) -> Any:
            return forward(self.parts, x)

    return Composed()


def conv(t: Any, before: int, after: int, size: int = 3, stride: int = 1, **fields: Any) -> Any:
    """A convolution, normalised, and an activation."""
    act = fields.pop("act", t.nn.ReLU)
    conv = t.nn.Conv2d(before, after, size, stride, size // 2, bias=False, **fields)
    return t.nn.Sequential(conv, t.nn.BatchNorm2d(after), act())


def classes(t: Any, channels: int) -> Any:
    """Five classes of an image on average."""
    nn = t.nn
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 5))
