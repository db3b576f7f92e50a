"""Randomly wired networks, Xie et al. 2019.

Departures from the paper: a node adds its inputs without learned weights, and a stage adds
its ends instead of averaging them; graph and shapes are the same. Knows layers; must not know
quantisation or files.
"""

import keras
import numpy as np
from keras import layers

from zoo.common import IMAGENET, add, classify, conv_bn, relu_conv_bn, separable
from zoo.registry import zoo_model


def watts_strogatz(rng: np.random.Generator, nodes: int, k: int, p: float) -> list[list[int]]:
    """Draw a Watts-Strogatz graph and return, for each node, its predecessors.

    Each node starts linked to its `k` nearest neighbours on a ring; going round k/2 times, each
    link is rewired with probability `p`. Links point from the lower to the higher number, which
    makes the graph acyclic (Xie et al. 2019, section 3.3).
    """
    links = {(v, (v + step) % nodes) for step in range(1, k // 2 + 1) for v in range(nodes)}
    linked = {tuple(sorted(link)) for link in links}
    for v, w in sorted(links, key=lambda link: ((link[1] - link[0]) % nodes, link[0])):
        if rng.random() < p:
            free = [u for u in range(nodes) if u != v and tuple(sorted((u, v))) not in linked]
            if free:
                linked.remove(tuple(sorted((v, w))))
                linked.add(tuple(sorted((v, int(rng.choice(free))))))
    return [sorted(a for a, b in linked if b == node) for node in range(nodes)]


def _random_stage(x, filters: int, predecessors: list[list[int]]):
    outputs = []
    for sources in predecessors:
        inputs = [outputs[source] for source in sources]
        total = add(inputs) if inputs else x
        outputs.append(separable(total, filters, 3, strides=1 if inputs else 2))
    used = {source for sources in predecessors for source in sources}
    return add([outputs[node] for node in range(len(outputs)) if node not in used])


def _random_stages(x, widths: tuple[int, ...], seed: int):
    rng = np.random.default_rng(seed)
    for filters in widths:
        x = _random_stage(x, filters, watts_strogatz(rng, 32, 4, 0.75))
    return x


@zoo_model()
def randwire() -> keras.Model:
    """Randomly wired WS(4, 0.75): 3 stages of 32 nodes, 96x96 input, 100 classes.

    A size of ours, for microcontrollers; `randwire_224` is the published one.
    """
    image = keras.Input((96, 96, 3))
    x = conv_bn(image, 16, 3, strides=2, act=None)
    x = _random_stages(x, (24, 48, 96), seed=475)
    x = conv_bn(layers.ReLU()(x), 256, 1)
    return keras.Model(image, classify(x, 100), name="randwire")


@zoo_model(parameters=5.6e6, macs=583e6, tolerance=0.05)
def randwire_224() -> keras.Model:
    """RandWire-WS(4, 0.75) of the small regime, C = 78, at 224x224 (the paper's table 1).

    Checked: 5.6 M parameters, 583 M MACs (table 2: the mean of five random graphs).
    """
    width = 78
    image = keras.Input((224, 224, 3))
    x = conv_bn(image, width // 2, 3, strides=2, act=None)
    x = relu_conv_bn(x, width, 3, strides=2)
    x = _random_stages(x, (width, 2 * width, 4 * width), seed=475)
    x = conv_bn(layers.ReLU()(x), 1280, 1)
    return keras.Model(image, classify(x, IMAGENET), name="randwire_224")
