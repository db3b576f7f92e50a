"""Execute a notebook from a clean kernel, without its `pip install` cells.

    python -m tests.run_notebook NOTEBOOK [--save]

--save keeps the outputs in the file, as it is committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def main() -> None:
    path = Path(sys.argv[1])
    notebook = nbformat.read(path, as_version=4)
    skipped = [c for c in notebook.cells if c.source.startswith("%pip")]
    sources = [c.source for c in skipped]
    for cell in skipped:
        cell.source = "pass"
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=path.parent)
    for cell, source in zip(skipped, sources, strict=True):
        cell.source, cell.outputs = source, []
    cells = sum(c.cell_type == "code" for c in notebook.cells)
    print(f"{path.name}: {cells} code cells ran")
    if "--save" in sys.argv:
        for cell in notebook.cells:
            cell.get("metadata", {}).pop("execution", None)
            if cell.cell_type == "code":  # what libraries log belongs to the machine that ran it
                cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
