"""Every network in every type, in order, planned and in tiles, and what each came to.

    python -m tests.corpus                          as text, file by file
    python -m tests.corpus --write docs/corpus.md   and as the table there (an hour on one core)
    python -m tests.corpus --networks unet,gru --types int8,uint8 --commands plan,stream-input
    python -m tests.corpus --in-turns tiles         this for one type of each network, in turns
    python -m tests.corpus --keep FOLDER --brought  networks that another converter has put there

`--keep FOLDER` keeps the files, and what each came to, and takes those that are there: a run that
was stopped goes on, and two may share the work (`--share 1/2`, `--share 2/2`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.corpus.convert import TYPES, ConversionError
from tests.corpus.networks import NETWORKS
from tests.corpus.outcome import COMMANDS, Reached, reached
from tests.corpus.table import Row, document, line
from tests.corpus.workshop import Workshop

ALL = ",".join(NETWORKS)
STANDARD = ("arena", "plan", "tiles")


def main() -> int:
    """Runs the corpus; 1 if the tool failed anywhere."""
    arguments = _arguments()
    rows: list[Row] = []
    with Workshop() as workshop:
        for name, kind in _wanted(arguments):
            row = _row(name, kind, arguments, workshop)
            rows.append(row)
            print(line(row), flush=True)
    if arguments.write is not None:
        arguments.write.write_text(
            document(
                rows, arguments.commands.split(","), arguments.in_turns, brought=arguments.brought
            )
        )
    return any(r.fault for row in rows for r in row.reached.values())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.corpus", description=__doc__)
    parser.add_argument("--networks", default=ALL)
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--commands", default=",".join(STANDARD), help=", ".join(COMMANDS))
    parser.add_argument("--in-turns", default="", help="commands for one type of each network")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--brought", action="store_true", help="no networks but these")
    parser.add_argument("--share", default="1/1")
    parser.add_argument("--write", type=Path)
    return parser.parse_args()


def _wanted(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    first, parts = map(int, arguments.share.split("/"))
    brought = _brought(arguments.keep) if arguments.networks == ALL else []
    named = [] if arguments.brought else arguments.networks.split(",")
    names = [*named, *dict.fromkeys(name for name, _ in brought)]
    for name in names[first - 1 :: parts]:
        kinds = arguments.types.split(",")
        if arguments.brought:
            kinds = [kind for other, kind in brought if other == name]
        for kind in kinds:
            if name in NETWORKS or (name, kind) in brought:
                yield name, kind


def _brought(keep: Path | None) -> list[tuple[str, str]]:
    """Networks and types that another converter has put beside the kept ones (`from_onnx`,
    `pytorch.convert`)."""
    files = sorted(keep.glob("*.tflite")) if keep is not None else []
    files = [path for path in files if path.name.startswith(("onnx_", "torch_"))]
    named = (path.name.removesuffix(".tflite").split(".") for path in files)
    return [(name, kind) for name, kind in named]


def _commands(name: str, kind: str, arguments: argparse.Namespace) -> list[str]:
    """What is done with a network in a type: the types take turns, so that all have their share."""
    place = list(NETWORKS).index(name) if name in NETWORKS else len(name)
    has_turn = TYPES[place % len(TYPES)] == kind
    left_out = [] if has_turn else arguments.in_turns.split(",")
    return [c for c in arguments.commands.split(",") if c not in left_out]


def _row(name: str, kind: str, arguments: argparse.Namespace, workshop: Workshop) -> Row:
    keep: Path | None = arguments.keep
    commands = _commands(name, kind, arguments)
    if keep is None:
        return _run(name, kind, commands, {}, None, workshop)
    keep.mkdir(parents=True, exist_ok=True)
    known = keep / f"{name}.{kind}.json"
    before = json.loads(known.read_text()) if known.exists() else {"refused": "", "reached": {}}
    if before["refused"]:
        return Row(name, kind, before["refused"], {})
    done = {k: Reached(**v) for k, v in before["reached"].items()}
    row = _run(name, kind, commands, done, keep / f"{name}.{kind}.tflite", workshop)
    found = {k: asdict(v) for k, v in {**done, **row.reached}.items()}
    known.write_text(json.dumps({"refused": row.unconverted, "reached": found}))
    return row


def _run(
    name: str,
    kind: str,
    commands: list[str],
    done: dict[str, Reached],
    file: Path | None,
    workshop: Workshop,
) -> Row:
    """`done`: what is known. `file`: where the model is, or is to be kept."""
    missing = [c for c in commands if c not in done]
    if not missing:
        return Row(name, kind, "", done)
    try:
        there = file is not None and file.exists()
        data = file.read_bytes() if file and there else workshop.converted(name, kind)
    except ConversionError as error:
        return Row(name, kind, str(error), {})
    if file is not None and not there:
        file.write_bytes(data)
    return Row(name, kind, "", {**done, **{c: reached(data, c) for c in missing}})


if __name__ == "__main__":
    sys.exit(main())
