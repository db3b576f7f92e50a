"""A transformer from operators that TFLM has: fully connected, batch matmul, softmax, add.

Knows layers; must not know quantisation or files. Embedding is outside: a table of 30,522 rows
is memory of another kind, and the input is the embedded sequence.
"""

import keras
from keras import layers, ops

from zoo.registry import zoo_model

HIDDEN, HEADS, INNER = 128, 2, 512


def _split_heads(x):
    """(tokens, hidden) to (heads, tokens, hidden / heads)."""
    x = layers.Reshape((x.shape[1], HEADS, HIDDEN // HEADS))(x)
    return layers.Permute((2, 1, 3))(x)


def _attention(x):
    queries, keys, values = (_split_heads(layers.Dense(HIDDEN)(x)) for _ in range(3))
    scores = ops.matmul(queries, layers.Permute((1, 3, 2))(keys))
    weights = layers.Softmax()(layers.Rescaling((HIDDEN / HEADS) ** -0.5)(scores))
    mixed = layers.Permute((2, 1, 3))(ops.matmul(weights, values))
    return layers.Dense(HIDDEN)(layers.Reshape((x.shape[1], HIDDEN))(mixed))


def _feed_forward(x):
    x = layers.Dense(INNER)(x)
    # x * sigmoid(1.702 x) approximates GELU (Hendrycks and Gimpel 2016); TFLM has no GELU.
    x = layers.Multiply()([x, layers.Activation("sigmoid")(layers.Rescaling(1.702)(x))])
    return layers.Dense(HIDDEN)(x)


class LayerNorm(layers.Layer):
    """Layer normalisation from MEAN, SUB, MUL, ADD and RSQRT, all of which exist in int8.

    Keras's own becomes a NEG among others, which TensorFlow Lite computes in float only.
    """

    def build(self, shape):
        """Create scale and offset, one per feature."""
        self.gamma = self.add_weight(shape=shape[-1:], initializer="ones", name="gamma")
        self.beta = self.add_weight(shape=shape[-1:], initializer="zeros", name="beta")

    def call(self, x):
        """Normalise over the last axis."""
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(centred * centred, axis=-1, keepdims=True)
        return centred * ops.rsqrt(variance + 1e-3) * self.gamma + self.beta


# 4,385,920 parameters, less embeddings of 30,522 words, 512 positions and 2 types, and their
# normalisation, plus our classifier of two classes.
ENCODER = 4_385_920 - (30_522 + 512 + 2) * HIDDEN - 2 * HIDDEN + 2 * HIDDEN + 2


@zoo_model(parameters=ENCODER, tolerance=0, deviation=0.7)
def bert_tiny(tokens: int = 512, blocks: int = 2, classes: int = 2) -> keras.Model:
    """BERT-Tiny, Devlin et al. 2018 and Turc et al. 2019: 2 layers, 128 wide, 512 tokens.

    Input: embedded sequence, (512, 128). Checked: 4,385,920 parameters in all (the released
    checkpoint; 4.4 M in Turc et al.).
    """
    sequence = keras.Input((tokens, HIDDEN))
    x = sequence
    for _ in range(blocks):
        x = LayerNorm()(layers.Add()([x, _attention(x)]))
        x = LayerNorm()(layers.Add()([x, _feed_forward(x)]))
    first = layers.Reshape((HIDDEN,))(x[:, :1])
    pooled = layers.Dense(HIDDEN, activation="tanh")(first)
    output = layers.Dense(classes, activation="softmax", name="predictions")(pooled)
    return keras.Model(sequence, output, name="bert_tiny")
