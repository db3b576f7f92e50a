"""Removes the skips of a network, or replaces them, because skips cost memory.

    linearise      removes sums, concatenations and projections: each layer reads the one before
    redistribute   gives a network that lost concatenations widths with which it has as many weights
    plain          does both
    reorganise     puts a late skip around each convolution, from the convolution's own operand,
                   so that no third value lives while it runs (Mendis et al. 2024, DERO)
    vanishing      as plain, but training has a skip around each convolution, which folds into it
    repvgg         as vanishing, with a 1x1 convolution beside each 3x3 one (Ding et al. 2021)

`where` names the skips to change by the layers at which they end; other skips stay. All of these
functions change what a network computes, so it must be trained anew; what `vanishing` and `repvgg`
add, `networks.folding` takes away again without a change. It must not know families.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Literal

from tflm_planner.codesign.chains.chain import Branches, Chain, Join, Layer, steps

Scaled = Literal["always", "where shapes change"]
"""Which late skips are scaled: "always" as in DERO's MobileNet, MCUNet and ResNet, or "where shapes
change" as in its DenseNet."""
_WINDOWED = ("max_pool", "average_pool")
_WHOLE = ("pool", "mean")
_STEP = 4
"""Redistributed widths are multiples of this. With 4, those of DenseNet121 equal the published
ones."""


def ends(chain: Chain) -> tuple[int, ...]:
    """The layers at which skips end."""
    return tuple(place for place, layer in enumerate(chain.layers) if layer.skip)


def units(chain: Chain) -> tuple[frozenset[int], ...]:
    """The smallest sets of skips that can be changed independently: each sum by itself, and all
    concatenations of a level together, because a layer reads the channels of all of them."""
    numbers = _levels(chain)
    groups: dict[object, set[int]] = {}
    for place in ends(chain):
        key = ("level", numbers[place]) if chain.layers[place].join == "concat" else place
        groups.setdefault(key, set()).add(place)
    return tuple(frozenset(places) for places in groups.values())


def linearise(chain: Chain, where: Collection[int] | None = None) -> Chain:
    """The chain without the skips that end at `where` (None: without all skips). Each layer reads
    the channels that are left. If the head read a concatenation, a 1x1 convolution gives it as many
    channels as before."""
    removed = _ends_to_remove(chain, where)
    remaining = _remaining_layers(chain, removed)
    layers: list[Layer] = []
    for place in remaining:
        layer = chain.layers[place]
        if place in removed:
            layer = replace(layer, skip=0, join="sum", branch=0)
        elif layer.skip:
            first = place + 1 - layer.skip
            layer = replace(layer, skip=sum(first <= p <= place for p in remaining))
        layers.append(layer)
    _hand_on_activations(chain, removed, remaining, layers)
    linear = replace(chain, layers=_repair_widths(layers, chain.image[2]))
    return _with_wide_head(linear, chain)


def redistribute(linear: Chain, original: Chain) -> Chain:
    """A linearised chain with new widths. In each level that lost its concatenations, all
    convolutions but the last get the same width: the largest with which the level has fewer weights
    than in the original, rounded to a multiple of four. (A level ends at a pool or before a
    stride.) A level with one convolution, or none, keeps its widths."""
    layers = list(linear.layers)
    before, now = _levels(original), _levels(linear)
    for number in sorted(set(now)):
        original_layers = [
            layer for layer, n in zip(original.layers, before, strict=True) if n == number
        ]
        if not any(map(_is_concat, original_layers)):
            continue
        places = [p for p, n in enumerate(now) if n == number]
        if any(_is_concat(layers[p]) for p in places):
            continue
        goal = sum(layer.weights for layer in original_layers if layer.kind == "conv")
        convolutions = [p for p in places if layers[p].kind == "conv"]
        if len(convolutions) < 2:
            continue
        width = _uniform_width([layers[p] for p in convolutions], goal)
        for place in convolutions[:-1]:
            layers[place] = replace(layers[place], channels_out=width)
    return replace(linear, layers=_repair_widths(layers, linear.image[2]))


