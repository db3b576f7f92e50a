"""Damages at the level of the schema: a flatbuffer that is sound, of a model that is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.seeds import Rng
from tests.models.build import schema

WILD = [
    -2, -1, 0, 1, 2, 3, 7, 15, 16, 127, 128, 255, 256, 32767, 65535, 1 << 20, 1 << 28,
    (1 << 31) - 1, -(1 << 31), 1 << 30, -17,
]  # fmt: skip


def _pick(items: Any, rng: Rng) -> Any:
    return items[int(rng.integers(len(items)))] if items is not None and len(items) else None


def _wild(rng: Rng) -> int:
    return WILD[int(rng.integers(len(WILD)))]


def _graph(model: Any, rng: Rng) -> Any:
    return _pick(model.subgraphs, rng) or schema.SubGraphT()


def _operator(model: Any, rng: Rng) -> Any:
    return _pick(_graph(model, rng).operators, rng) or schema.OperatorT()


def _tensor(model: Any, rng: Rng) -> Any:
    return _pick(_graph(model, rng).tensors, rng) or schema.TensorT()


def _set_one(thing: Any, field: str, value: int, rng: Rng) -> None:
    listed = [int(v) for v in getattr(thing, field)] if getattr(thing, field) is not None else []
    if listed:
        listed[int(rng.integers(len(listed)))] = value
    else:
        listed = [value]
    setattr(thing, field, listed)


def wild_operand(model: Any, rng: Rng) -> None:
    field = _pick(["inputs", "outputs", "intermediates"], rng)
    _set_one(_operator(model, rng), field, _wild(rng), rng)


def other_operand(model: Any, rng: Rng) -> None:
    """A valid index, but another: cycles, two producers, reads before writes."""
    graph = _graph(model, rng)
    op = _pick(graph.operators, rng)
    if op is not None and graph.tensors:
        field = _pick(["inputs", "outputs"], rng)
        _set_one(op, field, int(rng.integers(len(graph.tensors))), rng)


def wild_graph_port(model: Any, rng: Rng) -> None:
    graph = _graph(model, rng)
    value = _wild(rng) if rng.random() < 0.5 else int(rng.integers(len(graph.tensors or [0])))
    _set_one(graph, _pick(["inputs", "outputs"], rng), value, rng)


def wild_shape(model: Any, rng: Rng) -> None:
    tensor = _tensor(model, rng)
    tensor.shapeSignature = tensor.shapeSignature if rng.random() < 0.5 else [-1]
    _set_one(tensor, "shape", _wild(rng), rng)


def other_rank(model: Any, rng: Rng) -> None:
    rank = int(rng.integers(0, 9)) if rng.random() < 0.95 else 3000
    _tensor(model, rng).shape = [int(v) for v in rng.integers(0, 9, rank)]


def other_type(model: Any, rng: Rng) -> None:
    _tensor(model, rng).type = int(rng.integers(-3, 22))


def flag_tensor(model: Any, rng: Rng) -> None:
    tensor = _tensor(model, rng)
    tensor.isVariable = bool(rng.integers(2))
    tensor.buffer = int(rng.integers(0, len(model.buffers or [0]) + 1))


def odd_name(model: Any, rng: Rng) -> None:
    names = [None, b"", b"a\nb", b"\x1b[31m", b"\xff\xfe", b"x" * 5000, "ü→".encode(), b"\x00"]
    things = [_tensor(model, rng), _graph(model, rng)]
    things += list(model.metadata or [])
    _pick(things, rng).name = _pick(names, rng)
    if rng.random() < 0.3 and model.operatorCodes:
        code = _pick(model.operatorCodes, rng)
        code.customCode = _pick(names, rng)
        code.builtinCode = schema.BuiltinOperator.CUSTOM


def other_code(model: Any, rng: Rng) -> None:
    """Another kind of operator over the same operands and options."""
    code = _pick(model.operatorCodes, rng)
    if code is not None:
        value = int(rng.integers(-2, 215)) if rng.random() < 0.9 else _wild(rng)
        code.builtinCode, code.deprecatedBuiltinCode = value, min(max(value, -128), 127)


_MEANT = [
    "ADD", "CONCATENATION", "PACK", "UNPACK", "SPLIT", "SPLIT_V", "SLICE", "SOFTMAX", "RESHAPE",
    "MEAN", "SUM", "REDUCE_MAX", "ADD_N", "TRANSPOSE_CONV", "SVDF", "MIRROR_PAD", "WHILE", "IF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM", "CONV_2D", "VAR_HANDLE", "CALL_ONCE", "QUANTIZE", "SQUEEZE",
]  # fmt: skip


def known_code(model: Any, rng: Rng) -> None:
    """An operator that the tool has a rule for, over operands that it does not fit."""
    code = _pick(model.operatorCodes, rng)
    if code is not None:
        value = getattr(schema.BuiltinOperator, _pick(_MEANT, rng))
        code.builtinCode, code.deprecatedBuiltinCode = value, min(value, 127)


_OPTIONS = [n for n in vars(schema.BuiltinOptions) if not n.startswith("_") and n != "NONE"]


def other_options(model: Any, rng: Rng) -> None:
    """Options of another operator, or none."""
    op = _operator(model, rng)
    if rng.random() < 0.3:
        op.builtinOptions, op.builtinOptionsType = None, 0
    else:
        name = _pick(_OPTIONS, rng)
        op.builtinOptions = getattr(schema, f"{name}T")()
        op.builtinOptionsType = getattr(schema.BuiltinOptions, name)


def wild_option(model: Any, rng: Rng) -> None:
    options = _operator(model, rng).builtinOptions
    numbers = [n for n, v in vars(options).items() if isinstance(v, int)] if options else []
    name = _pick(numbers, rng)
    if name is not None:
        setattr(options, name, _wild(rng) if rng.random() < 0.5 else int(rng.integers(-5, 6)))


def call_graph(model: Any, rng: Rng) -> None:
    """Control flow to a graph that exists: self-calls, shared bodies, wrong arity."""
    op, count = _operator(model, rng), len(model.subgraphs or [0])
    name = _pick(["WhileOptions", "IfOptions", "CallOnceOptions"], rng)
    kind = {"WhileOptions": "WHILE", "IfOptions": "IF", "CallOnceOptions": "CALL_ONCE"}[name]
    options = getattr(schema, f"{name}T")()
    for field in vars(options):
        setattr(options, field, int(rng.integers(-1, count + 1)))
    op.builtinOptions, op.builtinOptionsType = options, getattr(schema.BuiltinOptions, name)
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, kind)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    model.operatorCodes = [*(model.operatorCodes or []), code]
    op.opcodeIndex = len(model.operatorCodes) - 1


def drop_field(model: Any, rng: Rng) -> None:
    things = [model, _graph(model, rng), _operator(model, rng), _tensor(model, rng)]
    things += [_pick(model.buffers, rng), _pick(model.signatureDefs, rng)]
    things += [_pick(model.metadata, rng), _tensor(model, rng).quantization]
    thing = _pick([t for t in things if t is not None], rng)
    fields = [n for n, v in vars(thing).items() if v is not None and not isinstance(v, int)]
    if fields:
        setattr(thing, _pick(fields, rng), None)


def repeat_item(model: Any, rng: Rng) -> None:
    """An operator, tensor, graph or input listed twice."""
    _change_some_list(
        model, rng, lambda items: items.insert(int(rng.integers(len(items) + 1)), _pick(items, rng))
    )


def drop_item(model: Any, rng: Rng) -> None:
    _change_some_list(model, rng, lambda items: items.pop(int(rng.integers(len(items)))))


def _change_some_list(model: Any, rng: Rng, change: Callable[[list[Any]], object]) -> None:
    """Change a copy of a list of the model or of a graph, and put it in the list's place."""
    graph = _graph(model, rng)
    owner = _pick([model, graph, graph], rng)
    lists = [n for n, v in vars(owner).items() if isinstance(v, list) and v]
    if lists:
        name = _pick(lists, rng)
        items = list(getattr(owner, name))
        change(items)
        setattr(owner, name, items)


