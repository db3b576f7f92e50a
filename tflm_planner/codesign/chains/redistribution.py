"""Moves the receptive field from the layers that run in patches to those that run whole.

    stage in patches            layers after it
    smaller windows, a block    larger windows, one block more, where the jump is largest,
    less: less is repeated      until field and multiplications are as before

Lin et al. 2021 (MCUNetV2), section 3.2, did this by hand; here it is a rule that works for any
chain. The network must be trained anew. It must not know families.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.receptive_field import (
    Patched,
    jumps,
    measure_patches,
    receptive_field,
    removable_blocks,
)
from tflm_planner.codesign.chains.sizes import size_of

_WINDOWS = (1, 3, 5, 7)


@dataclass(frozen=True)
class Redistributed:
    """A chain whose receptive field was redistributed. layers: how many of its layers form the
    stage. before, after: the stage in patches, before and after. changes: what was changed, in
    order. is_whole: whether the receptive field is at least the original's, and the multiplications
    are not below the tolerance."""

    chain: Chain
    layers: int
    before: Patched
    after: Patched
    changes: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True)
class _Change:
    """A possible change. layers: how many layers the stage then has. gain: the larger, the
    better."""

    words: str
    chain: Chain
    layers: int
    gain: tuple[float, ...]


def redistribute_field(
    chain: Chain, layers: int, patches: int, overhead: float = 0.2, tolerance: float = 0.02
) -> Redistributed:
    """Change a chain so that its first `layers` layers, in patches x patches, repeat less than
    `overhead` of their multiplications. The receptive field of the whole chain, and its
    multiplications within `tolerance`, are then restored as far as windows up to 7x7 and copies of
    blocks allow."""
    before = now = measure_patches(chain, layers, patches)
    current, count, changes = chain, layers, list[str]()
    while now.overhead >= overhead:
        best = max(_reductions(current, count, patches), key=lambda c: c.gain, default=None)
        if best is None:
            break
        current, count = best.chain, best.layers
        changes.append(best.words)
        now = measure_patches(current, count, patches)
    field, macs = receptive_field(chain.layers), size_of(chain).macs
    while changes and not (is_whole := _is_whole(current, field, (1 - tolerance) * macs)):
        most = (1 + tolerance) * macs
        lacks_field = receptive_field(current.layers) < field
        affordable = (
            c for c in _additions(current, count, lacks_field) if size_of(c.chain).macs <= most
        )
        best = max(affordable, key=lambda c: c.gain, default=None)
        if best is None:
            break
        current = best.chain
        changes.append(best.words)
    is_whole = _is_whole(current, field, (1 - tolerance) * macs)
    current = replace(current, name=f"{chain.name}_rd") if changes else chain
    return Redistributed(current, count, before, now, tuple(changes), is_whole)


def _is_whole(chain: Chain, field: int, macs: float) -> bool:
    return receptive_field(chain.layers) >= field and size_of(chain).macs >= macs


def _reductions(chain: Chain, layers: int, patches: int) -> Iterator[_Change]:
    """Changes that make patches of the stage smaller. The gain is the number of multiplications
    that are no longer repeated, for each multiplication that the stage loses."""
    now = measure_patches(chain, layers, patches)

    def change(words: str, changed: Chain, count: int) -> _Change:
        then = measure_patches(changed, count, patches)
        saved = (now.inner - now.whole) - (then.inner - then.whole)
        return _Change(words, changed, count, (saved / max(now.whole - then.whole, 1),))

    for place, layer in enumerate(chain.layers[:layers]):
        for side in _WINDOWS:  # a window smaller than its stride would leave pixels unread
            if layer.kind == "conv" and layer.stride <= side < layer.kernel[0]:
                words = f"layer {place}: window {layer.kernel[0]} -> {side}"
                yield change(words, _with_window(chain, place, side), layers)
    for start, end in removable_blocks(chain, 0, layers):
        remaining = (*chain.layers[:start], *chain.layers[end + 1 :])
        removed = end + 1 - start
        words = f"layers {start} to {end} removed"
        yield change(words, replace(chain, layers=remaining), layers - removed)


def _additions(chain: Chain, first: int, lacks_field: bool) -> Iterator[_Change]:
    """Changes after the stage that restore receptive field and multiplications. The gain is the
    jump of the layer first. Then it is the receptive field won per multiplication if the field is
    still too small, else the multiplications."""
    macs, field = size_of(chain).macs, receptive_field(chain.layers)
    jump = jumps(chain.layers)

    def change(words: str, changed: Chain, place: int) -> _Change:
        cost = size_of(changed).macs - macs
        won = receptive_field(changed.layers) - field
        return _Change(words, changed, first, (jump[place], won / cost if lacks_field else cost))

    for place, layer in enumerate(chain.layers):
        larger = [side for side in _WINDOWS if side > layer.kernel[0] > 1]
        if place >= first and layer.is_depthwise and larger:
            words = f"layer {place}: window {layer.kernel[0]} -> {larger[0]}"
            yield change(words, _with_window(chain, place, larger[0]), place)
    for start, end in removable_blocks(chain, first, len(chain.layers)):
        block = chain.layers[start : end + 1]
        changed = replace(
            chain, layers=(*chain.layers[: end + 1], *block, *chain.layers[end + 1 :])
        )
        yield change(f"layers {start} to {end} twice", changed, end)


def _with_window(chain: Chain, place: int, side: int) -> Chain:
    layers = list(chain.layers)
    layers[place] = replace(layers[place], kernel=(side, side))
    return replace(chain, layers=tuple(layers))
