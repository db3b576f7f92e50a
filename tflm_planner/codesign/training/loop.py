"""The training loop. It gives the same numbers in every run, even if it was resumed.

    epoch: images in an order from (seed, epoch), shifted, mixed --> batches --> loss --> momentum
    after each: a row of the CSV log, a checkpoint from which the run can resume

It is SGD with Nesterov momentum, optionally with label smoothing, mixup
(Zhang et al. 2018) and distillation from another network (Hinton et al. 2015). The result is that
of the last epoch, not of the one that is best on the test images. It must not know what is trained.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from tflm_planner.codesign.chains.chain import Chain, steps
from tflm_planner.codesign.framework import array_of, compiled, gradients, keras
from tflm_planner.codesign.networks.weights import Array
from tflm_planner.codesign.training.data_set import DataSet
from tflm_planner.codesign.training.trainable import Trainable
from tflm_planner.support.errors import UsageError
from tflm_planner.support.files import check_writable, write_files
from tflm_planner.support.progress import Progress, Seldom, silent

Schedule = Literal["cosine", "steps"]
_STATISTICS = 0.9
"""Decay of moving means and variances in each step."""
_STEPS = 0.5, 0.75
"""Shares of all steps after which a schedule in steps lowers the rate, as He et al. 2016 did on
CIFAR-10."""
_LEAST_STEPS = 20
"""Warm-up steps, in which the learning rate rises."""
_REWRITTEN = 40 << 20
"""Bytes of the values of a batch up to which TensorFlow may rewrite the graph of a step, of which
it keeps about three times as many (`compiled`). Of a network with 77 MB one step in five came out
otherwise, in the last digits."""
_WITHIN_EPOCH = ", batch "
"""What lines of progress within an epoch have, and others have not."""


@dataclass(frozen=True)
class Recipe:
    """How to train. rate: the highest learning rate. schedule: how it falls after the warm-up:
    along a cosine down to 0, or to a tenth at half and again at three quarters of all steps. decay:
    weight decay. smoothing: share of each label that is spread over all classes. mixup: parameter
    of the beta distribution of mixup (0: no mixup). shift: the most pixels by which images are
    shifted. flips: whether half of the images are mirrored. distilling: weight of the distillation
    loss, which is the cross entropy with a teacher's probabilities at `temperature`. Raises
    ValueError for a schedule that does not exist."""

    epochs: int = 10
    batch: int = 64
    rate: float = 0.1
    schedule: Schedule = "cosine"
    momentum: float = 0.9
    decay: float = 1e-4
    smoothing: float = 0.1
    mixup: float = 0.0
    shift: int = 0
    flips: bool = False
    distilling: float = 0.0
    temperature: float = 4.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.schedule not in get_args(Schedule):
            names = ", ".join(get_args(Schedule))
            raise ValueError(f"schedule {self.schedule!r} is unknown; choose from {names}")


@dataclass(frozen=True)
class Epoch:
    """The figures of an epoch. rate: learning rate at its end. loss: mean over its batches.
    accuracy: on the test images, after the epoch (`Trainable.accuracy`)."""

    epoch: int
    rate: float
    loss: float
    accuracy: float


Teacher = Callable[[Array], Array]
"""Images -> scores."""


@dataclass(frozen=True)
class RunFiles:
    """The files of a run. log: a CSV with a row for each epoch. checkpoint: a numpy archive, from
    which a run with the same recipe, data and network resumes. Their folders must exist."""

    log: Path | None = None
    checkpoint: Path | None = None


def train(
    network: Trainable,
    data: DataSet,
    recipe: Recipe,
    files: RunFiles | None = None,
    teacher: Teacher | None = None,
    say: Progress = silent,
) -> list[Epoch]:
    """Train a network on a data set. Returns the figures of each epoch. say: gets a line after each
    epoch, and within one at most a line a second: how many batches are done, and their mean loss.
    Raises UsageError if the checkpoint is of another run, or if a file cannot be written."""
    files = files or RunFiles()
    for path in filter(None, (files.log, files.checkpoint)):
        check_writable(path, force=True)
    if (teacher is not None) != (recipe.distilling > 0):
        raise ValueError("distillation needs a teacher, and a share of the loss")
    state = _Training(network, recipe)
    run = _description(network, data, recipe)
    history = _resume(state, run, files.checkpoint)
    for epoch in range(len(history), recipe.epochs):
        loss = _train_epoch(state, data, recipe, epoch, teacher, Seldom(say))
        accuracy = network.accuracy(data.test_images, data.test_labels)
        rate = learning_rate(recipe, len(data.images), epoch + 1, 0)
        history.append(Epoch(epoch + 1, rate, loss, accuracy))
        say(f"epoch {epoch + 1} of {recipe.epochs}: loss {loss:.3f}, accuracy {accuracy:.3f}")
        _keep(state, history, run, files)
    return history


class _Training:
    """The state of a run: the network, and the momentum of each trained variable."""

    def __init__(self, network: Trainable, recipe: Recipe) -> None:
        self.network, self._recipe = network, recipe
        self.momenta = zero_momenta(network)
        values = _values_of(network.chain) * recipe.batch
        self.step = compiled(self._step, is_rewritten=values <= _REWRITTEN)

    def _step(self, images: Any, targets: Any, taught: Any, rate: Any) -> Any:
        """Train on one batch and return its loss. targets: probabilities of classes. taught: a
        teacher's scores."""
        ops, recipe, network = keras().ops, self._recipe, self.network
        moments: dict[str, Any] = {}

        def loss() -> Any:
            scores, found = network.scores(images, training=True)
            moments.update(found)
            distance = mean_cross_entropy(targets, scores)
            if not recipe.distilling:
                return distance
            warm = recipe.temperature
            taught_distance = mean_cross_entropy(ops.softmax(taught / warm), scores / warm)
            return (1 - recipe.distilling) * distance + recipe.distilling * (
                warm**2 * taught_distance
            )

        value, found = gradients(loss, list(network.trained.values()))
        descend(network, self.momenta, dict(zip(network.trained, found, strict=True)), recipe, rate)
        for name, moment in moments.items():
            moving = network.numbers[name]
            moving.assign(_STATISTICS * moving + (1 - _STATISTICS) * ops.stop_gradient(moment))
        return value


