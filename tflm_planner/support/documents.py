"""Documents: types from which a JSON document, its checks and its JSON schema all come.

    result --view--> Document --plain--> JSON types        what a program reads
    Document --schema_of--> schema/*.schema.json           what that program may rely on
    TOML, JSON --parse--> Document                         what a user wrote

It must not know what documents are about.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar, cast

import msgspec
import msgspec.structs

from tflm_planner.support.errors import UsageError

_T = TypeVar("_T")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """Base of all parts of documents: every key is known. The first line of a class's docstring,
    and what `says` holds, are the descriptions in the schema."""


def says(description: str, **limits: Any) -> msgspec.Meta:
    """The description of a key and the limits of its values (`ge`, `pattern`), for `Annotated`."""
    return msgspec.Meta(description=description, **limits)


def view(result: object, kind: type[_T], **computed: object) -> _T:
    """The attributes of a result that a document of this kind shows, by name. computed: fields that
    are not attributes of the result, or are shown with another value."""
    if not computed:
        return msgspec.convert(result, kind, from_attributes=True)
    values = {
        field.encode_name: computed[field.name]
        if field.name in computed
        else getattr(result, field.name)
        for field in msgspec.structs.fields(cast("type[Document]", kind))
    }
    return msgspec.convert(values, kind, from_attributes=True)


def plain(document: Document) -> dict[str, Any]:
    """The document as dicts, lists, strings, numbers, booleans and None, checked against its type.

    Names keep the model's spelling, including control characters (JSON escapes them); lone
    surrogates, which UTF-8 cannot hold, become "?".
    """
    msgspec.convert(values := msgspec.to_builtins(document), type(document))
    text = json.dumps(values, ensure_ascii=False, allow_nan=False)
    return json.loads(text.encode("utf-8", "replace"))


def parse(values: object, kind: type[_T], file: str) -> _T:
    """The document in values that were read from a file. Raises UsageError, whose message says what
    is wrong, at which place, and what is permitted there."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        where = place.strip("`$.")
        raise UsageError(
            f"{file}: {where}{': ' * bool(where)}{message}{_choices(kind, where)}"
        ) from error


def _choices(kind: Any, place: str) -> str:
    """What is permitted at a place ("target.core"), from the schema of the whole document."""
    schema = schema_of(kind, "", "")
    definitions = schema["$defs"]
    for key in re.findall(r"\w+", place):
        schema = schema.get("properties", {}).get(key, {})
        schema = definitions.get(schema.get("$ref", "").rsplit("/", 1)[-1], schema)
    if "enum" in schema:
        return f"; choose from {', '.join(map(str, schema['enum']))}"
    return f"; its keys are {', '.join(schema['properties'])}" if "properties" in schema else ""


def schema_of(kind: type[Document], title: str, identifier: str) -> dict[str, Any]:
    """The JSON schema of a document. Its parts are under `$defs`, without the "Json" at the end of
    their class names: `Rung` for the class `RungJson`."""
    _, components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    text = re.sub(r'("#/\$defs/\w+)Json"', r'\1"', json.dumps(components))
    parts = {name.removesuffix("Json"): part for name, part in json.loads(text).items()}
    for name, part in parts.items():
        part["title"] = name
        part["description"] = " ".join(part.get("description", "").split())
    root = {**parts.pop(kind.__name__.removesuffix("Json")), "title": title}
    return {"$schema": _DRAFT, "$id": identifier, **root, "$defs": parts}
