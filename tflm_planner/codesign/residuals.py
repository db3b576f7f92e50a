"""What skips cost: networks with other skips than their families have.

    plain     none, the projections of skips gone too: what only training can tell is what it loses

It must not know families.
"""

from __future__ import annotations

from dataclasses import replace

from tflm_planner.codesign.chain import Chain


def plain(chain: Chain) -> Chain:
    """The chain without its skips. Where there is none it is the same."""
    if not any(layer.skip for layer in chain.layers):
        return chain
    layers = tuple(replace(layer, skip=0) for layer in chain.layers)
    return replace(chain, name=f"{chain.name}_plain", layers=layers)
