"""Defaults that the command line, the Python interface and the option classes share.

Each default is defined only here, so that `tflm-plan --help` can show it without importing numpy.
"""

TARGET = "cortex-m4/cmsis-nn"
SEED = 0
INPUTS = 8
"""Number of inputs with which outputs are compared on each runtime."""
SLOWDOWN = 1.10
"""Permitted instructions of a model with tiles and loops, relative to the original model."""
STREAM_SLOWDOWN = 1.20
"""Permitted instructions of both halves of a model split for streamed input, relative to the
original model."""
WORKERS = 8
"""Most processes that evaluate tilings, one a core; the result does not depend on it. Reckoned from
the seconds of each evaluation (docs/search-measured.md): MobileNetV2 1.0@224 takes 21.6 s with 2,
8.5 s with 8 and 7.2 s with 16, each of which takes 100 to 190 MB."""
