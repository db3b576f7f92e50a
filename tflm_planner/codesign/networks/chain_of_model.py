"""Reads a model as a chain: the reverse of `build`, for models that somebody else made.

    parts, from the result back to the image, along the longer side of each sum and concatenation
      image --> layer --> layer --> layer --> ... --> result        the path: layers
                  |                   ^
                  +-- 1x1, or nothing-+                             the other side: a skip

A model that is more than one path with skips is refused. Weights are read by `network_of_model`. It
must not know of which operators a part is made (`model_parts`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tflm_planner.codesign.chains.chain import Chain, Join, Layer, Shape, steps
from tflm_planner.codesign.networks.model_parts import ModelPart, ModelParts, parts_of, refuse
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.support.errors import ModelError


@dataclass(frozen=True)
class ReadChain:
    """A model as a chain. notes: what the chain holds otherwise than the model. parts: for each
    layer the parts that it was made of: of the layer itself (None for one that only joins) and of
    the convolution on its skip (None if there is none). is_exact: whether it computes what the
    model does, if it gets the same weights."""

    chain: Chain
    notes: tuple[str, ...]
    parts: tuple[tuple[ModelPart | None, ModelPart | None], ...]
    is_exact: bool


@dataclass(frozen=True)
class _Sides:
    """The two operands of a sum or a concatenation. main: the one along which the path goes on.
    source: where the skip starts. projection: the 1x1 convolution on it. is_swapped: whether the
    skip is the second operand."""

    main: Tensor
    source: Tensor
    projection: ModelPart | None
    is_swapped: bool


def chain_of(model: Model, name: str) -> ReadChain:
    """The chain of a model. name: for the chain. Raises ModelError, with the operator and the
    reason, for a model that no chain holds."""
    parts = parts_of(model.main)
    shape = parts.image.shape or ()
    if len(shape) != 4 or shape[0] != 1:
        raise ModelError(
            f"a chain takes one image (1, rows, columns, channels), {name} takes {list(shape)}"
        )
    reading = _Path(parts)
    for part in reading.parts():
        reading.append(part)
    _check_all_used(parts, reading.used)
    image: Shape = (shape[1], shape[2], shape[3])
    chain = Chain(name, image, tuple(reading.layers), _dense_scales(model))
    _check_shapes(chain, reading.values)
    is_exact = not reading.swapped and not parts.moved
    notes = tuple(_notes(parts, reading.swapped))
    return ReadChain(chain, notes, tuple(reading.made_of), is_exact)


class _Path:
    """The path of a model, and the layers that were made of it. values: the operand of each layer,
    then the result of the last."""

    def __init__(self, parts: ModelParts) -> None:
        self._parts = parts
        self._before = _ancestors(parts)
        self._readers = _readers(parts)
        self.layers: list[Layer] = []
        self.values: list[Tensor] = [parts.image]
        self.made_of: list[tuple[ModelPart | None, ModelPart | None]] = []
        self.used: set[Tensor] = set()
        self.swapped: list[Op] = []

    def parts(self) -> Sequence[ModelPart]:
        """The parts of the path, from the image on."""
        found: list[ModelPart] = []
        value = self._parts.result
        while value is not self._parts.image:
            part = self._parts.by_result.get(value)
            if part is None:
                raise ModelError(f"no operator makes {value.name!r}, which the model reads")
            found.append(part)
            value = part.operands[0] if len(part.operands) == 1 else self._sides(part).main
        return found[::-1]

    def append(self, part: ModelPart) -> None:
        """Append the layer of a part, or join a skip to the last layer."""
        self.used.add(part.result)
        if len(part.operands) == 1:
            self.layers.append(part.layer)
            self.made_of.append((part, None))
            self.values.append(part.result)
            return
        sides = self._sides(part)
        if sides.projection is not None:
            self.used.add(sides.projection.result)
        if sides.source not in self.values:
            refuse(part.op, "joins a value that lies beside the path, not on it")
        if sides.is_swapped and part.layer.join == "concat":
            self.swapped.append(part.op)
        start = self.values.index(sides.source)
        joined = self._joined(part, sides)
        if joined is None:
            self.layers.append(_join_layer(part, sides))
            self.made_of.append((None, sides.projection))
            self.values.append(part.result)
        else:
            self.layers[-1] = joined
            self.made_of[-1] = self.made_of[-1][0], sides.projection
            self.values[-1] = part.result
        self.layers[-1] = replace(self.layers[-1], skip=len(self.layers) - start)

    def _joined(self, part: ModelPart, sides: _Sides) -> Layer | None:
        """The last layer with the skip; None if the join must be a layer of its own."""
        last, projection = self.layers[-1], sides.projection
        alone = self._readers[sides.main] == 1 and not last.skip and last.kind in ("conv", "norm")
        if not alone:
            return None
        if part.layer.join == "concat":
            if projection is None:
                return replace(last, join="concat")
            if projection.layer.activation != last.activation:
                return None
            return replace(last, join="concat", branch=projection.layer.channels_out)
        if last.activation == "none":
            return replace(last, activation=part.layer.activation)
        late: Join = "late sum"
        is_late = projection is None and part.layer.activation == "none"
        return replace(last, join=late) if is_late else None

    def _sides(self, part: ModelPart) -> _Sides:
        """Which operand is the skip: one that the other was made of, or a 1x1 convolution of
        one."""
        first, second = part.operands
        plain = (
            _Sides(second, first, None, False) if first in self._before[second] else None,
            _Sides(first, second, None, True) if second in self._before[first] else None,
        )
        projected = (
            self._projected(part, second, first, is_swapped=False),
            self._projected(part, first, second, is_swapped=True),
        )
        for sides in (*plain, *projected):
            if sides is not None and first is not second:
                return sides
        refuse(part.op, "joins two branches, neither of which starts on the other or is one 1x1 "
               "convolution of it: a chain is one path with skips")  # fmt: skip

    def _projected(
        self, part: ModelPart, main: Tensor, other: Tensor, *, is_swapped: bool
    ) -> _Sides | None:
        """The sides if the other one is a 1x1 convolution as chains have them on skips."""
        made = self._parts.by_result.get(other)
        if made is None or made.layer.kind != "conv" or self._readers[other] != 1:
            return None
        layer, source = made.layer, made.operands[0]
        if layer.kernel != (1, 1) or layer.groups != 1 or source not in self._before[main]:
            return None
        if part.layer.join == "concat":
            fits = layer.stride == 1
        else:
            fits = layer.activation == "none" and source.shape != other.shape
        return _Sides(main, source, made, is_swapped) if fits else None


def _join_layer(part: ModelPart, sides: _Sides) -> Layer:
    """A layer that only joins a skip."""
    if part.layer.join == "sum" or sides.projection is None:
        return part.layer
    branch = sides.projection.layer
    return replace(part.layer, activation=branch.activation, branch=branch.channels_out)


def _ancestors(parts: ModelParts) -> dict[Tensor, frozenset[Tensor]]:
    """The values that each value was made of, and itself."""
    found = {parts.image: frozenset((parts.image,))}
    for result, part in parts.by_result.items():
        made_of = (found.get(value, frozenset[Tensor]()) for value in part.operands)
        found[result] = frozenset((result,)).union(*made_of)
    return found


def _readers(parts: ModelParts) -> dict[Tensor, int]:
    """How many parts read each value."""
    counts = dict.fromkeys((parts.image, *parts.by_result), 0)
    for part in parts.by_result.values():
        for value in part.operands:
            counts[value] = counts.get(value, 0) + 1
    return counts


def _check_all_used(parts: ModelParts, used: set[Tensor]) -> None:
    for result, part in parts.by_result.items():
        if result not in used:
            refuse(part.op, "lies beside the path: a chain is one path with skips")


def _check_shapes(chain: Chain, values: Sequence[Tensor]) -> None:
    """Compare the shapes of the chain with those of the model."""
    try:
        shapes = [step.shape_out for step in steps(chain)]
    except ValueError as error:
        raise ModelError(f"no chain holds this model: {error}") from error
    for shape, value in zip(shapes, values[1:], strict=True):
        given = (1, 1, *(value.shape or ()))[-3:]
        if shape != given:
            raise ModelError(
                f"no chain holds this model: {value.name!r} has the shape {list(value.shape or ())}"
                f", in a chain it would be {list(shape)}"
            )


def _dense_scales(model: Model) -> Literal["rows", "one"]:
    """How the weights of dense layers are quantised."""
    weights = [op.operands()[1] for op in model.main.ops if op.kind == "FULLY_CONNECTED"]
    scales = [t.quantization for t in weights if t.quantization.scales]
    return "one" if scales and not any(q.is_per_channel for q in scales) else "rows"


def _notes(parts: ModelParts, swapped: Sequence[Op]) -> Iterator[str]:
    remarks = dict(parts.remarks)
    if swapped:
        remarks["the skip is its first operand, not its second"] = [*swapped]
    for words, ops in remarks.items():
        more = f" and {len(ops) - 1} more" if ops[1:] else ""
        yield f"{ops[0].label}{more}: {words}"
    kinds = {t.type_name for t in (parts.image, *parts.by_result)}
    if kinds != {"int8"}:
        yield f"values are {', '.join(sorted(kinds))}; figures are of the same network in int8"
