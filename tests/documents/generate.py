"""Writes the documents that are tables of what the package knows: operators and targets.

python -m tests.documents.generate
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator

from tests.conftest import ROOT
from tflm_planner.tflm.refusals import MOST_AXES, MOST_JOINED
from tflm_planner.tflm.resolver_methods import BUILTINS, resolver_method
from tflm_planner.tflm.targets import all_boards, all_targets, load_target
from tflm_planner.tflm.versions import since, since_behaviour

NOTE = "<!-- Written by `python -m tests.documents.generate`; a test holds it to the package. -->"
DATA = ROOT / "tflm_planner" / "tflm" / "data"


def operators_page() -> str:
    """Every operator of TFLM: how it is registered, since when, and the types that it takes."""
    types = tomllib.loads((DATA / "element_types.toml").read_text())["operator"]
    head = """\
# Operators

Each of these has an exact entry for the memory that it takes in TFLM. *Registered with* is the \
method of `MicroMutableOpResolver`; `tflm-plan IN` and `export` print the lines for a model. \
*Since*: the day from which TFLM's sources have the operator (empty: before January 2023). \
*Types*: of the tensors that decide, as the reference kernels take them, each combination tried \
on real TFLM; "x" stands between tensors. CMSIS-NN and ESP-NN hand what they do not have to the \
reference kernels.

TFLM's signal operators (`SignalWindow` and others) and `TFLM_DECODE` are registered likewise. \
Any other operator runs only with a kernel of your own: `tflm-plan` keeps it as it is, and gives \
figures as "about" so much, and `export --own-kernels` leaves its registration to you.

*Axes*: {axes}. Kernels that copy shapes have room for six axes, and write behind an array where \
there are more; the others (`RESHAPE`, `GATHER`, `MEAN`, `PACK`, ...) take any number. \
`CONCATENATION` joins {joined} operands at most. Since {empty} TFLM refuses an operator with an \
empty result, such as 0 x 8. An operator that requests scratch in a sub-graph that only a further \
signature reaches ruins memory when the model is loaded. TFLM aborts for an int8 \
`SOFTMAX` of values whose scale is 2^-26 or less (untrained weights), for sums whose operands' \
scales are 2^19 times the result's (2^14 in int16), and for comparisons of scales of 1 and more. \
`tflm-plan arena` and `check` say which of these holds for a model, and what to do.
""".format(
        axes=", ".join(f"`{kind}` takes {most}" for kind, most in sorted(MOST_AXES.items())),
        joined=MOST_JOINED,
        empty=since_behaviour("refuses_empty_results"),
    )
    rows = [f"| `{kind}` | {_method(kind)} | {_since(kind)} | {_types(kind, types)} |"
            for kind in sorted(BUILTINS)]  # fmt: skip
    table = ["| operator | registered with | since | types |", "|---|---|---|---|", *rows]
    return "\n".join([NOTE, "", head, *table, ""])


def _method(kind: str) -> str:
    method = resolver_method(kind)
    return f"`{method}`" if method else ""


def _since(kind: str) -> str:
    day = since(kind)
    return day.isoformat() if day.year >= 2022 else ""


def _types(kind: str, types: dict[str, dict[str, list[str]]]) -> str:
    taken = types.get(kind, {}).get("runs", [])
    return ", ".join(" x ".join(form.split()) for form in taken)


def targets_page() -> str:
    """Boards and targets, as `tflm-plan targets` lists them."""
    head = """\
# Targets and boards

`--target` takes any of these, or a TOML file of your own \
([schema](../schema/target.schema.json)). A *target* is a processor core and a kernel library: \
they decide how large structures and scratch are, and what may share memory. A *board* is a \
target with SRAM and flash, which are then the budget. Where kernels are `unknown`, figures are \
"at least" so much; for ESP-NN without a release, "about" ([ESP32](esp32.md)).
"""
    return "\n".join([NOTE, "", head, *_boards(), "", *_targets(), ""])


def _boards() -> Iterator[str]:
    yield from (
        "## Boards",
        "",
        "| `--target` | board | core and kernels | SRAM | PSRAM | flash | clock |",
    )
    yield "|---|---|---|--:|--:|--:|--:|"
    for name, board in all_boards().items():
        flash, psram = (f"{size:,}" if size else "" for size in (board.flash, board.psram))
        target = load_target(name)
        kernels = f"{target.core}, {target.kernels}"
        clock = f"{board.clock // 10**6} MHz" if board.clock else ""
        memory = f"{board.sram:,} | {psram} | {flash}"
        yield f"| `{name}` | {board.name} | {kernels} | {memory} | {clock} |"


def _targets() -> Iterator[str]:
    yield from ("## Targets", "", "| `--target` | what it is |", "|---|---|")
    for name, target in all_targets().items():
        yield f"| `{name}` | {target.name} |"


PAGES: dict[str, Callable[[], str]] = {"operators.md": operators_page, "targets.md": targets_page}
"""Documents, and what writes each."""


if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / "docs" / name).write_text(page())
