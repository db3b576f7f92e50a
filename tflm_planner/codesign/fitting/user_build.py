"""Makes variants of a user's network by a function `file.py:function` that makes a Keras model.

    function(resolution, width, depth) --> Keras model --converter--> int8 model
                                       without skips: --chain--> plain chain --build--> int8 model

It needs TensorFlow, if nothing else is given that converts.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from tflm_planner.codesign.chains.families import Grid
from tflm_planner.codesign.chains.residuals import plain
from tflm_planner.codesign.chains.sizes import Floors, Size
from tflm_planner.codesign.fitting.variants import Variant, variant_of_chain
from tflm_planner.codesign.keras_models import Convert, keras_converter
from tflm_planner.codesign.networks.chain_of_model import chain_of
from tflm_planner.cost import latency_of
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tflm.target import Target
from tflm_planner.tiling.evaluate.equivalence import model_signature

MakeKeras = Callable[[int, float, int], Any]


def user_variants(
    spec: str,
    grid: Grid,
    target: Target,
    on_progress: Callable[[str], None],
    convert: Convert | None = None,
) -> list[Variant]:
    """All variants that a user's function makes, sorted by multiplications, most first. Of models
    that differ only in weights, as different widths may round to the same network, the first is
    taken. convert: turns what the function returns into the file of an int8 model; default is
    TensorFlow's converter. Raises UsageError if file, function, TensorFlow or resolutions are
    missing, or if the function fails; ModelError if skips are to be removed from a model that no
    chain holds."""
    if not grid.resolutions:
        raise UsageError("--build: say what the function is called with; add --resolutions 96,128")
    convert = convert or keras_converter()
    function = _function(spec)
    name = Path(spec.rpartition(":")[0]).stem
    by_network: dict[Hashable, Variant] = {}
    for depth, resolution, width in product(
        grid.depths or (0,), grid.resolutions, grid.widths or (1.0,)
    ):
        label = f"{name}_{width:g}_{resolution}" + f"_d{depth}" * bool(depth)
        on_progress(f"building {label}")
        try:
            with redirect_stdout(sys.stderr):  # what a user's code prints is no part of --json
                data = convert(function(resolution, width, depth))
        except (Exception, SystemExit) as error:  # whatever a user's code raises
            raise UsageError(
                f"{spec} fails for resolution {resolution}, width {width:g}, depth {depth}: "
                f"{type(error).__name__}: {error}"
            ) from error
        model = read_model(data)
        network = model_signature(model)
        if network in by_network:
            on_progress(f"{label} is the same network as {by_network[network].name}")
            continue
        variant = Variant(
            name=label,
            resolution=resolution,
            width=width,
            depth=depth,
            size=Size(latency_of(model, target).total.macs, *_parameters(model)),
            floors=floors_of_model(model),
            make=partial(bytes, data),  # the file is made already
        )
        by_network[network] = _without_skips(variant, model) if grid.plain else variant
    return sorted(by_network.values(), key=lambda v: (-v.size.macs, -v.size.parameters, v.name))


def _without_skips(variant: Variant, model: Model) -> Variant:
    """The variant without the skips of its model; itself if there are none. Raises ModelError if no
    chain holds the model, or if its widths cannot be redistributed."""
    try:
        read = chain_of(model, variant.name)
        chain = plain(read.chain)
    except (ModelError, ValueError) as error:
        raise ModelError(
            f"--plain cannot take the skips out of {variant.name}: {error}; without --plain it is "
            "fitted as it is"
        ) from error
    if chain is read.chain:
        return variant
    point = (variant.resolution, variant.width, variant.depth)
    return replace(variant_of_chain(chain, *point), notes=read.notes)


def floors_of_model(model: Model) -> Floors:
    """The lower bounds of `sizes.floors_of`, from the operators of a model. For a plan only the
    largest operand or result of each operator is counted, for a stock plan all its operands or all
    its results, whichever are more."""
    stock = plan = 0
    for op in model.main.ops:
        operands = [t.nbytes for t in _values(op)]
        results = [t.nbytes for t in op.outputs]
        plan = max(plan, *operands, *results, 0)
        stock = max(stock, sum(operands), sum(results))
    return Floors(stock, plan, sum(t.nbytes for t in model.main.inputs))


def _values(op: Op) -> Iterator[Tensor]:
    """The operands of an operator that are not constants, without duplicates."""
    return (t for t in dict.fromkeys(op.operands()) if not t.is_constant)


def _parameters(model: Model) -> tuple[int, int]:
    """The number of weights and biases, and their bytes."""
    constants = {t for op in model.ops() for t in op.operands() if t.is_constant}
    weights = [t for t in constants if not t.quantization.is_absent]
    unique = {t.buffer: t for t in weights}.values()
    return sum(t.elements for t in weights), sum(t.nbytes for t in unique)


def _function(spec: str) -> MakeKeras:
    """Load the function that `file.py:function` names. The file may import modules beside it, as a
    script may. Raises UsageError."""
    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not file or not name or not path.is_file():
        raise UsageError(f"--build {spec!r}: write FILE.py:FUNCTION, of a file that exists")
    module_spec = importlib.util.spec_from_file_location(f"_build_{path.stem}", path)
    if module_spec is None or module_spec.loader is None:
        raise UsageError(f"--build {spec!r}: {file} is no Python file")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module.__name__] = module  # dataclasses of the file look there
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with redirect_stdout(sys.stderr):
            module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a user's code raises
        raise UsageError(f"--build {spec!r}: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"--build {spec!r}: {file} has no function {name}")
    return function
