"""The child process of a session: it loads one model in one runtime and invokes it on request.

`python -m tflm_planner.verification.worker RUNTIME MODEL ARENA OUTPUTS` reads frames of inputs from
standard input and answers each with a frame of OUTPUTS arrays. The first frame that it writes says
how loading went. It is a process of its own because TFLM aborts the process on some models.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any

from tflm_planner.support.frames import Failure, read_frame, write_frame

Invoke = Callable[[list[Any]], list[Any]]


def load_litert(path: str, arena: int, output_count: int) -> tuple[dict[str, int], Invoke]:
    """Load a model in LiteRT with its reference kernels. There is no arena to report."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter: Any = Interpreter(
        model_path=path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    inputs = [d["index"] for d in interpreter.get_input_details()]
    outputs = [d["index"] for d in interpreter.get_output_details()]

    def invoke(values: list[Any]) -> list[Any]:
        for index, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        return [interpreter.get_tensor(i).copy() for i in outputs[:output_count]]

    return {}, invoke


def load_tflm(path: str, arena: int, output_count: int) -> tuple[dict[str, int], Invoke]:
    """Load a model in stock TFLM (the wheel: reference kernels, x86-64), and report head and tail.
    An input that is None stays as the previous invoke left it."""
    from tflite_micro import runtime

    interpreter: Any = runtime.Interpreter.from_file(path, arena_size=arena)
    sizes = allocation(interpreter)

    def invoke(values: list[Any]) -> list[Any]:
        for index, value in enumerate(values):
            if value is not None:
                interpreter.set_input(value, index)
        interpreter.invoke()
        return [interpreter.get_output(i).copy() for i in range(output_count)]

    return sizes, invoke


def load_shapes(path: str, arena: int, tensor_count: int) -> tuple[dict[str, int], Invoke]:
    """Load a model in LiteRT with its fast kernels, of which it has more than of the others. An
    invoke gives the outputs, behind a list of the shape that each tensor of the main graph then
    has, None for a tensor that LiteRT does not know."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter: Any = Interpreter(
        model_path=path,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
        num_threads=1,
    )
    interpreter.allocate_tensors()
    inputs = [d["index"] for d in interpreter.get_input_details()]
    outputs = [d["index"] for d in interpreter.get_output_details()]

    def invoke(values: list[Any]) -> list[Any]:
        for index, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        known = {d["index"]: d["shape"] for d in interpreter.get_tensor_details()}
        shapes = [known.get(index) for index in range(tensor_count)]
        return [shapes, *(interpreter.get_tensor(i).copy() for i in outputs)]

    return {}, invoke


LOADERS = {"LiteRT": load_litert, "LiteRT shapes": load_shapes, "TFLM": load_tflm}


def allocation(interpreter: Any) -> dict[str, int]:
    """Head and tail as the recording allocator prints them, on the C side's standard error. What
    it prints goes to memory: a child that is killed would leave a temporary file. (The wheel of
    TFLM exists for Linux alone, which has such files in memory.)"""
    saved = os.dup(2)
    with os.fdopen(os.memfd_create("allocations"), "w+b") as sink:
        os.dup2(sink.fileno(), 2)
        try:
            interpreter.print_allocations()
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        sink.seek(0)
        printed = sink.read().decode("utf-8", "replace")
    return {k: int(v) for k, v in re.findall(r"Arena allocation (head|tail) (\d+) bytes", printed)}


def main() -> None:
    """Serve one model until standard input ends."""
    name, path, arena, output_count = sys.argv[1:5]
    # Runtimes also print to descriptor 1, so answers go to a copy of it and prints to stderr.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        about, invoke = LOADERS[name](path, int(arena), int(output_count))
    except Exception as error:
        write_frame(answers, Failure(first_line(error)))
        return
    write_frame(answers, about)
    while True:
        try:
            values = read_frame(sys.stdin.buffer)
        except EOFError:
            return
        try:
            write_frame(answers, invoke(values))
        except Exception as error:
            write_frame(answers, Failure(first_line(error)))


def first_line(error: Exception) -> str:
    """The first line of an error's text, or the name of its type."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


if __name__ == "__main__":
    main()
