"""Models of sound, motion and text: convolutions in time, recurrent cells, attention."""

from __future__ import annotations

from typing import Any

from tests.corpus.blocks import conv, depthwise, head, keras, layers, series
from tests.corpus.registry import network


@network()
def sine() -> Any:
    """hello_world."""
    x = inputs = keras().Input((1,))
    for _ in range(2):
        x = layers().Dense(16, activation="relu")(x)
    return keras().Model(inputs, layers().Dense(1)(x))


@network()
def dense_autoencoder() -> Any:
    """The anomaly detector of MLPerf Tiny."""
    x = inputs = keras().Input((64,))
    for width in (32, 8, 32):
        x = layers().ReLU()(layers().BatchNormalization()(layers().Dense(width)(x)))
    return keras().Model(inputs, layers().Dense(64)(x))


@network()
def residual_mlp() -> Any:
    x = inputs = keras().Input((16,))
    for _ in range(2):
        x = layers().Add()([x, layers().Dense(16, activation="gelu")(x)])
    return keras().Model(inputs, layers().Dense(2, activation="softmax")(x))


@network()
def gated_mlp() -> Any:
    x = inputs = keras().Input((16,))
    y = layers().Multiply()([layers().Dense(16)(x), layers().Dense(16, activation="sigmoid")(x)])
    return keras().Model(inputs, layers().Dense(2)(layers().Maximum()([x, y])))


@network()
def key_words() -> Any:
    """DS-CNN, on a spectrogram without a channel axis."""
    x = inputs = series(25, 10)
    x = conv(layers().Reshape((25, 10, 1))(x), 8, kernel=(10, 4), strides=2)
    for _ in range(2):
        x = conv(depthwise(x), 8, kernel=1)
    return keras().Model(inputs, head(x))


@network()
def conv1d() -> Any:
    x = inputs = series(32)
    for width in (8, 12):
        x = layers().Conv1D(width, 5, activation="relu")(x)
        x = layers().MaxPooling1D()(x)
    return keras().Model(inputs, layers().Dense(3)(layers().Flatten()(x)))


@network()
def conv1d_pooled() -> Any:
    x = inputs = series(32)
    x = layers().Conv1D(8, 3, padding="same", activation="relu")(x)
    x = layers().AveragePooling1D(2)(layers().BatchNormalization()(x))
    return keras().Model(inputs, layers().Dense(3)(layers().GlobalAveragePooling1D()(x)))


@network()
def conv1d_separable() -> Any:
    x = inputs = series(32)
    x = layers().SeparableConv1D(8, 5, padding="same", activation="relu")(x)
    x = layers().GlobalMaxPooling1D()(layers().DepthwiseConv1D(3, strides=2)(x))
    return keras().Model(inputs, layers().Dense(3)(x))


@network()
def conv1d_autoencoder() -> Any:
    x = inputs = series(32, 4)
    x = layers().Conv1D(8, 5, strides=2, padding="same", activation="relu")(x)
    x = layers().Conv1DTranspose(4, 5, strides=2, padding="same")(x)
    return keras().Model(inputs, x)


@network()
def unet_of_a_signal() -> Any:
    x = inputs = series(32, 2)
    a = layers().Conv1D(4, 3, padding="same", activation="relu")(x)
    b = layers().Conv1D(8, 3, padding="same", activation="relu")(layers().MaxPooling1D()(a))
    y = layers().Concatenate()([layers().UpSampling1D()(b), a])
    return keras().Model(inputs, layers().Conv1D(1, 3, padding="same")(y))


