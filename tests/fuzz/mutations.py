"""Damages model files: at the level of bytes, of flatbuffer words, and of the schema.

    seed -> a model of the corpus -> one to four mutations -> bytes, and what was done to them

A seed is a file: every draw comes from one generator.
"""

from __future__ import annotations

import numpy as np

from tests.fuzz.mutations_of_bytes import BYTES
from tests.fuzz.mutations_of_schema import SCHEMA
from tests.fuzz.seeds import corpus, packed
from tests.models.build import schema


def mutated(seed: int) -> tuple[str, bytes]:
    """(what was done, the file). The same for the same seed."""
    rng = np.random.default_rng(seed)
    name, data = corpus()[int(rng.integers(len(corpus())))]
    done = [name]
    if rng.random() < 0.55:
        model = schema.ModelT.InitFromPackedBuf(data, 0)
        for _ in range(int(rng.integers(1, 4))):
            mutation = SCHEMA[int(rng.integers(len(SCHEMA)))]
            done.append(mutation.__name__)
            mutation(model, rng)
        try:
            data = packed(model)
        except Exception:  # the library cannot write it: then nobody can send it
            done.append("(not packed)")
        if rng.random() < 0.8:
            return " + ".join(done), data
    for _ in range(int(rng.integers(1, 4))):
        mutation = BYTES[int(rng.integers(len(BYTES)))]
        done.append(mutation.__name__)
        data = bytes(mutation(bytearray(data), rng))
    return " + ".join(done), data
