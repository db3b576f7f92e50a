"""Networks for a board: which fit, what their skips cost, and training them.

`tflm-plan fit` reaches `fitting`; everything else is for Python, and needs no TensorFlow but in
`training`. A network is a chain (`chains`), of a family or of a paper, and with numbers one of
`networks`; every function here takes chains and gives chains or figures.

**Skips.** `selection` looks for those that the peak is made of. `residuals` takes them out, or puts
others in their place (DERO, Mendis et al. 2024). ResNet8 needs 39,256 B; of its three skips two
are to go, and with others in their place nothing is won:

>>> from functools import partial
>>> from tflm_planner.codesign.chains.papers import NETWORKS
>>> from tflm_planner.codesign.chains.residuals import ends, plain, reorganise
>>> from tflm_planner.codesign.networks.selection import planned_memory, select
>>> from tflm_planner.tflm.targets import load_target
>>> resnet8 = NETWORKS["resnet8"]()
>>> memory_of = partial(planned_memory, target=load_target("cortex-m4/cmsis-nn"))
>>> memory_of(resnet8).arena, len(ends(resnet8))
(39256, 3)
>>> chosen = select(resnet8, plain, memory_of)
>>> chosen.memory.arena, len(chosen.changed)
(22344, 2)
>>> memory_of(reorganise(resnet8)).arena
42208

**From training to the board.** What training has and inference need not pay for is folded into the
kernels (`folding`): normalisations, and skips around single convolutions. `evaluate` says in numpy
what a network computes, so that a fold can be checked; `build` writes the model:

>>> import numpy as np
>>> from tflm_planner.codesign.networks.build import build_floats
>>> from tflm_planner.codesign.networks.evaluate import evaluate
>>> from tflm_planner.codesign.networks.folding import fold
>>> from tflm_planner.codesign.networks.weights import draw
>>> trained = draw(plain(resnet8), 0, "after", "identity")
>>> folded = fold(trained)
>>> images = np.random.default_rng(0).normal(size=(2, 32, 32, 3))
>>> bool(np.abs(evaluate(folded, images) - evaluate(trained, images)).max() < 1e-9)
True
>>> model = build_floats(folded)

**Receptive fields.** Patches repeat what their windows share. `receptive_field` counts that,
`redistribution` moves windows to layers after the patches (MCUNetV2, Lin et al. 2021):

>>> from tflm_planner.codesign.chains.families import FAMILIES
>>> from tflm_planner.codesign.chains.redistribution import redistribute_field
>>> mobilenet = FAMILIES["mobilenet_v2"].make(224, 1.0, 0, 1000)
>>> moved = redistribute_field(mobilenet, layers=12, patches=4)
>>> moved.before.side, moved.after.side
(75, 67)
>>> moved.changes
('layer 7: window 3 -> 1', 'layer 43: window 3 -> 5')

**Search.** `joint.memory` judges whether a network fits, by bounds, by a plan, by tiles;
`joint.evolution` searches a space of networks (`joint.space`) by that and by a score of yours, and
`joint.search_svg` draws what it found:

>>> from tflm_planner.codesign.joint.memory import BoardLimits, FitQuestion, judge
>>> limits = BoardLimits(load_target("nano33ble"), arena=24 * 1024)
>>> for chain in (resnet8, chosen.chain):
...     verdict = judge(FitQuestion(chain, limits))
...     print(verdict.fits, verdict.by, verdict.arena)
False floor None
True plan 22344

**Training**, with TensorFlow: `training.loop` trains chains on images (`training.data`),
`training.supernet` all networks of a space at once, and `training.rounding` writes what was trained
as a model of int8 (docs/training.md).
"""
