"""What all JSON documents have in common: their version, counts, and bounds.

For each document, a module of types (`report`, `arena`, ...) defines every key with its type, its
limits and its meaning. The JSON is made from these types (`document`), and so are the schemas in
`schema/` (`python -m tflm_planner.cli.schemas`). A field has the name of the attribute that it
shows, unless its `name` gives another one for JSON. `SCHEMA_VERSION` is increased with every change
that a reader could notice.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tflm_planner.support.documents import says
from tflm_planner.tflm.arena.uncertainty import BoundKind

SCHEMA_VERSION = 7
"""The version of the document; `schema_version` in the JSON."""
Version = Annotated[Literal[7], says("Version of this format (a number without unit).")]
Count = Annotated[int, msgspec.Meta(ge=0)]
BoundJson = Annotated[
    BoundKind,
    says(
        "What the bytes are: exact; enough, though less may do; at least so many, where nobody has "
        "read the kernels; or about so many, where the release of a library, an operator or the "
        "sizes of TFLM's structures are not known (with the last two no size is known to fit)."
    ),
]
TargetId = Annotated[str, says("Id of the target.")]
BoardId = Annotated[str | None, says("Id of the board (null: none was named).")]
CannotRun = Annotated[list[str], says("What the target's TFLM refuses to run of the model.")]
Notes = Annotated[list[str], says("What else is worth knowing.")]
