"""Execute notebooks from a clean kernel, without their `pip install` cells.

    python -m tests.run_notebook NOTEBOOK... [--save]

--save keeps the outputs in the file, as it is committed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def main() -> None:
    for name in sys.argv[1:]:
        if name != "--save":
            run(Path(name), save="--save" in sys.argv)


def run(path: Path, *, save: bool) -> None:
    notebook = nbformat.read(path, as_version=4)
    skipped = [c for c in notebook.cells if re.search(r"^%pip ", c.source, re.MULTILINE)]
    sources = [c.source for c in skipped]
    for cell in skipped:
        cell.source = "pass"
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", coalesce_streams=True)
    client.execute(cwd=path.parent)
    for cell, source in zip(skipped, sources, strict=True):
        cell.source, cell.outputs = source, []
    cells = sum(c.cell_type == "code" for c in notebook.cells)
    print(f"{path.name}: {cells} code cells ran")
    if save:
        for cell in notebook.cells:
            cell.get("metadata", {}).pop("execution", None)
            if cell.cell_type == "code":  # what libraries log belongs to the machine that ran it
                cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
                for output in cell.outputs:
                    if "text" in output:  # what a spinner leaves on a terminal
                        output["text"] = _COLOURS.sub("", output["text"])
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
