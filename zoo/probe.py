"""What a model does on the real runtimes: do outputs vary, do runtimes agree, how big is it.

Knows the interpreters only. TFLM aborts the process on some models, so every runtime runs in
a child process, which gets the model and prints one JSON document. Outputs of all output
tensors are laid end to end; those of float models are scaled to 255 steps over their range.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np


def random_inputs(
    rng: np.random.Generator, n: int, shape: tuple[int, ...], dtype: type = np.int8
) -> list[np.ndarray]:
    """Draw inputs: each its own brightness, contrast and coarseness; float ones in [-1, 1]."""
    inputs = []
    for _ in range(n):
        coarse = int(rng.integers(2, 12))
        cells = [1, *(-(-size // coarse) for size in shape[1:3]), *shape[3:]]
        blocks = rng.normal(rng.uniform(-60, 60), rng.uniform(10, 90), cells)
        blocks = blocks.repeat(coarse, axis=1).repeat(coarse, axis=2)
        blocks = blocks[:, : shape[1], : shape[2]] + rng.normal(0, 8, shape)
        values = np.clip(blocks, -128, 127).astype(np.int8)
        inputs.append((values / 128).astype(dtype) if dtype == np.float32 else values)
    return inputs


def _flat(outputs: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.asarray(output).ravel() for output in outputs])


def _steps(table: np.ndarray) -> np.ndarray:
    """Integers as they are; floats as 255 steps over their range."""
    if table.dtype.kind == "f":
        table = np.rint(table * (255 / max(float(np.ptp(table)), 1e-9)))
    return table.astype(int)


def _softmax_input(interpreter) -> int:
    ops = interpreter._get_ops_details()
    softmax = [op for op in ops if op["op_name"] == "SOFTMAX"]
    last = interpreter.get_output_details()[0]["index"]
    ends_so = bool(softmax) and softmax[-1]["outputs"][0] == last
    return int(softmax[-1]["inputs"][0] if ends_so else last)


def _operators(interpreter) -> dict[str, int]:
    names = Counter(op["op_name"] for op in interpreter._get_ops_details())
    names.pop("DELEGATE", None)  # How LiteRT runs them, not what the file says.
    return dict(sorted(names.items()))


def litert_spread(path: Path, n: int) -> dict[str, object]:
    """Run `n` inputs on LiteRT and say how much logits, outputs and the winner vary."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), experimental_preserve_all_tensors=True, num_threads=1)
    interpreter.allocate_tensors()
    source = interpreter.get_input_details()[0]
    targets = [detail["index"] for detail in interpreter.get_output_details()]
    before = _softmax_input(interpreter)
    logits, outputs = [], []
    rng = np.random.default_rng(1)
    for value in random_inputs(rng, n, tuple(source["shape"]), source["dtype"]):
        interpreter.set_tensor(source["index"], value)
        interpreter.invoke()
        logits.append(interpreter.get_tensor(before).ravel())
        outputs.append(_flat([interpreter.get_tensor(target) for target in targets]))
    table = _steps(np.array(logits))
    return {
        "logit_range": int(table.max() - table.min()),
        "logit_range_between_inputs": float(np.ptp(table, axis=0).mean()),
        "winners": len({int(row.argmax()) for row in table}),
        "distinct_outputs": len({row.tobytes() for row in outputs}),
        "inputs": n,
        "operators": _operators(interpreter),
    }


def litert_reference(path: Path, seed: int) -> list[float]:
    """Run one input on LiteRT's reference kernels and return all outputs, flattened."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    source = interpreter.get_input_details()[0]
    rng = np.random.default_rng(seed)
    value = random_inputs(rng, 1, tuple(source["shape"]), source["dtype"])[0]
    interpreter.set_tensor(source["index"], value)
    interpreter.invoke()
    targets = [detail["index"] for detail in interpreter.get_output_details()]
    return _flat([interpreter.get_tensor(target) for target in targets]).tolist()


def _outputs_of(path: Path) -> int:
    from ai_edge_litert import schema_py_generated as schema

    model = schema.Model.GetRootAsModel(path.read_bytes(), 0)
    return int(model.Subgraphs(0).OutputsLength())


def tflm(path: Path, seed: int, arena: int = 96 << 20) -> dict[str, object]:
    """Run one input on TFLM; return all outputs and the arena's parts, in bytes."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(str(path), arena_size=arena)
    source = interpreter.get_input_details(0)
    rng = np.random.default_rng(seed)
    shape, dtype = tuple(source["shape"]), source["dtype"]
    interpreter.set_input(random_inputs(rng, 1, shape, dtype)[0], 0)
    interpreter.invoke()
    output = _flat([interpreter.get_output(index) for index in range(_outputs_of(path))]).tolist()
    # The allocation table goes to the C library's stderr, not to sys.stderr.
    with tempfile.TemporaryFile() as log:
        saved = os.dup(2)
        os.dup2(log.fileno(), 2)
        interpreter.print_allocations()
        os.dup2(saved, 2)
        log.seek(0)
        text = log.read().decode()
    parts = dict(re.findall(r"Arena allocation (\w+) (\d+) bytes", text))
    return {"output": output, "head": int(parts["head"]), "tail": int(parts["tail"])}


def _in_child(job: str, path: Path, number: int, timeout: float) -> object:
    command = [sys.executable, "-m", "zoo.probe", job, str(path), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": f"exit status {done.returncode}: {lines[-1] if lines else 'no message'}"}
    return json.loads(done.stdout.splitlines()[-1])


def probe(path: Path, inputs: int = 6, timeout: float = 600) -> dict[str, object]:
    """Return size, spread, TFLM's head and tail (x86-64), and the runtimes' difference."""
    spread = _in_child("spread", path, inputs, timeout)
    reference = _in_child("reference", path, 7, timeout)
    micro = _in_child("tflm", path, 7, timeout)
    facts: dict[str, object] = {"bytes": path.stat().st_size, "spread": spread}
    if isinstance(reference, list) and isinstance(micro, dict) and "output" in micro:
        gap = np.abs(np.subtract(reference, micro.pop("output")))
        facts["differs_at"], facts["largest_difference"] = int((gap > 0).sum()), float(gap.max())
    elif isinstance(reference, dict):
        facts["litert_reference"] = reference
    facts["tflm"] = micro
    return facts


def complaints(facts: dict[str, object]) -> list[str]:
    """Return what is wrong with a probed model: a runtime failed, or outputs hardly vary."""
    spread, micro = facts["spread"], facts["tflm"]
    found = []
    if not isinstance(spread, dict) or "error" in spread:
        found.append(f"LiteRT failed: {spread}")
    elif spread["logit_range_between_inputs"] < 20 or spread["distinct_outputs"] < spread["inputs"]:
        found.append("outputs hardly vary")
    if "litert_reference" in facts:
        found.append(f"LiteRT's reference kernels failed: {facts['litert_reference']}")
    if not isinstance(micro, dict) or "error" in micro:
        found.append(f"TFLM failed: {micro}")
    return found


if __name__ == "__main__":
    job, name, number = sys.argv[1:]
    jobs = {"spread": litert_spread, "reference": litert_reference, "tflm": tflm}
    print(json.dumps(jobs[job](Path(name), int(number))))
