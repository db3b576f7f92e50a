"""The corpus as a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.corpus.outcome import Reached


@dataclass(frozen=True)
class Row:
    """A network in a type. unconverted: why the converter makes no file of it, or ""."""

    network: str
    kind: str
    unconverted: str
    reached: dict[str, Reached]


def line(row: Row) -> str:
    """One row for the terminal."""
    told = [f"{name} {_cell(r)}{_why(r)}" for name, r in row.reached.items()]
    return f"{row.network} {row.kind}: {'; '.join(told) or 'not converted: ' + row.unconverted}"


_FROM_ONNX = """
Networks called onnx_... were built as ONNX and converted by onnx2tf 1.29 in an environment of its
own (`tests/corpus/from_onnx.py`; it fetches a file of pictures for calibration where none lies in
its folder). They are no part of what every change must pass. Networks of PyTorch, by its own
converter: [PyTorch models](corpus-pytorch.md).
"""


_BY_PYTORCH = """# PyTorch models as people make them

Small networks of PyTorch, converted by litert-torch 0.10, and what the tool made of each: bytes of
arena on Cortex-M4 with CMSIS-NN, as the file is, planned, and in tiles with the operators that it
has. Every planned file was proved equal on real runtimes; why one was refused is said below. Types
are recipes of AI Edge Quantizer 0.10 (weights: `weight_only_wi8_afp32`; weights-int4; dynamic;
int8: `static_wi8_ai8`; int16x8), and int8-pt2e, PyTorch's own quantisation. Made by
`python -m tests.corpus.pytorch.convert FOLDER`, in an environment of its own, and
`python -m tests.corpus --keep FOLDER --brought --write docs/corpus-pytorch.md`; they are no part of
what every change must pass. [Models of Keras and ONNX](corpus.md) are a page of their own.

{networks} networks, {files} files.
"""


def document(
    rows: Sequence[Row], commands: Sequence[str], in_turns: str = "", *, brought: bool = False
) -> str:
    """The page `docs/corpus.md`, or `docs/corpus-pytorch.md` where all networks were brought.
    in_turns: commands, joined by commas, that were done for one type of each network."""
    made = [row for row in rows if not row.unconverted]
    unmade = [row for row in rows if row.unconverted]
    networks = len({row.network for row in rows})
    kinds = ", ".join(dict.fromkeys(row.kind for row in rows))
    head = (
        "# Models as people make them\n\n"
        "Small networks, converted by TensorFlow's documented recipes, and what the tool made of\n"
        "each: bytes of arena on Cortex-M4 with CMSIS-NN, as the file is, planned, "
        "and in tiles with the operators\nthat it has. Every planned file was proved equal on real "
        "runtimes; why one was refused is said below.\nMade by "
        f"`python -m tests.corpus --keep FOLDER{_turns_option(in_turns)} --write docs/corpus.md`.\n"
        f"{_turns_words(in_turns)}\n"
        f"{networks} networks, converted to {kinds}; {len(made)} files, {len(unmade)} more that "
        "the converter itself "
        f"makes no file of{_names(unmade)}.\n"
    )
    onnx = _FROM_ONNX if any(row.network.startswith("onnx_") for row in rows) else ""
    tables = [_summary(made, commands), _full(made, commands)]
    everywhere = [c for c in commands if c not in in_turns.split(",")]
    tables += [_by_type(made, c) for c in everywhere] if in_turns else []
    tables.append(_reasons(made))
    if brought:
        return "\n".join((_BY_PYTORCH.format(networks=networks, files=len(made)), *tables))
    return "\n".join((head + onnx, *tables))


def _turns_option(in_turns: str) -> str:
    return f" --in-turns {in_turns}" if in_turns else ""


def _turns_words(in_turns: str) -> str:
    if not in_turns:
        return ""
    return (
        f"A sample: {in_turns.replace(',', ' and ')} were done for one type of each network; the "
        "types take turns. A search had ten seconds,\nso that a busy machine may find less.\n"
    )


def _names(rows: Sequence[Row]) -> str:
    named = "; ".join(f"{row.network} in {row.kind}" for row in rows)
    return f" ({named})" if named else ""


def _summary(rows: Sequence[Row], commands: Sequence[str]) -> str:
    found = ["| type | files | " + " | ".join(f"{c}: done" for c in commands) + " |"]
    found.append("|---" * (2 + len(commands)) + "|")
    for kind in dict.fromkeys(row.kind for row in rows):
        of = [row for row in rows if row.kind == kind]
        tried = [[row.reached[c] for row in of if c in row.reached] for c in commands]
        done = [f"{sum(r.arena is not None for r in some)} of {len(some)}" for some in tried]
        found.append(f"| {kind} | {len(of)} | " + " | ".join(done) + " |")
    return "\n".join(found) + "\n"


def _full(rows: Sequence[Row], commands: Sequence[str]) -> str:
    """Every file on which all commands were tried."""
    found = ["| network | type | " + " | ".join(commands) + " |"]
    found.append("|---" * (2 + len(commands)) + "|")
    for row in rows:
        if all(c in row.reached for c in commands):
            cells = " | ".join(_cell(row.reached[c]) for c in commands)
            found.append(f"| {row.network} | {row.kind} | {cells} |")
    return "\n".join(found) + "\n"


def _by_type(rows: Sequence[Row], command: str) -> str:
    """One command on all files, a network a row."""
    kinds = list(dict.fromkeys(row.kind for row in rows))
    cells = {(r.network, r.kind): _cell(r.reached[command]) for r in rows if command in r.reached}
    found = [f"| {command} of | " + " | ".join(kinds) + " |", "|---" * (1 + len(kinds)) + "|"]
    for network in dict.fromkeys(row.network for row in rows):
        of = " | ".join(cells.get((network, kind), "") for kind in kinds)
        found.append(f"| {network} | {of} |")
    return "\n".join(found) + "\n"


def _cell(reached: Reached) -> str:
    if reached.fault:
        return "FAULT"
    if reached.arena is None:
        return "refused"
    unproved = reached.proof not in ("", "verified")
    return f"{reached.arena:,}{' (' + reached.proof + ')' if unproved else ''}"


def _why(reached: Reached) -> str:
    return f" ({reached.fault or reached.refused})" if reached.fault or reached.refused else ""


def _reasons(rows: Sequence[Row]) -> str:
    """What was refused, by reason, names left out."""
    counted: Counter[str] = Counter()
    first: dict[str, str] = {}
    for row in rows:
        for name, reached in row.reached.items():
            if told := reached.fault or reached.refused:
                reason = re.sub(r"'[^']*'", "'...'", told).replace("|", "/")
                reason = re.sub(r"\(number \d+\)( and \d+ more)?", "(...)", reason)
                counted[reason] += 1
                first.setdefault(reason, f"{row.network} in {row.kind}, {name}")
    if not counted:
        return "Nothing was refused.\n"
    found = ["| refused | times | first |", "|---|---|---|"]
    found += [f"| {reason} | {n} | {first[reason]} |" for reason, n in counted.most_common()]
    return "\n".join(found) + "\n"