def shuffle_operators(model: Any, rng: Rng) -> None:
    graph = _graph(model, rng)
    if graph.operators:
        graph.operators = [graph.operators[i] for i in rng.permutation(len(graph.operators))]


def spoil_buffer(model: Any, rng: Rng) -> None:
    buffer = _pick(model.buffers, rng) or schema.BufferT()
    data = rng.integers(0, 256, int(rng.integers(0, 40)), np.uint8)
    choice = int(rng.integers(4))
    if choice == 0:
        buffer.data = data
    elif choice == 1 and buffer.data is not None:
        buffer.data = np.array(buffer.data)[: int(rng.integers(len(buffer.data) + 1))]
    elif choice == 2:
        buffer.offset, buffer.size = int(rng.integers(0, 5000)), int(rng.integers(0, 5000))
    else:
        buffer.offset, buffer.size = (1 << 62) + 7, (1 << 63) - 1


def wild_constant(model: Any, rng: Rng) -> None:
    """A number of an axis, a permutation, a padding or a slice."""
    graph = _graph(model, rng)
    operands = [[] if op.inputs is None else op.inputs[1:] for op in graph.operators or []]
    read = [i for some in operands for i in some if 0 <= i < len(graph.tensors or [])]
    of = [graph.tensors[i] for i in read if graph.tensors[i].type == schema.TensorType.INT32]
    with_data = [t for t in of if 0 <= t.buffer < len(model.buffers or [])]
    tensor = _pick(with_data, rng)
    data = None if tensor is None else model.buffers[tensor.buffer].data
    if data is not None and 4 <= len(data) <= 64:
        values = np.array(data, np.uint8)[: len(data) // 4 * 4].view("<i4").copy()
        values[int(rng.integers(len(values)))] = _pick([*range(-5, 6), _wild(rng)], rng)
        model.buffers[tensor.buffer].data = values.view(np.uint8)


def wild_scale(model: Any, rng: Rng) -> None:
    quantization = _tensor(model, rng).quantization
    if quantization is not None and quantization.scale is not None and len(quantization.scale):
        scales = np.array(quantization.scale, np.float32)
        wild = [0.0, -1.0, np.nan, np.inf, 1e-40, 1e30]
        scales[int(rng.integers(len(scales)))] = _pick(wild, rng)
        quantization.scale = scales


def wild_quantization(model: Any, rng: Rng) -> None:
    """Vectors of scales and zero points: wild numbers, other lengths, none, along another axis."""
    tensors = [t for t in _graph(model, rng).tensors or [] if t.quantization is not None]
    tensor = _pick(tensors, rng)
    if tensor is None:
        return
    quantization, choice = tensor.quantization, int(rng.integers(4))
    name = _pick(["scale", "zeroPoint"], rng)
    values = getattr(quantization, name)
    if choice == 0 or values is None or not len(values):
        quantization.quantizedDimension = _pick([*range(-2, 5), _wild(rng)], rng)
    elif choice == 1:
        points = np.array(quantization.zeroPoint if quantization.zeroPoint is not None else [0])
        points[int(rng.integers(len(points)))] = _pick([-129, 128, 1 << 40, _wild(rng)], rng)
        quantization.zeroPoint = points.astype(np.int64)
    elif choice == 2:
        count = int(rng.integers(0, 2 * len(values) + 2))
        setattr(quantization, name, np.resize(np.array(values), count))
    else:
        setattr(quantization, name, None)


def forge_plan(model: Any, rng: Rng) -> None:
    """An offline plan of wild offsets, or of a wrong length."""
    count = sum(len(g.tensors or []) for g in model.subgraphs or [])
    offsets = [
        _wild(rng) if rng.random() < 0.3 else 16 * int(rng.integers(40)) for _ in range(count)
    ]
    words = [1, len(model.subgraphs or []), count + int(rng.random() < 0.2), *offsets]
    buffer, entry = schema.BufferT(), schema.MetadataT()
    buffer.data = np.array(words, "<i4").view(np.uint8)
    model.buffers = [*(model.buffers or []), buffer]
    entry.name, entry.buffer = b"OfflineMemoryAllocation", len(model.buffers) - 1
    model.metadata = [*(model.metadata or []), entry]


def wild_index(model: Any, rng: Rng) -> None:
    """Indices that are not operands."""
    choices = [(_operator(model, rng), "opcodeIndex"), (_tensor(model, rng), "buffer")]
    choices += [(m, "buffer") for m in model.metadata or []]
    choices += [(s, "subgraphIndex") for s in model.signatureDefs or []]
    choices += [(e, "tensorIndex") for s in model.signatureDefs or [] for e in s.inputs or []]
    thing, field = _pick(choices, rng)
    setattr(thing, field, abs(_wild(rng)))


SCHEMA: list[Callable[[Any, Rng], None]] = [
    wild_operand, other_operand, other_operand, wild_graph_port, wild_shape, wild_shape,
    other_rank, other_type, flag_tensor, odd_name, other_code, known_code, known_code,
    other_options, wild_option, call_graph, drop_field, repeat_item, drop_item,
    shuffle_operators, spoil_buffer, forge_plan, wild_index,
    wild_constant, wild_constant, wild_scale, wild_quantization, wild_quantization,
]  # fmt: skip
