"""The table of networks. It must not know TensorFlow: tests are collected without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

How = Literal["export", "function"]
"""What the converter is given: the model exported, as `from_keras_model` does it, which leaves the
batch free even where `Input(batch_size=1)` fixes it, or a function of a fixed shape."""


@dataclass(frozen=True)
class Network:
    """make: the Keras model, or the tf.Module with a `serve` function. how: it is converted."""

    name: str
    make: Callable[[], Any]
    how: How


NETWORKS: dict[str, Network] = {}
"""Every network by name. Import `tests.corpus.networks`, which fills it."""


def network(how: How = "export") -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a maker under its own name."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        assert make.__name__ not in NETWORKS, make.__name__
        NETWORKS[make.__name__] = Network(make.__name__, make, how)
        return make

    return register
