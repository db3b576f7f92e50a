"""The list of the zoo's models, and the published counts each of them is checked against.

A network function registers itself with `@zoo_model(...)`; `zoo.networks` imports them all.
Knows no network and no layer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One model: how to build it, and what the literature says about its size.

    `parameters` and `macs` (multiply-accumulates of one inference) are None where nothing is
    published. `tolerance` is relative. Where the published count is that of another size of
    the same network, `at` holds the arguments of that size. deviation: of the logits between
    inputs; less than usual where a SOFTMAX of few classes would say the same of all. variant: made
    only when named, because it is another size, or a part, of a network that is there.
    """

    build: Callable[..., Any]
    parameters: float | None = None
    macs: float | None = None
    tolerance: float = 0.03
    at: Mapping[str, Any] = field(default_factory=dict)
    quantised: bool = True
    deviation: float = 2.0
    variant: bool = False


NETWORKS: dict[str, Entry] = {}
"""Every model of the zoo by name, in the order of registration."""


def zoo_model(*, name: str = "", **facts: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register the decorated function, under its own name or `name`; see `Entry` for `facts`.

    Raises ValueError if the name is taken.
    """

    def register(build: Callable[..., Any]) -> Callable[..., Any]:
        key = name or build.__name__
        if key in NETWORKS:
            raise ValueError(f"two models are called {key}")
        NETWORKS[key] = Entry(build, **facts)
        return build

    return register
