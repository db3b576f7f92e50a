"""Defaults that the command line, the Python interface and the options behind them share.

Each stands here once, and here because `tflm-plan --help` shows it without loading anything heavy.
"""

TARGET = "cortex-m4/cmsis-nn"
SEED = 0
INPUTS = 8
"""Inputs to compare on each runtime."""
SLOWDOWN = 1.10
"""Instructions that tiles and loops may take, relative to the original model."""
STREAM_SLOWDOWN = 1.20
"""Instructions of both halves of a model split for streamed input, relative to the original."""
WORKERS = 2
"""Processes that evaluate tilings; the result does not depend on their number."""
