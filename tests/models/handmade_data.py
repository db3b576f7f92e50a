"""Hand-built models for tensors, buffers and the layout of the file."""

import struct

import numpy as np

from tests.models.build import Net, fill, schema
from tests.models.registry import IMAGE, SCALE, add, conv, handmade, noise, relu, start

# --- number formats -------------------------------------------------------------------------


@handmade()
def per_tensor_weights() -> bytes:
    """A convolution with one scale for all channels, and min and max recorded."""
    net, graph, x = start()
    y = conv(graph, x, IMAGE, per_channel=False)
    graph.table.tensors[y].quantization.min = [-6.55]
    graph.table.tensors[y].quantization.max = [6.2]
    graph.outputs(y)
    return net.finish()


@handmade()
def float_model() -> bytes:
    """A float convolution and a SOFTMAX."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", IMAGE, "float32")
    weights = graph.constant("filter", noise((3, 3, 3, 4)) / 500, "float32")
    bias = graph.constant("bias", [0.1, -0.2, 0.3], "float32")
    y = graph.tensor("conv", (1, 2, 2, 3), "float32")
    options = {"padding": 1, "strideH": 2, "strideW": 2}
    options |= {"dilationHFactor": 1, "dilationWFactor": 1}
    graph.op("CONV_2D", [x, weights, bias], [y], "Conv2DOptions", **options)
    out = graph.tensor("probability", (1, 2, 2, 3), "float32")
    graph.op("SOFTMAX", [y], [out], "SoftmaxOptions", beta=1.0)
    graph.outputs(out)
    return net.finish()


def _dense(
    dtype: str, weights_type: str, weights: np.ndarray | bytes, bias: str | None, **fields: object
) -> bytes:
    net = Net()
    graph = net.graph()
    scale = {} if dtype == "float32" else {"scale": 0.001 if dtype == "int16" else SCALE}
    x = graph.input("x", (1, 16), dtype, **scale)
    filters = graph.tensor("weights", (6, 16), weights_type, data=weights, scale=0.02)
    operands = [x, filters, -1]
    if bias is not None:
        steps = {} if bias == "float32" else {"scale": 0.02 * scale["scale"]}
        values = np.linspace(-0.5, 0.5, 6) / (steps.get("scale", 1.0))
        operands[2] = graph.constant("bias", values, bias, **steps)
    y = graph.tensor("y", (1, 6), dtype, **scale)
    graph.op("FULLY_CONNECTED", operands, [y], "FullyConnectedOptions", **fields)
    graph.outputs(y)
    return net.finish()


@handmade()
def int16_activations() -> bytes:
    """int16 activations, int8 weights, int64 bias."""
    return _dense("int16", "int8", noise((6, 16)).astype(np.int8), "int64", version=7)


@handmade(tflm=False)
def dynamic_range() -> bytes:
    """Float activations, int8 weights: TFLM has no such kernel."""
    weights = noise((6, 16)).astype(np.int8)
    return _dense("float32", "int8", weights, "float32", version=3)


@handmade()
def int4_weights() -> bytes:
    """Weights of four bits, two in a byte."""
    nibbles = noise((48,), 0, 255).astype(np.uint8)
    return _dense("int8", "int4", nibbles.tobytes(), "int32", version=10)


@handmade(litert=False, tflm=False)
def strings() -> bytes:
    """A string constant and a string input, for an operator nobody has."""
    net = Net()
    graph = net.graph()
    words = [b"yes", b"", b"no"]
    ends = np.cumsum([4 * (len(words) + 2), *(len(word) for word in words)])
    header = struct.pack(f"<{len(ends) + 1}i", len(words), *ends)
    labels = graph.tensor("labels", (3,), "string", data=header + b"".join(words))
    text = graph.input("text", (1,), "string")
    out = graph.tensor("index", (1,), "int32")
    graph.custom("FindLabel", [text, labels], [out], b"\x01")
    graph.outputs(out)
    return net.finish()


@handmade()
def custom_quantisation() -> bytes:
    """Quantisation details in the form of the schema's custom quantisation table."""
    net, graph, x = start()
    details = schema.CustomQuantizationT()
    details.custom = np.arange(9, dtype=np.uint8)
    quantisation = graph.table.tensors[x].quantization
    quantisation.detailsType = schema.QuantizationDetails.CustomQuantization
    quantisation.details = details
    graph.outputs(relu(graph, x, IMAGE))
    return net.finish()


