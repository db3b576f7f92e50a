"""Networks in ONNX, converted by onnx2tf, for `python -m tests.corpus --keep`.

    python3 -m venv onnx && onnx/bin/pip install onnx2tf     an environment of its own: it asks for
    onnx/bin/python tests/corpus/from_onnx.py FOLDER          another TensorFlow
    python -m tests.corpus --keep FOLDER                     takes them with the others

They have channels first, as PyTorch exports them, so that the converter turns what it must.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

KINDS = {
    "float32": "float32", "float16": "float16", "dynamic": "dynamic_range_quant",
    "int8-float": "integer_quant", "int8": "full_integer_quant",
    "int16x8": "full_integer_quant_with_int16_act",
}  # fmt: skip
"""Type in the corpus -> how onnx2tf calls the file."""
CALIBRATION = "calibration_image_sample_data_20x128x128x3_float32.npy"
"""onnx2tf fetches this file from the network where it does not lie in the working folder."""


class _Builder:
    """A graph under construction, a node after the other."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._rng = np.random.default_rng(0)

    def node(self, kind: str, *inputs: str, **fields: Any) -> str:
        from onnx import helper

        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [*inputs], [name], **fields))
        return name

    def weights(self, *shape: int) -> str:
        from onnx import numpy_helper

        name = f"w{len(self.constants)}"
        values = self._rng.normal(0, 0.3, shape).astype(np.float32)
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def conv(self, x: str, to: int, of: int, size: int = 3, **fields: Any) -> str:
        pads = [size // 2] * 4
        filters = self.weights(to, of, size, size)
        return self.node("Conv", x, filters, self.weights(to), pads=pads, **fields)

    def classes(self, x: str, channels: int) -> str:
        flat = self.node("Flatten", self.node("GlobalAveragePool", x))
        return self.node("Gemm", flat, self.weights(5, channels), self.weights(5), transB=1)


def _plain(b: _Builder) -> str:
    x = b.node("Relu", b.conv("x", 8, 3, strides=[2, 2]))
    return b.classes(b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), 8)


def _residual(b: _Builder) -> str:
    x = b.node("Relu", b.conv("x", 8, 3))
    y = b.conv(b.node("Relu", b.conv(x, 8, 8)), 8, 8)
    return b.classes(b.node("Relu", b.node("Add", x, y)), 8)


def _separable(b: _Builder) -> str:
    x = b.node("Relu", b.conv("x", 8, 3, strides=[2, 2]))
    x = b.node("Relu", b.conv(x, 8, 1, group=8))
    return b.classes(b.node("Relu", b.conv(x, 16, 8, size=1)), 16)


def _joined(b: _Builder) -> str:
    x = b.node("Relu", b.conv("x", 4, 3))
    y = b.node("Sigmoid", b.conv(x, 4, 4))
    return b.classes(b.node("Concat", x, y, axis=1), 8)


NETWORKS: dict[str, Callable[[_Builder], str]] = {
    "onnx_plain": _plain, "onnx_residual": _residual, "onnx_separable": _separable,
    "onnx_joined": _joined,
}  # fmt: skip


def _save(make: Callable[[_Builder], str], path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    builder = _Builder()
    last = make(builder)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 5])
    graph = helper.make_graph(builder.nodes, "network", [x], [y], builder.constants)
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def convert(keep: Path) -> None:
    """Write every network in every type to `keep`, as `NAME.KIND.tflite`."""
    keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        images = np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
        np.save(Path(folder) / CALIBRATION, images)
        for name, make in NETWORKS.items():
            _save(make, Path(folder) / f"{name}.onnx")
            call = ["onnx2tf", "-i", f"{name}.onnx", "-o", name, "-oiqt", "-n"]
            program = str(Path(sys.executable).parent / call[0])
            subprocess.run([program, *call[1:]], cwd=folder, check=True, capture_output=True)
            for kind, called in KINDS.items():
                made = Path(folder) / name / f"{name}_{called}.tflite"
                shutil.copy(made, keep / f"{name}.{kind}.tflite")


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
