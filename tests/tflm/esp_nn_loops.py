"""The loops of ESP-NN's vector kernels on an ESP32-S3, written out as `kernel_loops` does."""

from collections.abc import Iterator

from tests.tflm.kernel_loops import Event, Shape, reference

EIGHT = 8


def convolution_on_s3(s: Shape) -> Iterator[Event]:
    """esp_nn_conv_s8_esp32s3 of images that need no padding: 1x1 of whole vectors, and windows."""
    is_pointwise = (s.kh, s.kw, s.sh, s.sw) == (1, 1, 1, 1)
    return pointwise_on_s3(s) if is_pointwise else reference(s)


def pointwise_on_s3(s: Shape) -> Iterator[Event]:
    """esp_nn_conv_s8_mult8_1x1_esp32s3: eight pixels are turned into scratch, then channel after
    channel of all eight is stored; pixels that are left are read again for every channel."""
    pixels = s.h * s.w
    for image in range(s.batch):
        at = image * pixels
        whole = pixels // EIGHT * EIGHT
        for first in range(at, at + whole, EIGHT):
            eight = range(first, first + EIGHT)
            for pixel in eight:
                yield from s.read(pixel, range(s.ci))
            for co in range(s.co):
                for pixel in eight:
                    yield from s.write(pixel, range(co, co + 1))
        for pixel in range(at + whole, at + pixels):
            for co in range(s.co):
                yield from s.read(pixel, range(s.ci))
                yield from s.write(pixel, range(co, co + 1))


def pointwise_fallback_on_s3(s: Shape) -> Iterator[Event]:
    """esp_nn_conv_s8_1x1 of 1.2.3: of channels that fill no vector each result reads again."""
    pixels = s.h * s.w
    vectors, rest = range(s.ci // EIGHT * EIGHT), range(s.ci // EIGHT * EIGHT, s.ci)
    for first in range(0, pixels // EIGHT * EIGHT, EIGHT):
        eight = range(first, first + EIGHT)
        for pixel in eight:
            yield from s.read(pixel, vectors)
        for co in range(s.co):
            for pixel in eight:
                yield from s.read(pixel, rest)
            for pixel in eight:
                yield from s.write(pixel, range(co, co + 1))
    for pixel in range(pixels // EIGHT * EIGHT, pixels):
        for co in range(s.co):
            yield from s.read(pixel, range(s.ci))
            yield from s.write(pixel, range(co, co + 1))