def plain(chain: Chain, where: Collection[int] | None = None) -> Chain:
    """The chain without the skips that end at `where` (None: without all skips), with about as many
    weights as before. A chain without such skips is returned unchanged."""
    if not _ends_to_remove(chain, where):
        return chain
    linear = redistribute(linearise(chain, where), chain)
    return replace(linear, name=f"{chain.name}_plain")


def reorganise(
    chain: Chain, where: Collection[int] | None = None, scaled: Scaled = "always"
) -> Chain:
    """The chain with its skips at `where` replaced by late skips. Each convolution that a replaced
    skip went around, with the pools after it, gets a late skip of its own. None: all skips are
    replaced, and every convolution gets one."""
    linear = redistribute(linearise(chain, where), chain)
    affected = _affected_layers(chain, where)
    layers = list(linear.layers)
    for place, layer in enumerate(linear.layers):
        if layer.kind != "conv" or not (affected is None or place in affected):
            continue
        end = place
        while end + 1 < len(layers) and layers[end + 1].kind in _WINDOWED:
            end += 1
        if layers[end].skip:
            continue  # a skip that stays ends here
        changes = any(one.stride > 1 for one in layers[place : end + 1])
        is_scaled = scaled == "always" or changes or layer.channels_in != layer.channels_out
        join: Join = "scaled late sum" if is_scaled else "late sum"
        layers[end] = replace(layers[end], skip=end + 1 - place, join=join)
    return replace(linear, name=f"{chain.name}_dero", layers=tuple(layers))


def vanishing(chain: Chain, where: Collection[int] | None = None) -> Chain:
    """The plain chain with skips that training alone has: each convolution that a removed skip went
    around, and that changes neither channels nor image size, gets a normalised copy of its operand
    beside it. None: all skips are removed, and every such convolution gets one."""
    return _with_branches(chain, where, "identity", _keeps_shape)


def repvgg(chain: Chain, where: Collection[int] | None = None) -> Chain:
    """The plain chain with the branches of RepVGG, which training alone has (Ding et al. 2021, 3):
    each 3x3 convolution that a removed skip went around gets a normalised 1x1 convolution beside
    it and, if shapes stay the same, a normalised copy of its operand. None: all skips are removed,
    and every 3x3 convolution gets them."""
    return _with_branches(chain, where, "repvgg", lambda layer: layer.kernel == (3, 3))


def _with_branches(
    chain: Chain,
    where: Collection[int] | None,
    branches: Branches,
    takes: Callable[[Layer], bool],
) -> Chain:
    """The plain chain with branches beside the convolutions that a removed skip went around, if
    they take them."""
    made, affected = plain(chain, where), _affected_layers(chain, where)
    layers = tuple(
        replace(layer, branches=branches)
        if layer.kind == "conv" and takes(layer) and (affected is None or place in affected)
        else layer
        for place, layer in enumerate(made.layers)
    )
    return replace(made, layers=layers)


def _keeps_shape(layer: Layer) -> bool:
    return layer.stride == 1 and layer.channels_in == layer.channels_out


def _ends_to_remove(chain: Chain, where: Collection[int] | None) -> frozenset[int]:
    """The layers whose skips are to be removed."""
    removed = frozenset(ends(chain) if where is None else where)
    assert removed <= set(ends(chain)), "no skip ends there"
    return removed


def _remaining_layers(chain: Chain, removed: Collection[int]) -> list[int]:
    """The layers that stay. Two kinds are dropped: join layers at which a removed skip ended, and
    norms of removed concatenations, which can now be folded into a convolution."""
    dropped = {p for p in removed if chain.layers[p].kind == "join"}
    joined = {p for p in removed if chain.layers[p].join == "concat"}
    for place, layer in enumerate(chain.layers):
        inside = any(end + 1 - chain.layers[end].skip <= place <= end for end in joined)
        if layer.kind == "norm" and (inside or place - 1 in joined):
            dropped.add(place)
    return [p for p in range(len(chain.layers)) if p not in dropped]