def _values_of(chain: Chain) -> int:
    """Bytes of the results of all layers for one image."""
    return sum(4 * math.prod(step.made) for step in steps(chain))


def zero_momenta(network: Trainable) -> dict[str, Any]:
    """A variable of zeros for each trained variable."""
    return {
        name: keras().Variable(np.zeros(variable.shape, np.float32), trainable=False)
        for name, variable in network.trained.items()
    }


def mean_cross_entropy(targets: Any, scores: Any) -> Any:
    """The mean cross entropy of scores with probabilities of classes."""
    ops = keras().ops
    return ops.mean(ops.categorical_crossentropy(targets, scores, from_logits=True))


def descend(
    network: Trainable,
    momenta: Mapping[str, Any],
    gradients: Mapping[str, Any],
    recipe: Recipe,
    rate: Any,
) -> None:
    """Take a step with Nesterov momentum along these gradients. Kernels alone decay."""
    for name, gradient in gradients.items():
        variable, momentum = network.trained[name], momenta[name]
        if name.endswith("kernel"):
            gradient = gradient + recipe.decay * variable
        momentum.assign(recipe.momentum * momentum + gradient)
        variable.assign(variable - rate * (gradient + recipe.momentum * momentum))


def learning_rate(recipe: Recipe, images: int, epoch: int, batch: int) -> float:
    """The learning rate of a batch, with `images` images per epoch: a warm-up, then what
    `Recipe.schedule` says."""
    in_epoch = math.ceil(images / recipe.batch)
    done, whole = epoch * in_epoch + batch, recipe.epochs * in_epoch
    rise = min(1.0, (done + 1) / min(_LEAST_STEPS, whole))
    if recipe.schedule == "steps":
        return recipe.rate * rise * 0.1 ** sum(done >= share * whole for share in _STEPS)
    return recipe.rate * rise * 0.5 * (1 + math.cos(math.pi * done / whole))


def _train_epoch(
    state: _Training,
    data: DataSet,
    recipe: Recipe,
    epoch: int,
    teacher: Teacher | None,
    seldom: Seldom,
) -> float:
    tensor = keras().ops.convert_to_tensor
    losses: list[float] = []
    for number, (images, targets) in enumerate(batches(data, recipe, epoch)):
        taught = np.zeros_like(targets) if teacher is None else teacher(images)
        rate = np.float32(learning_rate(recipe, len(data.images), epoch, number))
        given = (tensor(array) for array in (images, targets, taught, rate))
        losses.append(float(state.step(*given)))
        seldom.say(batches_done(recipe, epoch, len(data.images), losses))
    return float(np.mean(losses))


def batches_done(recipe: Recipe, epoch: int, images: int, losses: Sequence[float]) -> str:
    """The line of progress within an epoch of so many images. losses: of the batches done."""
    return (
        f"epoch {epoch + 1} of {recipe.epochs}{_WITHIN_EPOCH}{len(losses)} of "
        f"{math.ceil(images / recipe.batch)}: loss {np.mean(losses):.3f}"
    )


