"""Puts the page together: `python web/build.py DIR [--pyodide FOLDER or https://...]`.

    web/*.html, css, js, answer.py; the report's pick.js  --copied-->  DIR/
    tflm_planner, without what a browser cannot use --zip-->   DIR/planner.zip
    Pyodide, by `npm pack` or from a folder --copied-->        DIR/pyodide/     (not for an address)

Needs Python alone; `npm` where Pyodide is to be fetched. With `node` the package is compiled for
Pyodide's own Python, which a browser then need not do at every visit. DIR is a folder of static
files for any server.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYODIDE = "314.0.7"
RUNTIME = (
    "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json",
)  # fmt: skip
"""What of Pyodide a page needs that loads no packages."""
PAGE = ("index.html", "page.css", "page.js", "map.js", "worker.js", "answer.py")
SHARED = ROOT / "tflm_planner" / "report" / "templates" / "pick.js"
"""How operators and buffers are picked: in reports alike."""
EXAMPLE = ROOT / "tests" / "models" / "cnn_int8.tflite"
LEFT_OUT = (
    "cli", "codesign", "device", "ops/terms", "report/templates", "tiling", "verification/terms",
)  # fmt: skip
"""Folders of the package that the page never imports."""


def build(out: Path, pyodide: str | None = None) -> None:
    """The whole page into a folder. pyodide: an address, a folder, or None to fetch it."""
    out.mkdir(parents=True, exist_ok=True)
    at = pyodide if pyodide and pyodide.startswith("https://") else "pyodide/"
    for name in PAGE:
        (out / name).write_bytes((HERE / name).read_bytes())
    (out / SHARED.name).write_bytes(SHARED.read_bytes())
    index = (out / "index.html").read_text("utf-8")
    (out / "index.html").write_text(_placed(index, at), "utf-8")
    (out / "example.tflite").write_bytes(EXAMPLE.read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        runtime = None
        if at == "pyodide/":
            runtime = Path(pyodide) if pyodide else _fetched(Path(scratch))
            (out / "pyodide").mkdir(exist_ok=True)
            for name in RUNTIME:
                shutil.copyfile(runtime / name, out / "pyodide" / name)
        sources = Path(scratch) / "sources.zip"
        _zip_package(sources)
        if not (runtime and _compiled(runtime.resolve(), sources, out / "planner.zip")):
            shutil.copyfile(sources, out / "planner.zip")


def _placed(index: str, at: str) -> str:
    """The page with the address of Pyodide, which its policy must allow if it is elsewhere."""
    parts = urlsplit(at)
    origin = f" {parts.scheme}://{parts.netloc}" if parts.netloc else ""
    return index.replace("{PYODIDE_ORIGIN}", origin).replace("{PYODIDE}", at.rstrip("/") + "/")


def _fetched(scratch: Path) -> Path:
    """The folder of Pyodide as npm has it."""
    command = [shutil.which("npm") or "npm", "pack", "--silent", f"pyodide@{PYODIDE}"]
    subprocess.run(command, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(next(scratch.glob("pyodide-*.tgz"))) as archive:
        archive.extractall(scratch, filter="data")
    return scratch / "package"


def _zip_package(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((ROOT / "tflm_planner").rglob("*")):
            name = file.relative_to(ROOT / "tflm_planner").as_posix()
            left_out = any(name.startswith(f"{folder}/") for folder in LEFT_OUT)
            if file.suffix in (".py", ".json", ".toml") and not left_out:
                # One date for all files, so that the same sources give the same archive.
                entry = zipfile.ZipInfo(f"tflm_planner/{name}", (2020, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes())


def _compiled(runtime: Path, sources: Path, out: Path) -> bool:
    """Compile the package in Pyodide itself; False where there is no node."""
    node = shutil.which("node")
    if node is None:
        return False
    command = [node, str(HERE / "compile.mjs"), str(runtime), str(sources), str(out)]
    subprocess.run(command, check=True)
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Puts the page together.")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--pyodide", help="a folder with Pyodide, or the address of one")
    given = parser.parse_args()
    build(given.out, given.pyodide)
