// node compile.mjs PYODIDE SOURCES.zip OUT.zip: the package as Pyodide's own Python compiles it.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, sources, out] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(runtime, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: runtime + path.sep });
python.FS.writeFile("/sources.zip", fs.readFileSync(sources));
python.runPython(`
import compileall, pathlib, py_compile, zipfile

root = pathlib.Path("/sources")
zipfile.ZipFile("/sources.zip").extractall(root)
compileall.compile_dir(
    root, quiet=1, legacy=True, optimize=1, stripdir="/sources",
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
)
with zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for file in sorted(root.rglob("*")):
        if file.suffix in (".pyc", ".json", ".toml"):
            entry = zipfile.ZipInfo(str(file.relative_to(root)), (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
`);
fs.writeFileSync(out, python.FS.readFile("/out.zip"));
