"""Finds and trains networks for a board: which ones fit, and what their skips cost.

`tflm-plan fit` uses `fitting`; everything else is for use from Python. `training` needs TensorFlow
or PyTorch, and Keras models (`keras_models`, `fit --build`) need TensorFlow. A network without
weights is a chain (`chains`), from a family or from a paper. With weights it is one of `networks`.
Functions here take chains and give chains or figures.

**Skips.** `selection` finds the skips that are alive at the peak. `residuals` removes them, or
replaces them by others (DERO, Mendis et al. 2024). ResNet8 needs 39,256 B. Removing two of its
three skips lowers that; replacing its skips does not:

>>> from functools import partial
>>> from tflm_planner.codesign.chains.papers import NETWORKS
>>> from tflm_planner.codesign.chains.residuals import ends, plain, reorganise, vanishing
>>> from tflm_planner.codesign.networks.selection import planned_memory, select
>>> from tflm_planner.tflm.targets import load_target
>>> resnet8 = NETWORKS["resnet8"]()
>>> memory_of = partial(planned_memory, target=load_target("cortex-m4/cmsis-nn"))
>>> memory_of(resnet8).arena, len(ends(resnet8))
(39164, 3)
>>> chosen = select(resnet8, plain, memory_of)
>>> chosen.memory.arena, len(chosen.changed)
(22252, 2)
>>> memory_of(reorganise(resnet8)).arena
42100

A model of your own is read as a chain (`networks.chain_of_model`), or with its weights as a network
(`networks.network_of_model`), if it is one path of layers with skips; else a ModelError says which
operator is not:

>>> from tflm_planner.codesign.networks.build import build
>>> from tflm_planner.codesign.networks.chain_of_model import chain_of
>>> from tflm_planner.model.serde import read_model
>>> mine = read_model(build(resnet8))  # read_model(Path("mine.tflite").read_bytes())
>>> chain_of(mine, "mine").chain.layers == resnet8.layers
True

**From training to the board.** Parts that only training needs are folded into the kernels
(`folding`): normalisations, and skips around single convolutions. `evaluate` computes a network in
numpy, so that a fold can be checked; `build` writes the model:

>>> import numpy as np
>>> from tflm_planner.codesign.networks.build import build_floats
>>> from tflm_planner.codesign.networks.evaluate import evaluate
>>> from tflm_planner.codesign.networks.folding import fold
>>> from tflm_planner.codesign.networks.weights import draw
>>> trained = draw(vanishing(resnet8), 0, "after")
>>> folded = fold(trained)
>>> images = np.random.default_rng(0).normal(size=(2, 32, 32, 3))
>>> bool(np.abs(evaluate(folded, images) - evaluate(trained, images)).max() < 1e-9)
True
>>> model = build_floats(folded)

**Receptive fields.** Patches recompute pixels where their windows overlap. `receptive_field` counts
these; `redistribution` moves large windows to the layers after the patches (MCUNetV2, Lin et al.
2021):

>>> from tflm_planner.codesign.chains.families import FAMILIES
>>> from tflm_planner.codesign.chains.redistribution import redistribute_field
>>> mobilenet = FAMILIES["mobilenet_v2"].make(224, 1.0, 0, 1000)
>>> moved = redistribute_field(mobilenet, layers=12, patches=4)
>>> moved.before.side, moved.after.side
(75, 67)
>>> moved.changes
('layer 7: window 3 -> 1', 'layer 43: window 3 -> 5')

**Search.** `joint.memory` decides whether a network fits: by bounds, by a plan, or by tiles.
`joint.evolution` searches a space of networks (`joint.space`) with this test and with a score that
you supply, and `joint.search_svg` draws the result:

>>> from tflm_planner.codesign.joint.memory import BoardLimits, FitQuestion, judge
>>> limits = BoardLimits(load_target("nano33ble"), arena=24 * 1024)
>>> for chain in (resnet8, chosen.chain):
...     verdict = judge(FitQuestion(chain, limits))
...     print(verdict.fits, verdict.by, verdict.arena)
False floor None
True plan 22252

**Training**, with TensorFlow or PyTorch: `training.loop` trains chains on images (`training.data`),
`training.super_network` trains all networks of a space at once, `training.rounding` writes a
trained network as an int8 model, and `training.detection` judges what is found on a grid of cells
(docs/training.md).
"""
