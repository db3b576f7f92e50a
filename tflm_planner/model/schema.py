"""The names of operators, types and options in the TFLite schema: all that the package knows of it.

`data/tflite_schema.json` holds the part of the schema that models use, with the values of the
generated module of ai-edge-litert (`python -m tests.model.known_schema` writes it, and a test
checks that both are equal). So a file can be read without that module, which imports numpy. Code
that changes or writes models uses the object API (`...T` classes) of that module, by the name
`generated`; it is imported only then.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from tflm_planner.support.deferred import defer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    """The bytes of a buffer: an array, or in a model that is only looked at a `Vector`."""
else:
    Bytes = Any

generated: Any = defer("ai_edge_litert.schema_py_generated")
"""The generated module, which has no types."""

FILE_IDENTIFIER = b"TFL3"


def members(owner: Any) -> dict[str, Any]:
    """The attributes of a generated class or object, by name."""
    return owner.__dict__


def field_name(name: str) -> str:
    """The schema's name of a field: "strideH" for "stride_h"."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_graph_fields: dict[type, list[str]] = {}


def graph_fields(options: Any) -> list[str]:
    """Fields of an options object that hold sub-graph indices."""
    if options is None:
        return []
    fields = _graph_fields.get(options.__class__)
    if fields is None:
        fields = _graph_fields[options.__class__] = [
            name
            for name in members(options)
            if name == "subgraph" or name.endswith(("SubgraphIndex", "SubgraphIndices"))
        ]
    return fields


def with_members(kind: Any, attributes: dict[str, Any]) -> Any:
    """An object of a generated class with exactly these attributes. The constructor is not called,
    because it would first set each of them; that would take most of the time of reading a file."""
    instance = kind.__new__(kind)
    instance.__dict__ = attributes
    return instance


@cache
def known_schema() -> dict[str, Any]:
    """The part of the schema that models use: "enums" name -> value -> name, and "tables" (see
    `flatbuffer.known`)."""
    text = resources.files("tflm_planner.model").joinpath("data", "tflite_schema.json")
    return json.loads(text.read_text("utf-8"))


@cache
def value_names(enumeration: str) -> dict[int, str]:
    """Value -> name of an enumeration of the schema."""
    return {value: name for name, value in known_schema()["enums"][enumeration].items()}


@cache
def operator_names() -> dict[int, str]:
    """Builtin operator code -> name, e.g. 3 -> "CONV_2D"."""
    return value_names("BuiltinOperator")


@cache
def own_options(kind: str) -> str | None:
    """The options table named after an operator kind, e.g. "GATHER" -> "GatherOptions". None if
    there is none, because several kinds share a table or the kind has no options."""
    tables = ("BuiltinOptions", "BuiltinOptions2")
    names = [name for table in tables for name in value_names(table).values()]
    spelt = f"{kind.replace('_', '')}Options".lower()
    return next((name for name in names if name.lower() == spelt), None)


@cache
def operator_code(name: str) -> int:
    """Builtin operator name -> code."""
    return int(known_schema()["enums"]["BuiltinOperator"][name])


@cache
def type_names() -> dict[int, str]:
    """Tensor type -> lower-case name, e.g. 9 -> "int8"."""
    return {k: v.lower() for k, v in value_names("TensorType").items()}


@cache
def type_name(tensor_type: int) -> str:
    """The lower-case name of a tensor type; "type N" for an unknown type."""
    return type_names().get(tensor_type, f"type {tensor_type}")


_BITS = {
    "float64": 64, "int64": 64, "uint64": 64, "complex64": 64, "complex128": 128,
    "float32": 32, "int32": 32, "uint32": 32, "resource": 32, "variant": 32,
    "float16": 16, "bfloat16": 16, "int16": 16, "uint16": 16,
    "int8": 8, "uint8": 8, "bool": 8, "int4": 4, "uint4": 4, "int2": 2,
}  # fmt: skip


@cache
def element_bits(tensor_type: int) -> int | None:
    """Bits of one element; None for types without a fixed size (strings, unknown types)."""
    return _BITS.get(type_names().get(tensor_type, ""))
