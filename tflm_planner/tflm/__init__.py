"""A model of the runtime: what TensorFlow Lite Micro does with a network on a target, byte by byte.

targets, versions    what a model is planned for: core, kernel library, date of TFLM, board
liveness             TFLM's life spans, and from them the planning problem
control_flow, aliases, sharing    which tensors may lie in the same memory, and which do
greedy               TFLM's memory planner, simulated exactly
kernels/             what kernels allocate and request, and the order in which they read and write
arena/               the smallest arena that works
lean/                the arena of firmware with the lean library (arduino_runner/src/lean)
"""
