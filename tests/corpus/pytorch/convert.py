"""Networks of PyTorch, converted by litert-torch and quantised by AI Edge Quantizer and PT2E.

python3 -m venv torch && torch/bin/pip install litert-torch torchvision
torch/bin/python -m tests.corpus.pytorch.convert FOLDER   an environment of its own
python -m tests.corpus --keep FOLDER --brought --write docs/corpus-pytorch.md
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.corpus.pytorch.blocks import TorchNetwork
from tests.corpus.pytorch.networks import NETWORKS

RECIPES = {
    "weights": "weight_only_wi8_afp32", "weights-int4": "weight_only_wi4_afp32",
    "dynamic": "dynamic_wi8_afp32", "int8": "static_wi8_ai8", "int16x8": "static_wi8_ai16",
}  # fmt: skip
"""Type in the corpus -> recipe of AI Edge Quantizer."""
SAMPLES = 4
"""Of the representative data."""


def convert(keep: Path) -> None:
    """Write every network in every type to `keep`, as `torch_NAME.KIND.tflite`."""
    keep.mkdir(parents=True, exist_ok=True)
    for name, network in NETWORKS.items():
        for kind, data in _files(name, network):
            (keep / f"torch_{name}.{kind}.tflite").write_bytes(data)
            print(name, kind, len(data), file=sys.stderr, flush=True)


def _files(name: str, network: TorchNetwork) -> Iterator[tuple[str, bytes]]:
    converter: Any = importlib.import_module("litert_torch")
    module, example = _made(network)
    plain = bytes(_exported(converter.convert(module, (example,))))
    yield "float32", plain
    for kind, recipe in RECIPES.items():
        yield kind, _quantised(plain, recipe, network)
    try:
        yield "int8-pt2e", _quantised_by_pt2e(converter, module, example)
    except Exception as error:  # whatever it is, it is the converter's
        print(name, "int8-pt2e", str(error)[:160].replace("\n", " "), file=sys.stderr)


def _made(network: TorchNetwork) -> tuple[Any, Any]:
    """The module, the same at every call, and an input."""
    t: Any = importlib.import_module("torch")
    t.manual_seed(0)
    module = network.make(t).eval()
    for part in module.modules():
        if hasattr(part, "running_mean") and part.running_mean is not None:
            part.running_mean.uniform_(-0.3, 0.3)
            part.running_var.uniform_(0.3, 1.2)
    words, shape = network.words, network.shape
    example = t.randint(0, words, shape) if words else t.randn(shape)
    if network.channels_last:
        to_last: Any = importlib.import_module("litert_torch").to_channel_last_io
        return to_last(module, args=[0]), example.permute(0, 2, 3, 1).contiguous()
    return module, example


def _exported(model: Any) -> bytes:
    path = Path("exported.tflite")
    model.export(str(path))
    data = path.read_bytes()
    path.unlink()
    return data


def _quantised(plain: bytes, recipe: str, network: TorchNetwork) -> bytes:
    aeq: Any = importlib.import_module("ai_edge_quantizer")
    recipes: Any = importlib.import_module("ai_edge_quantizer.recipe")
    quantizer = aeq.quantizer.Quantizer(bytearray(plain))
    quantizer.load_quantization_recipe(getattr(recipes, recipe)())
    samples = {"serving_default": [{"args_0": x} for x in _samples(network)]}
    calibrated = quantizer.calibrate(samples) if quantizer.need_calibration else None
    return bytes(quantizer.quantize(calibrated).quantized_model)


def _samples(network: TorchNetwork) -> Iterator[np.ndarray]:
    rng, shape = np.random.default_rng(7), network.shape
    if network.channels_last:
        shape = (shape[0], *shape[2:], shape[1])
    for _ in range(SAMPLES):
        if network.words:
            yield rng.integers(0, network.words, shape).astype(np.int32)
        else:
            yield rng.normal(0, 1, shape).astype(np.float32)


def _quantised_by_pt2e(converter: Any, module: Any, example: Any) -> bytes:
    t: Any = importlib.import_module("torch")
    pt2e: Any = importlib.import_module("torchao.quantization.pt2e.quantize_pt2e")
    quantizers: Any = importlib.import_module("litert_torch.quantize.pt2e_quantizer")
    config: Any = importlib.import_module("litert_torch.quantize.quant_config")
    symmetric = quantizers.get_symmetric_quantization_config(is_per_channel=True, is_dynamic=False)
    quantizer = quantizers.PT2EQuantizer().set_global(symmetric)
    prepared = pt2e.prepare_pt2e(t.export.export(module, (example,)).module(), quantizer)
    for _ in range(SAMPLES):
        prepared(example)
    made = pt2e.convert_pt2e(prepared, fold_quantize=False)
    asked = config.QuantConfig(pt2e_quantizer=quantizer)
    return bytes(_exported(converter.convert(made, (example,), quant_config=asked)))


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