def epochs_only(say: Progress) -> Progress:
    """Progress without the lines within an epoch, for output that is kept, as that of a
    notebook."""

    def say_of_epochs(words: str) -> None:
        if _WITHIN_EPOCH not in words:
            say(words)

    return say_of_epochs


def batches(data: DataSet, recipe: Recipe, epoch: int) -> Iterator[tuple[Array, Array]]:
    """Yield the batches of an epoch: images, and probabilities of classes, which have a last axis
    more than the labels. Raises ValueError if images are to be moved or mirrored whose labels say
    where something is."""
    if data.labels.ndim > 1 and (recipe.shift or recipe.flips):
        raise ValueError("labels of cells do not move with images: neither shift nor flips")
    random = np.random.default_rng((recipe.seed, epoch))
    order = random.permutation(len(data.images))
    smooth = recipe.smoothing / data.classes
    for first in range(0, len(order), recipe.batch):
        chosen = order[first : first + recipe.batch]
        images = _moved(data.images[chosen], recipe, random)
        labels = data.labels[chosen]
        targets = np.full((*labels.shape, data.classes), smooth, np.float32)
        each = targets.reshape(-1, data.classes)
        each[np.arange(labels.size), labels.ravel()] += 1 - recipe.smoothing
        if recipe.mixup:
            share = np.float32(random.beta(recipe.mixup, recipe.mixup))
            other = random.permutation(len(chosen))
            images = share * images + (1 - share) * images[other]
            targets = share * targets + (1 - share) * targets[other]
        yield images, targets


def _moved(images: Array, recipe: Recipe, random: np.random.Generator) -> Array:
    """Images shifted by a few pixels, each by its own random amount, with edge pixels repeated;
    some are mirrored."""
    if recipe.flips:
        is_flipped = random.random(len(images)) < 0.5
        images = np.where(is_flipped[:, None, None, None], images[:, :, ::-1], images)
    if not recipe.shift:
        return images
    most = recipe.shift
    height, width = images.shape[1:3]
    padded = np.pad(images, ((0, 0), (most, most), (most, most), (0, 0)), mode="edge")
    places = random.integers(0, 2 * most + 1, (len(images), 2))
    moved = (
        image[top : top + height, left : left + width]
        for image, (top, left) in zip(padded, places, strict=True)
    )
    return np.stack(list(moved))


def _description(network: Trainable, data: DataSet, recipe: Recipe) -> dict[str, Any]:
    """What must be equal for a run to go on from a checkpoint: the recipe, the data's name, shape
    and labels, and the network's shapes. Its first weights and a teacher are not looked at."""
    labels = hashlib.sha256(data.labels.tobytes()).hexdigest()
    shapes = {name: list(variable.shape) for name, variable in network.numbers.items()}
    return {
        "recipe": asdict(recipe),
        "data": [data.name, list(data.images.shape), labels],
        "network": shapes,
    }


def _resume(state: _Training, run: Mapping[str, Any], path: Path | None) -> list[Epoch]:
    """Load a checkpoint, if there is one. Returns the figures of its epochs. Raises UsageError if
    it is of another run."""
    if path is None or not path.is_file():
        return []
    with np.load(path) as kept:
        about = json.loads(str(kept["about"]))
        if {name: about.get(name) for name in run} != run:
            raise UsageError(f"{path} is of another training; name another file, or remove it")
        state.network.load({name: kept[f"number/{name}"] for name in state.network.numbers})
        for name, momentum in state.momenta.items():
            momentum.assign(kept[f"momentum/{name}"])
    return [Epoch(*row) for row in about["history"]]


def _keep(
    state: _Training, history: Sequence[Epoch], run: Mapping[str, Any], files: RunFiles
) -> None:
    """Write the log and the checkpoint, either both or none."""
    contents: dict[Path, bytes] = {}
    if files.log is not None:
        contents[files.log] = _log_text(history).encode()
    if files.checkpoint is not None:
        about = {**run, "history": [astuple(epoch) for epoch in history]}
        arrays: dict[str, Any] = {
            f"number/{name}": values for name, values in state.network.state().items()
        }
        arrays |= {f"momentum/{name}": array_of(v) for name, v in state.momenta.items()}
        archive = io.BytesIO()
        np.savez(archive, about=np.array(json.dumps(about)), **arrays)
        contents[files.checkpoint] = archive.getvalue()
    write_files(contents)


def _log_text(history: Sequence[Epoch]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Epoch))
    writer.writerows(astuple(epoch) for epoch in history)
    return text.getvalue()