def _temporal(batch: int | None) -> Any:
    x = inputs = series(32, batch=batch)
    x = layers().Conv1D(8, 1)(x)
    for dilation in (1, 2, 4):
        y = layers().Conv1D(8, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
        x = layers().Add()([x, layers().Conv1D(8, 1)(y)])
    return keras().Model(inputs, layers().Dense(3)(x[:, -1]))


@network()
def temporal_convolutions() -> Any:
    """TCN: dilated and causal; of the result only the last step is read."""
    return _temporal(None)


@network("function")
def temporal_convolutions_fixed_batch() -> Any:
    return _temporal(1)


@network("function")
def wavenet() -> Any:
    x = inputs = series(32, 4, batch=1)
    skips = []
    for dilation in (1, 2):
        a, b = (
            layers().Conv1D(4, 2, padding="causal", dilation_rate=dilation, activation=f)(x)
            for f in ("tanh", "sigmoid")
        )
        y = layers().Multiply()([a, b])
        skips.append(layers().Conv1D(4, 1)(y))
        x = layers().Add()([x, layers().Conv1D(4, 1)(y)])
    x = layers().ReLU()(layers().Add()(skips))
    return keras().Model(inputs, layers().Conv1D(5, 1, activation="softmax")(x))


def _recurrent(cell: str, batch: int | None = None, **options: Any) -> Any:
    x = inputs = series(8, 6, batch=batch)
    x = getattr(layers(), cell)(8, **options)(x)
    return keras().Model(inputs, layers().Dense(3, activation="softmax")(x))


@network("function")
def lstm() -> Any:
    """Not unrolled, which the converter makes no file of where the batch is free."""
    return _recurrent("LSTM")


@network()
def lstm_unrolled() -> Any:
    return _recurrent("LSTM", unroll=True)


@network("function")
def gru() -> Any:
    return _recurrent("GRU")


@network()
def gru_unrolled() -> Any:
    return _recurrent("GRU", 1, unroll=True)


@network()
def simple_rnn_unrolled() -> Any:
    return _recurrent("SimpleRNN", 1, unroll=True)


@network()
def lstm_in_both_directions() -> Any:
    x = inputs = series(6, 4, batch=1)
    x = layers().Bidirectional(layers().LSTM(4, unroll=True))(x)
    return keras().Model(inputs, layers().Dense(3)(x))


@network()
def lstm_stacked() -> Any:
    x = inputs = series(6, 4, batch=1)
    x = layers().LSTM(4, unroll=True, return_sequences=True)(x)
    return keras().Model(inputs, layers().Dense(3)(layers().LSTM(4, unroll=True)(x)))


@network()
def convolutions_and_lstm() -> Any:
    x = inputs = keras().Input((16, 8, 1), batch_size=1)
    x = layers().MaxPooling2D()(conv(x, 4))
    x = layers().LSTM(4, unroll=True)(layers().Reshape((8, 16))(x))
    return keras().Model(inputs, layers().Dense(3)(x))


@network()
def every_frame() -> Any:
    """TimeDistributed."""
    x = inputs = keras().Input((3, 8, 8, 1), batch_size=1)
    x = layers().TimeDistributed(layers().Conv2D(4, 3, activation="relu"))(x)
    x = layers().TimeDistributed(layers().GlobalAveragePooling2D())(x)
    return keras().Model(inputs, layers().Dense(3)(layers().Flatten()(x)))


def _transformer(x: Any, heads: int = 2) -> Any:
    width = x.shape[-1]
    y = layers().MultiHeadAttention(heads, width // heads)(x, x)
    x = layers().LayerNormalization()(layers().Add()([x, y]))
    y = layers().Dense(width)(layers().Dense(16, activation="relu")(x))
    return layers().LayerNormalization()(layers().Add()([x, y]))


@network()
def transformer() -> Any:
    x = inputs = series(8, 8)
    x = layers().GlobalAveragePooling1D()(_transformer(x))
    return keras().Model(inputs, layers().Dense(3)(x))


@network("function")
def transformer_fixed_batch() -> Any:
    x = inputs = series(8, 8, batch=1)
    return keras().Model(inputs, layers().Dense(3)(layers().Flatten()(_transformer(x))))


@network()
def vision_transformer() -> Any:
    x = inputs = keras().Input((16, 16, 3))
    x = layers().Reshape((16, 8))(layers().Conv2D(8, 4, strides=4)(x))
    x = layers().GlobalAveragePooling1D()(_transformer(x))
    return keras().Model(inputs, layers().Dense(3, activation="softmax")(x))


@network()
def mixer() -> Any:
    x = inputs = series(8, 8)
    y = layers().Permute((2, 1))(x)
    y = layers().Dense(8)(layers().Dense(16, activation="gelu")(y))
    x = layers().Add()([x, layers().Permute((2, 1))(y)])
    return keras().Model(inputs, layers().Dense(3)(layers().GlobalAveragePooling1D()(x)))


@network()
def attention() -> Any:
    """Dot products of queries and keys, by hand."""
    ops, x = keras().ops, series(8, 8, batch=1)
    q, k, v = (layers().Dense(4)(x) for _ in range(3))
    weights = ops.softmax(ops.matmul(q, ops.transpose(k, (0, 2, 1))) / 2.0)
    y = ops.matmul(weights, v)
    return keras().Model(x, layers().Dense(3)(layers().Flatten()(y)))


@network()
def attention_pooling() -> Any:
    ops, x = keras().ops, series(8, 8)
    y = layers().Conv1D(8, 3, padding="same", activation="relu")(x)
    weights = layers().Softmax(axis=1)(layers().Dense(1)(y))
    return keras().Model(x, layers().Dense(3)(ops.sum(layers().Multiply()([y, weights]), axis=1)))


@network()
def text() -> Any:
    """Words by their numbers."""
    x = inputs = keras().Input((8,), dtype="int32")
    x = layers().GlobalAveragePooling1D()(layers().Embedding(20, 8)(x))
    return keras().Model(inputs, layers().Dense(2, activation="softmax")(x))


@network()
def einsum() -> Any:
    x = inputs = series(8, 6)
    x = layers().EinsumDense("abc,cd->abd", output_shape=(8, 4), bias_axes="d")(x)
    return keras().Model(inputs, layers().Flatten()(x))


@network()
def cumulative() -> Any:
    ops, x = keras().ops, series(8, 4)
    return keras().Model(x, layers().Dense(2)(ops.cumsum(x, axis=1)))


@network()
def rounded() -> Any:
    ops, x = keras().ops, series(8, 4)
    y = layers().Dense(4)(ops.round(layers().Dense(4)(x)))
    return keras().Model(x, layers().Dense(2)(layers().Flatten()(ops.ceil(y))))


@network()
def streaming() -> Any:
    """A step at a time; what came before is kept in a variable."""
    import tensorflow as tf

    class Streaming(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.past = tf.Variable(tf.zeros((1, 4, 6)), name="past")
            self.kernel = tf.Variable(tf.random.stateless_normal((5, 6, 8), (1, 2)))
            self.last = tf.Variable(tf.random.stateless_normal((8, 3), (3, 4)))

        @tf.function(input_signature=[tf.TensorSpec((1, 1, 6), tf.float32, name="x")])
        def serve(self, x: Any) -> Any:
            seen = tf.concat([self.past, x], axis=1)
            self.past.assign(seen[:, 1:])
            y = tf.nn.relu(tf.nn.conv1d(seen, self.kernel, 1, "VALID"))
            return tf.reshape(y, (1, 8)) @ self.last

    return Streaming()
