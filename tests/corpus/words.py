"""Words and categories, given by their numbers."""

from __future__ import annotations

from typing import Any

from tests.corpus.blocks import keras, layers
from tests.corpus.registry import network

KINDS = 20
"""Of words; examples lie below (`convert._examples`)."""


def _words(count: int = 8, batch: int | None = None) -> Any:
    return keras().Input((count,), batch_size=batch, dtype="int32")


def _embedded(words: Any, **options: Any) -> Any:
    return layers().Embedding(KINDS, 8, **options)(words)


@network()
def words_averaged() -> Any:
    """Word 0 is none: the others are averaged."""
    inputs = _words()
    x = layers().GlobalAveragePooling1D()(_embedded(inputs, mask_zero=True))
    return keras().Model(inputs, layers().Dense(2)(x))


@network()
def words_convolved() -> Any:
    inputs = _words(16)
    x = layers().Conv1D(8, 3, activation="relu")(_embedded(inputs))
    return keras().Model(inputs, layers().Dense(2)(layers().GlobalMaxPooling1D()(x)))


@network()
def words_as_floats() -> Any:
    """An input of floats, as Input gives it unless told otherwise."""
    inputs = keras().Input((8,))
    x = layers().Flatten()(_embedded(inputs))
    return keras().Model(inputs, layers().Dense(2)(x))


@network()
def words_unrolled() -> Any:
    inputs = _words(batch=1)
    x = layers().LSTM(6, unroll=True)(_embedded(inputs))
    return keras().Model(inputs, layers().Dense(2)(x))


@network()
def words_and_places() -> Any:
    """A transformer whose words know their places."""
    inputs = _words()
    places = layers().Embedding(8, 8)(keras().ops.arange(8))
    x = _embedded(inputs) + places
    x = layers().LayerNormalization()(x + layers().MultiHeadAttention(2, 4)(x, x))
    x = x + layers().Dense(8)(layers().Dense(16, activation="gelu")(x))
    return keras().Model(inputs, layers().Dense(2)(layers().GlobalAveragePooling1D()(x)))


@network()
def next_word() -> Any:
    """A decoder: no word sees a later one."""
    inputs = _words()
    x = _embedded(inputs)
    x = x + layers().MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    return keras().Model(inputs, layers().Dense(KINDS)(x))


@network()
def categories_and_numbers() -> Any:
    """A table: two columns of categories, four of numbers."""
    numbers, first, second = keras().Input((4,)), _words(1), _words(1)
    columns = [layers().Flatten()(_embedded(column)) for column in (first, second)]
    x = layers().BatchNormalization()(layers().Concatenate()([numbers, *columns]))
    x = layers().Dense(8, activation="relu")(x)
    return keras().Model([numbers, first, second], layers().Dense(1)(x))


@network()
def words_one_hot() -> Any:
    inputs = _words()
    x = layers().Conv1D(4, 3, activation="relu")(keras().ops.one_hot(inputs, KINDS))
    return keras().Model(inputs, layers().Dense(2)(layers().Flatten()(x)))


@network()
def numbers_in_bins() -> Any:
    inputs = keras().Input((4,))
    x = layers().Discretization([-0.5, 0.0, 0.5])(inputs)
    return keras().Model(inputs, layers().Dense(3)(layers().Flatten()(_embedded(x))))
