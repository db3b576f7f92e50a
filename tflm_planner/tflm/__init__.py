"""A model of the runtime: what TensorFlow Lite Micro does with a network on a target, byte by byte.

targets, versions    what a model is planned for: core, kernel library, TFLM of which day, board
liveness             TFLM's life spans, and from them the planning problem
control_flow, aliases, sharing    which tensors may lie in the same memory, and which do
greedy               TFLM's memory planner, simulated one to one
kernels/             what kernels allocate, request and read and write, library by library
arena/               the smallest arena that works
lean/                the arena of firmware with the lean library (arduino_runner/src/lean)
"""
