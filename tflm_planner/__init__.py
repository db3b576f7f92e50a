"""Makes TensorFlow Lite models fit microcontrollers: same bits, a fraction of the SRAM.

The command is `tflm-plan`; `tflm_planner.pipeline.api` holds the same for Python.
"""

__version__ = "0.1.0"
