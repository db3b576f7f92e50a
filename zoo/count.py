"""Parameters and multiply-accumulates of a Keras model, to compare with published counts.

Knows layers that compute; must not know any network.
"""

from math import prod

import keras
from keras import layers

from zoo.registry import Entry


def parameters(model: keras.Model) -> int:
    """Number of trainable values: weights, biases, BatchNorm's scales and offsets."""
    return sum(prod(weight.shape) for weight in model.trainable_weights)


def _layer_macs(operation) -> int:
    if isinstance(operation, layers.SeparableConv2D):
        kernels = (operation.depthwise_kernel, operation.pointwise_kernel)
        return prod(operation.output.shape[1:-1]) * sum(prod(kernel.shape) for kernel in kernels)
    if isinstance(operation, (layers.Conv2D, layers.DepthwiseConv2D, layers.Dense)):
        positions = prod(operation.output.shape[1:-1])
        return positions * prod(operation.kernel.shape)
    if type(operation).__name__ == "Matmul":
        left = operation.input[0]
        return prod(operation.output.shape[1:]) * left.shape[-1]
    return 0


def macs(model: keras.Model) -> int:
    """Multiply-accumulates of one inference in convolutions, Dense layers and matmuls."""
    return sum(_layer_macs(operation) for operation in model.operations)


def counts(entry: Entry) -> dict[str, object]:
    """Counts of the model, the published ones, and the differences that are too large.

    Keys: parameters, macs (of the model as built); published_* and checked_* (the published
    count and ours, at the published size); wrong (what lies outside the tolerance).
    """
    model = entry.build()
    facts: dict[str, object] = {"parameters": parameters(model), "macs": macs(model)}
    checked = entry.build(**entry.at) if entry.at else model
    wrong = []
    for name, published in (("parameters", entry.parameters), ("macs", entry.macs)):
        if published is None:
            continue
        ours = parameters(checked) if name == "parameters" else macs(checked)
        facts[f"published_{name}"], facts[f"checked_{name}"] = published, ours
        if abs(ours - published) > entry.tolerance * published:
            wrong.append(f"{name}: {ours:,} here, {published:,.0f} published")
    facts["wrong"] = wrong
    return facts