# --- sparsity -------------------------------------------------------------------------------
# TFLM does not look at sparsity: it reads past the values and computes nonsense.


def _vector(kind: str, values: list[int]) -> tuple[int, object]:
    table = getattr(schema, f"{kind}VectorT")()
    table.values = np.asarray(values, kind.lower())
    return getattr(schema.SparseIndexVector, f"{kind}Vector"), table


def _sparse(kind: str) -> bytes:
    """A float FULLY_CONNECTED whose (4, 6) weights hold 7 values, rows dense, columns CSR."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 6), "float32")
    values = np.linspace(-1, 1, 7, dtype=np.float32)
    weights = graph.tensor("weights", (4, 6), "float32", data=values)
    rows, columns = schema.DimensionMetadataT(), schema.DimensionMetadataT()
    rows.format, rows.denseSize = schema.DimensionType.DENSE, 4
    columns.format = schema.DimensionType.SPARSE_CSR
    columns.arraySegmentsType, columns.arraySegments = _vector(kind, [0, 2, 3, 3, 7])
    columns.arrayIndicesType, columns.arrayIndices = _vector(kind, [0, 4, 2, 0, 1, 3, 5])
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder, sparsity.dimMetadata = [0, 1], [rows, columns]
    graph.table.tensors[weights].sparsity = sparsity
    y = graph.tensor("y", (1, 4), "float32")
    graph.op("FULLY_CONNECTED", [x, weights, -1], [y], "FullyConnectedOptions", version=8)
    graph.outputs(y)
    return net.finish()


@handmade(tflm=False)
def sparse_int32() -> bytes:
    """Sparse weights, indices of 32 bits."""
    return _sparse("Int32")


@handmade(tflm=False)
def sparse_uint16() -> bytes:
    """Sparse weights, indices of 16 bits."""
    return _sparse("Uint16")


@handmade(tflm=False)
def sparse_uint8() -> bytes:
    """Sparse weights, indices of 8 bits."""
    return _sparse("Uint8")


@handmade(tflm=False)
def sparse_blocks() -> bytes:
    """Sparsity in blocks of 1x4, with a block map and two index widths."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 8), "float32")
    weights = graph.tensor("weights", (2, 8), "float32", data=np.ones(8, np.float32))
    dims = [schema.DimensionMetadataT() for _ in range(3)]
    dims[0].denseSize, dims[2].denseSize = 2, 4
    dims[1].format = schema.DimensionType.SPARSE_CSR
    dims[1].arraySegmentsType, dims[1].arraySegments = _vector("Uint8", [0, 1, 2])
    dims[1].arrayIndicesType, dims[1].arrayIndices = _vector("Uint16", [1, 0])
    fields = {"traversalOrder": [0, 1, 2], "blockMap": [1], "dimMetadata": dims}
    graph.table.tensors[weights].sparsity = fill(schema.SparsityParametersT(), fields)
    y = graph.tensor("y", (1, 2), "float32")
    graph.op("FULLY_CONNECTED", [x, weights, -1], [y], "FullyConnectedOptions", version=8)
    graph.outputs(y)
    return net.finish()


# --- fields of tensors and operators --------------------------------------------------------


@handmade()
def shape_signature() -> bytes:
    """Dynamic batch in `shape_signature`, rank known, names missing."""
    net, graph, x = start()
    y = conv(graph, x, IMAGE)
    for index in (x, y):
        tensor = graph.table.tensors[index]
        tensor.shapeSignature, tensor.hasRank = [-1, 6, 6, 4], True
    graph.table.tensors[y].name = None
    graph.table.name = None
    graph.outputs(y)
    return net.finish()


