"""What a model does on the real runtimes: do outputs vary, do runtimes agree, how big is it.

Knows the interpreters only. TFLM aborts the process on some models, so every runtime runs in
a child process, which gets the model and prints one JSON document.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def random_inputs(rng: np.random.Generator, n: int, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Draw int8 inputs: each its own brightness, contrast and coarseness."""
    inputs = []
    for _ in range(n):
        coarse = int(rng.integers(2, 12))
        cells = [1, *(-(-size // coarse) for size in shape[1:3]), *shape[3:]]
        blocks = rng.normal(rng.uniform(-60, 60), rng.uniform(10, 90), cells)
        blocks = blocks.repeat(coarse, axis=1).repeat(coarse, axis=2)
        blocks = blocks[:, : shape[1], : shape[2]] + rng.normal(0, 8, shape)
        inputs.append(np.clip(blocks, -128, 127).astype(np.int8))
    return inputs


def _softmax_input(interpreter) -> int:
    ops = interpreter._get_ops_details()
    softmax = [op for op in ops if op["op_name"] == "SOFTMAX"]
    return int(
        softmax[-1]["inputs"][0] if softmax else interpreter.get_output_details()[0]["index"]
    )


def litert_spread(path: Path, n: int) -> dict[str, float]:
    """Run `n` inputs on LiteRT and say how much logits, outputs and the winner vary."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), experimental_preserve_all_tensors=True, num_threads=2)
    interpreter.allocate_tensors()
    source = interpreter.get_input_details()[0]
    target = interpreter.get_output_details()[0]["index"]
    before = _softmax_input(interpreter)
    logits, outputs = [], []
    for value in random_inputs(np.random.default_rng(1), n, tuple(source["shape"])):
        interpreter.set_tensor(source["index"], value)
        interpreter.invoke()
        logits.append(interpreter.get_tensor(before).ravel().astype(int))
        outputs.append(interpreter.get_tensor(target).ravel().astype(int))
    table = np.array(logits)
    return {
        "logit_range": int(table.max() - table.min()),
        "logit_range_between_inputs": float(np.ptp(table, axis=0).mean()),
        "winners": len({int(row.argmax()) for row in table}),
        "distinct_outputs": len({row.tobytes() for row in outputs}),
        "inputs": n,
    }


def litert_reference(path: Path, seed: int) -> list[int]:
    """Run one input on LiteRT's reference kernels and return the output, flattened."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    source = interpreter.get_input_details()[0]
    value = random_inputs(np.random.default_rng(seed), 1, tuple(source["shape"]))[0]
    interpreter.set_tensor(source["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).ravel().tolist()


def tflm(path: Path, seed: int, arena: int = 64 << 20) -> dict[str, object]:
    """Run one input on TFLM; return the output and the arena's parts, in bytes."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(str(path), arena_size=arena)
    shape = tuple(interpreter.get_input_details(0)["shape"])
    interpreter.set_input(random_inputs(np.random.default_rng(seed), 1, shape)[0], 0)
    interpreter.invoke()
    output = interpreter.get_output(0).ravel().tolist()
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
        facts["differs_at"], facts["largest_difference"] = int((gap > 0).sum()), int(gap.max())
    elif isinstance(reference, dict):
        facts["litert_reference"] = reference
    facts["tflm"] = micro
    return facts


if __name__ == "__main__":
    job, name, number = sys.argv[1:]
    jobs = {"spread": litert_spread, "reference": litert_reference, "tflm": tflm}
    print(json.dumps(jobs[job](Path(name), int(number))))
