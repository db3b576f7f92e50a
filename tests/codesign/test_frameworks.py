"""Networks are trained on TensorFlow or on PyTorch, as `KERAS_BACKEND` says; each in a process of
its own, as one process has one of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from tests.frameworks import needs_framework
from tflm_planner.codesign.training.images import _decoded_by_pillow, _decoded_by_tensorflow

PROGRAM = """
import json
import numpy as np
from tflm_planner.codesign.chains.families import FAMILIES
from tflm_planner.codesign.framework import keras
from tflm_planner.codesign.training.data_set import split
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, round_network
from tflm_planner.codesign.training.trainable import untrained

random = np.random.default_rng(0)
labels = np.arange(120) % 2
images = random.normal(size=(120, 8, 8, 3)) + 2 * labels[:, None, None, None]
data = split("two", images.astype(np.float32), labels)
runs = []
for _ in range(2):
    network = untrained(FAMILIES["resnet8"].make(8, 0.5, 8, 2), 0)
    teacher = untrained(network.chain, 1).predict
    recipe = Recipe(epochs=8, batch=16, distilling=0.3)
    history = train(network, data, recipe, teacher=teacher)
    runs.append([[epoch.loss for epoch in history], network.predict(data.images[:5]).tolist()])
int8 = round_network(network, data, FINE_TUNING).of_int8
print(json.dumps([keras().config.backend(), runs, history[-1].accuracy, int8]))
"""


def trained_on(framework: str) -> list:
    """What the program above prints on a framework."""
    environment = {**os.environ, "KERAS_BACKEND": framework}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    backend, *found = json.loads(done.stdout.splitlines()[-1])
    assert backend == framework
    return found


@pytest.mark.long
@pytest.mark.parametrize("framework", ["tensorflow", "torch"])
def test_training_is_the_same_each_time(framework: str) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"needs {framework}")
    (first, second), floats, int8 = trained_on(framework)
    assert first == second
    assert first[0][-1] < first[0][0], "it learns"
    assert floats > 0.9 and int8 > 0.9


LARGE = """
import numpy as np
from tflm_planner.codesign.joint.space import SearchSpace, StageShape
from tflm_planner.codesign.training.data_set import split
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.trainable import untrained

stages = StageShape(16, 2), StageShape(24, 2), StageShape(40, 2)
space = SearchSpace(1, 2, 8, stages, (48,), kernels=(5,))
labels = np.arange(1200) % 2
images = np.random.default_rng(0).normal(size=(1200, 48, 48, 1)).astype(np.float32)
data = split("two", images, labels)
found = set()
for _ in range(2):
    network = untrained(space.decode(space.largest).chain(), 0)
    train(network, data, Recipe(epochs=1))
    found.add(b"".join(values.tobytes() for values in network.state().values()))
print(len(found))
"""


@pytest.mark.long
@needs_framework
def test_large_networks_are_the_same_each_time_too() -> None:
    """Where a batch takes much memory, TensorFlow would add the summands of a gradient as they
    come: one step in five of this network came out otherwise in the last digits."""
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


@pytest.mark.slow
def test_both_frameworks_train_alike() -> None:
    """Not bit by bit: sums are in other orders."""
    if find_spec("tensorflow") is None or find_spec("torch") is None:
        pytest.skip("needs TensorFlow and PyTorch")
    (one, _), *_ = trained_on("tensorflow")
    (other, _), *_ = trained_on("torch")
    assert np.allclose(one[0], other[0], rtol=1e-3)
    assert np.allclose(one[1], other[1], rtol=0.02, atol=0.02)


@pytest.mark.parametrize(
    ("backend", "blocked", "says"),
    [
        ("jax", None, "KERAS_BACKEND is jax; networks are trained here on tensorflow or torch"),
        ("torch", "torch", r"pip install 'tflm-planner\[codesign-torch\]'"),
        ("tensorflow", "tensorflow", r"pip install 'tflm-planner\[codesign\]'"),
    ],
)
def test_without_a_framework_it_is_said_what_to_install(
    backend: str, blocked: str | None, says: str
) -> None:
    program = (
        f"import sys\nsys.modules[{blocked!r}] = None\n"
        "from tflm_planner.codesign.framework import keras\n"
        "from tflm_planner.support.errors import UsageError\n"
        "import re\n"
        "try:\n    keras()\nexcept UsageError as error:\n"
        f"    assert re.search({says!r}, str(error)), error\n    print('said')\n"
    )
    environment = {**os.environ, "KERAS_BACKEND": backend}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "said", done.stderr


@needs_framework
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "P", "I;16"])
def test_both_decoders_of_images_read_the_same(mode: str, tmp_path) -> None:
    pytest.importorskip("tensorflow")
    pillow = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    if mode == "I;16":
        image = pillow.fromarray(random.integers(0, 65536, (7, 9)).astype(np.uint16))
    else:
        image = pillow.fromarray(random.integers(0, 256, (7, 9, 3)).astype(np.uint8)).convert(mode)
    image.save(tmp_path / "image.png")
    one, other = (
        decode(tmp_path / "image.png", 3) for decode in (_decoded_by_tensorflow, _decoded_by_pillow)
    )
    assert one.shape == (7, 9, 3) and np.array_equal(one, other)