@handmade(litert=False, tflm=False)
def variant_tensors() -> bytes:
    """A tensor of type VARIANT that says what it holds."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4), "int32")
    fields = {"shape": [1, 4], "type": schema.TensorType.INT32, "hasRank": True}
    held = [fill(schema.VariantSubTypeT(), fields)]
    box = graph.tensor("list", (), "variant", variantTensors=held, hasRank=True)
    graph.custom("PutInList", [x], [box], b"")
    out = graph.tensor("y", (1, 4), "int32")
    graph.custom("TakeFromList", [box], [out], b"")
    graph.outputs(out)
    return net.finish()


@handmade(litert=False, tflm=False)
def custom_operator() -> bytes:
    """Two custom operators with options, one marked as changing its first input."""
    net, graph, x = start()
    y = graph.tensor("y", IMAGE, scale=SCALE)
    graph.custom("Mystery", [x], [y], bytes(range(37)))
    z = graph.tensor("z", IMAGE, scale=SCALE)
    graph.custom("Enigma", [y, -1], [z], b"")
    graph.table.operators[-1].mutatingVariableInputs = [True, False]
    graph.outputs(z)
    return net.finish()


@handmade(litert=False, tflm=False)
def unknown_operator() -> bytes:
    """A builtin operator newer than any reader."""
    net, graph, x = start()
    y = graph.tensor("y", IMAGE, scale=SCALE)
    graph.op("RELU", [x], [y])
    net.model.operatorCodes[0].builtinCode = 9001
    net.model.operatorCodes[0].version = 42
    graph.outputs(y)
    return net.finish()


@handmade()
def old_operator_code() -> bytes:
    """A file from before schema 3a: the operator is named in the deprecated field only."""
    net, graph, x = start()
    graph.outputs(relu(graph, x, IMAGE))
    for code in net.model.operatorCodes:
        code.builtinCode = 0
    return net.finish()


@handmade(tflm=False)
def second_options() -> bytes:
    """An operator whose options are in the second union (STABLEHLO_PAD)."""
    net = Net()
    graph = net.graph()
    x, zero = graph.input("x", (2, 3), "float32"), graph.constant("zero", 0.0, "float32")
    y = graph.tensor("y", (4, 4), "float32")
    fields = {"edgePaddingLow": [1, 0], "edgePaddingHigh": [1, 1], "interiorPadding": [0, 0]}
    graph.op("STABLEHLO_PAD", [x, zero], [y], "StablehloPadOptions", second=True, **fields)
    graph.outputs(y)
    return net.finish()


# --- buffers and the file -------------------------------------------------------------------


@handmade()
def shared_buffers() -> bytes:
    """Two convolutions with the very same weights and bias: other tensors, same buffers."""
    net, graph, x = start()
    y = conv(graph, x, IMAGE, "one")
    z = conv(graph, y, IMAGE, "two")
    tensors = graph.table.tensors
    for theirs, mine in zip(*(op.inputs for op in graph.table.operators), strict=True):
        if tensors[mine].buffer:
            tensors[mine].buffer = tensors[theirs].buffer
    graph.outputs(z)
    return net.finish()


@handmade()
def one_empty_buffer_each() -> bytes:
    """Every activation has an empty buffer of its own, as MLIR writes; one buffer is unused."""
    net, graph, x = start()
    y = relu(graph, conv(graph, x, IMAGE), IMAGE)
    for tensor in graph.table.tensors:
        tensor.buffer = tensor.buffer or net.buffer()
    net.buffer(b"nobody refers to me")
    graph.outputs(y)
    return net.finish()


def _with_data_behind(net: Net) -> bytes:
    """Serialise with tensor data behind the flatbuffer, each at a multiple of 16."""
    data = [bytes(np.asarray(b.data)) if b.data is not None else b"" for b in net.model.buffers]
    for entry, raw in zip(net.model.buffers, data, strict=True):
        if raw:
            # Any offset above 1, to fix the size of the flatbuffer.
            entry.data, entry.offset, entry.size = None, 2, len(raw)
    place = -(-len(net.finish()) // 16) * 16
    base = place
    for entry, raw in zip(net.model.buffers, data, strict=True):
        if raw:
            entry.offset = place
            place = -(-(place + len(raw)) // 16) * 16
    return net.finish().ljust(base, b"\0") + b"".join(
        raw.ljust(-(-len(raw) // 16) * 16, b"\0") for raw in data if raw
    )


@handmade(tflm=False)
def data_behind_the_flatbuffer() -> bytes:
    """The layout of models above 2 GB: buffers say offset and size; TFLM does not read them."""
    net, graph, x = start()
    graph.outputs(conv(graph, x, IMAGE))
    return _with_data_behind(net)


@handmade(litert=False, tflm=False)
def large_custom_options() -> bytes:
    """Custom options behind the flatbuffer, by offset and size."""
    net, graph, x = start()
    y = graph.tensor("y", IMAGE, scale=SCALE)
    graph.custom("Mystery", [x], [y], b"")
    graph.outputs(y)
    op, options = graph.table.operators[0], bytes(range(40))
    op.customOptions, op.largeCustomOptionsOffset, op.largeCustomOptionsSize = None, 2, 40
    op.largeCustomOptionsOffset = -(-len(net.finish()) // 16) * 16
    return net.finish().ljust(op.largeCustomOptionsOffset, b"\0") + options


@handmade(litert=False, tflm=False)
def external_buffers() -> bytes:
    """A constant whose data lie in another file; TFLM takes it for an activation."""
    net, graph, x = start()
    offset = graph.tensor("offset", IMAGE, scale=SCALE, externalBuffer=1)
    group = fill(schema.ExternalBufferGroupT(), {"name": "weights.bin"})
    fields = {"id": 1, "group": 0, "offset": 16, "length": 144}
    net.model.externalBufferGroups = [group]
    net.model.externalBuffers = [fill(schema.ExternalBufferT(), fields)]
    graph.outputs(add(graph, x, offset, IMAGE))
    return net.finish()


@handmade()
def metadata() -> bytes:
    """Several metadata entries, one empty, and the old `metadata_buffer` list."""
    net, graph, x = start(description="with metadata")
    graph.outputs(relu(graph, x, IMAGE))
    net.metadata("min_runtime_version", b"1.5.0".ljust(16, b"\0"))
    net.metadata("TFLITE_METADATA", bytes(range(200)))
    net.metadata("", b"nameless")
    net.model.metadataBuffer = [1, 2]
    return net.finish()


@handmade()
def already_planned() -> bytes:
    """A model that came with an offline plan: disjoint places for input, middle and output."""
    net, graph, x = start()
    graph.outputs(relu(graph, conv(graph, x, IMAGE), IMAGE))
    # Tensors in order: x, filter, bias, conv, relu. IMAGE takes 144 bytes.
    net.metadata("OfflineMemoryAllocation", struct.pack("<8i", 1, 1, 5, 0, -1, -1, 144, 288))
    return net.finish()


@handmade()
def several_signatures() -> bytes:
    """Two signatures of one graph, under different names."""
    net, graph, x = start()
    graph.outputs(conv(graph, x, IMAGE), relu(graph, x, IMAGE))
    net.signature("serving_default", graph, ["image"], ["features", "clipped"])
    net.signature("alias", graph, ["x"], ["a", "b"])
    return net.finish()


@handmade()
def bare() -> bytes:
    """No description, no names: every optional string absent."""
    net, graph, x = start()
    graph.outputs(relu(graph, x, IMAGE))
    net.model.description = graph.table.name = None
    for tensor in graph.table.tensors:
        tensor.name = None
    return net.finish()
