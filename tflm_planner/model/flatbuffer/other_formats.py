"""Files that people give in place of a .tflite model: what they are by their first bytes, and how
they become one."""

from __future__ import annotations

_KERAS = "convert it with tf.lite.TFLiteConverter.from_keras_model"
_TORCH = "of PyTorch with litert_torch.convert"
_ONNX = (b"\x08", b"\x12")
"""An ONNX file begins with the version of its format, of one byte, and its producer's name."""
_STARTS = (
    (b"PK\x03\x04", f"a zip archive, as .keras and .pt2 are; {_KERAS}, or a module {_TORCH}"),
    (b"\x89HDF", f"an HDF5 file, as Keras saves .h5; {_KERAS}"),
    (b"\x80\x02", f"a pickle, as PyTorch saved .pt; convert the module {_TORCH}"),
)
_SHOWN = 24
"""Bytes that are looked at to tell whether a file is text."""


def said_of(data: bytes) -> str:
    """What a file that is no TFLite model is, and what to do."""
    for start, words in _STARTS:
        if data.startswith(start):
            return words
    if (data[:1], data[2:3]) == _ONNX:
        return "an ONNX file; convert it with onnx2tf -i MODEL -oiqt"
    if data[:_SHOWN].isascii() and data[:_SHOWN].decode("ascii").replace("\n", " ").isprintable():
        return "a text; give the .tflite file itself, not a C array of it"
    identifier = data[4:8].decode("ascii", "replace").encode("unicode_escape").decode()
    return (
        f"bytes 4 to 7 are '{identifier}', expected 'TFL3'; give the .tflite file itself, not an "
        "archive, C array or SavedModel"
    )
