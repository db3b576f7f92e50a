"""Our copy of the schema, made of the generated module: `python -m tests.model.known_schema` writes
it, and `test_known_schema` holds it equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tflm_planner.model
from tflm_planner.model.flatbuffer.layout import Field, Kind
from tflm_planner.model.flatbuffer.learnt import Learnt, generated, layout_of
from tflm_planner.model.schema import members

FILE = Path(tflm_planner.model.__file__).parent / "data" / "tflite_schema.json"
ENUMERATIONS = ("BuiltinOperator", "TensorType")
FORMS = {"i1": "b", "u1": "B", "b1": "?", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "f4": "f",
         "i8": "q", "u8": "Q", "f8": "d"}  # fmt: skip


def known_schema() -> dict[str, Any]:
    """Tables that a model refers to, and the enumerations that are read by name."""
    tables: dict[str, Any] = {}
    unions: set[str] = set()
    todo: list[Any] = [Learnt.root]
    while todo:
        layout = layout_of(todo.pop())
        if layout.name in tables:
            continue
        tables[layout.name] = {
            field.name: [*_described(field), layout.defaults[field.name]] for field in layout.fields
        }
        for field in layout.fields:
            if field.kind in (Kind.TABLE, Kind.TABLES):
                todo.append(field.of)
            elif field.kind is Kind.UNION:
                unions.add(field.of)
                todo += Learnt().members(field.of).values()
    enums = {name: _values(name) for name in (*ENUMERATIONS, *sorted(unions))}
    return {"enums": enums, "tables": dict(sorted(tables.items()))}


def _described(field: Field) -> list[Any]:
    of: Any = None
    if field.kind is Kind.SCALAR:
        of = field.form
    elif field.kind is Kind.NUMBERS:
        of = FORMS[field.of.str[1:]]
    elif field.kind is Kind.UNION:
        of = field.of
    elif field.kind in (Kind.TABLE, Kind.TABLES):
        of = field.of.__name__
    return [field.slot, field.kind.name, of]


def _values(name: str) -> dict[str, int]:
    return {k: v for k, v in members(getattr(generated, name)).items() if isinstance(v, int)}


def as_text() -> str:
    """One line a table and an enumeration, so that changes can be read."""
    parts = [
        f' "{part}": {{\n'
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(what)}" for name, what in known.items())
        + "\n }"
        for part, known in known_schema().items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(as_text(), "utf-8")
