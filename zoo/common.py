"""Building blocks that several families of networks share.

Knows layers; must not know any network, quantisation or files. All padding is TensorFlow's
SAME: where a paper's own code pads evenly on both sides, shapes and counts stay the same.
"""

from collections.abc import Sequence

from keras import layers

IMAGENET = 1000


def divisible(value: float, divisor: int = 8) -> int:
    """Round a channel count to a multiple of `divisor`, never down by more than a tenth.

    The rounding of the MobileNet family (Sandler et al. 2018, reference implementation).
    """
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def activate(x, kind: str | None):
    """Apply relu, relu6, silu (as LOGISTIC and MUL, which TFLM has), or nothing."""
    if kind == "silu":
        return layers.Multiply()([x, layers.Activation("sigmoid")(x)])
    if kind is None:
        return x
    return layers.ReLU(6.0 if kind == "relu6" else None)(x)


def conv_bn(x, filters: int, kernel: int, strides: int = 1, act: str | None = "relu"):
    """Convolution without bias, BatchNorm, activation."""
    x = layers.Conv2D(filters, kernel, strides, padding="same", use_bias=False)(x)
    return activate(layers.BatchNormalization()(x), act)


def depthwise_bn(x, kernel: int, strides: int = 1, act: str | None = "relu", dilation: int = 1):
    """Depthwise convolution without bias, BatchNorm, activation."""
    x = layers.DepthwiseConv2D(
        kernel, strides, padding="same", dilation_rate=dilation, use_bias=False
    )(x)
    return activate(layers.BatchNormalization()(x), act)


def relu_conv_bn(x, filters: int, kernel: int = 1, strides: int = 1):
    """ReLU, convolution, BatchNorm: the order of the cell-based networks."""
    return conv_bn(layers.ReLU()(x), filters, kernel, strides, act=None)


def separable(x, filters: int, kernel: int, strides: int = 1, dilation: int = 1):
    """ReLU, depthwise, pointwise, BatchNorm: the separable convolution of DARTS and RandWire."""
    x = layers.ReLU()(x)
    x = layers.DepthwiseConv2D(
        kernel, strides, padding="same", dilation_rate=dilation, use_bias=False
    )(x)
    x = layers.Conv2D(filters, 1, use_bias=False)(x)
    return layers.BatchNormalization()(x)


def factorised_reduce(x, filters: int):
    """Halve height and width with two offset 1x1 convolutions, so that no pixel is ignored."""
    x = layers.ReLU()(x)
    shifted = layers.Cropping2D(((1, 0), (1, 0)))(x)
    sizes = (filters // 2, filters - filters // 2)
    halves = [
        layers.Conv2D(size, 1, 2, padding="same", use_bias=False)(y)
        for size, y in zip(sizes, (x, shifted), strict=True)
    ]
    return layers.BatchNormalization()(layers.Concatenate()(halves))


def squeeze_excite(x, squeezed: int):
    """Scale each channel by a gate computed from the mean of all channels (Hu et al. 2018)."""
    gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
    gate = layers.Conv2D(squeezed, 1, activation="relu")(gate)
    gate = layers.Conv2D(x.shape[-1], 1, activation="sigmoid")(gate)
    return layers.Multiply()([x, gate])


def inverted_bottleneck(
    x,
    filters: int,
    kernel: int,
    strides: int,
    hidden: int,
    *,
    act: str = "relu6",
    squeezed: int = 0,
    dilation: int = 1,
):
    """Expand to `hidden` channels, depthwise, [squeeze-excite to `squeezed`,] project, add.

    No expansion where the input has `hidden` channels already; no addition where shapes change.
    Sandler et al. 2018, section 3.
    """
    channels = x.shape[-1]
    y = x if hidden == channels else conv_bn(x, hidden, 1, act=act)
    y = depthwise_bn(y, kernel, strides, act, dilation)
    y = squeeze_excite(y, squeezed) if squeezed else y
    y = conv_bn(y, filters, 1, act=None)
    return layers.Add()([x, y]) if strides == 1 and channels == filters else y


def add(branches: Sequence):
    """Sum of the branches, which may be a single one."""
    return layers.Add()(list(branches)) if len(branches) > 1 else branches[0]


def classify(x, classes: int):
    """Global average pooling, the last Dense layer (always called predictions), softmax."""
    x = layers.GlobalAveragePooling2D()(x)
    return layers.Dense(classes, activation="softmax", name="predictions")(x)


def channel_slice(x, start: int, count: int):
    """Channels `start` to `start + count` as one SLICE operator."""
    height, width = x.shape[1:3]
    return _ChannelSlice(start, (height, width, count))(x)


class _ChannelSlice(layers.Layer):
    def __init__(self, start: int, shape: tuple[int, int, int]):
        super().__init__()
        self.start, self.shape = start, shape

    def compute_output_shape(self, input_shape):
        return (input_shape[0], *self.shape)

    def call(self, x):
        import tensorflow as tf

        return tf.slice(x, [0, 0, 0, self.start], [-1, *self.shape])