def _hand_on_activations(
    chain: Chain, removed: Collection[int], remaining: Sequence[int], layers: list[Layer]
) -> None:
    """Move the activation of each dropped norm to the convolution before it, if that has none."""
    for place, norm in enumerate(chain.layers):
        if norm.kind != "norm" or place in remaining:
            continue
        before = (i for i, p in enumerate(remaining) if p < place and layers[i].kind == "conv")
        last = max(before, default=None)
        if last is not None and layers[last].activation == "none":
            layers[last] = replace(layers[last], activation=norm.activation)


def _repair_widths(layers: Sequence[Layer], width: int) -> tuple[Layer, ...]:
    """The layers with input channels set to what the layer before makes. width: channels of the
    image."""
    widths, repaired = [width], list[Layer]()
    for place, layer in enumerate(layers):
        now = widths[-1]
        if layer.is_depthwise:
            out = layer.channels_out // layer.channels_in * now
            layer = replace(layer, groups=now, channels_in=now, channels_out=out)
        elif layer.kind == "flatten" and layer.channels_in:
            out = layer.channels_out // layer.channels_in * now
            layer = replace(layer, channels_in=now, channels_out=out)
        elif layer.kind in ("conv", "dense"):
            layer = replace(layer, channels_in=now)
        skip_width = 0
        if _is_concat(layer):
            skip_width = layer.branch or widths[place + 1 - layer.skip]
        widths.append((layer.channels_out or now) + skip_width)
        repaired.append(layer)
    return tuple(repaired)


def _with_wide_head(linear: Chain, original: Chain) -> Chain:
    """The chain with a 1x1 convolution before its head if the head of the original read another
    number of channels."""
    for place, step in enumerate(steps(linear)):
        if step.layer.kind not in _WHOLE:
            continue
        wide = next(s.shape_in[2] for s in steps(original) if s.layer.kind in _WHOLE)
        if wide == step.shape_in[2]:
            return linear
        last = Layer("conv", (1, 1), 1, step.shape_in[2], wide, activation="relu")
        layers = [*linear.layers[:place], last, *linear.layers[place:]]
        return replace(linear, layers=_repair_widths(layers, linear.image[2]))
    return linear


def _affected_layers(chain: Chain, where: Collection[int] | None) -> set[int] | None:
    """The layers of the linearised chain that the sums at `where` went around, and all layers of
    levels that lost concatenations. None stands for all layers."""
    if where is None:
        return None
    numbers = _levels(chain)
    remaining = _remaining_layers(chain, where)
    affected: set[int] = set()
    for end in where:
        whole = chain.layers[end].join == "concat"
        first = 0 if whole else end + 1 - chain.layers[end].skip
        last = len(chain.layers) - 1 if whole else end
        around = (p for p in range(first, last + 1) if not whole or numbers[p] == numbers[end])
        affected.update(remaining.index(p) for p in around if p in remaining)
    return affected


def _levels(chain: Chain) -> list[int]:
    """The number of the level of each layer. Within a level the image size stays the same: a pool
    or upsampling ends a level, and a strided convolution begins one."""
    numbers: list[int] = []
    number = 0
    for layer in chain.layers:
        number += layer.kind == "conv" and layer.stride > 1
        numbers.append(number)
        number += layer.kind in (*_WINDOWED, *_WHOLE, "upsample")
    return numbers


def _is_concat(layer: Layer) -> bool:
    return layer.skip > 0 and layer.join == "concat"


def _uniform_width(convolutions: Sequence[Layer], goal: int) -> int:
    """The width of all but the last of these convolutions: the largest with which they have fewer
    weights than `goal`, rounded to a multiple of four."""
    if any(layer.groups > 1 for layer in convolutions):
        raise ValueError("widths of depthwise convolutions cannot be redistributed")

    def weights(width: int) -> int:
        outs = [width] * (len(convolutions) - 1) + [convolutions[-1].channels_out]
        ins = [convolutions[0].channels_in, *outs[:-1]]
        windows = (math.prod(layer.kernel) for layer in convolutions)
        return sum(k * i * o for k, i, o in zip(windows, ins, outs, strict=True))

    width = 1
    while weights(width + 1) < goal:
        width += 1
    return max(_STEP, round(width / _STEP) * _STEP)
