"""The Python interface that the package exports: the verbs that make or judge models, as functions
with plain keywords.

    import tflm_planner as tp
    planned = tp.plan("vww.tflite", target="nano33ble", tile=tp.Tile(max_slowdown=1.10))
    planned.save("vww_planned.tflite")

    functions                        plan, arena, inspect, verify, stream_input
    results                          what they return, and how it is saved
    tile                             what tiles may cost and need
    takes_keywords, keyword_types    refuse what has the wrong type
    python_words                     errors in words of keywords

Everything here is typed, tested and stable; the packages below may change.
"""

from tflm_planner.pipeline.interface.functions import arena, inspect, plan, stream_input, verify
from tflm_planner.pipeline.interface.results import Planned, StreamedInput
from tflm_planner.pipeline.interface.tile import Tile

__all__ = ["Planned", "StreamedInput", "Tile", "arena", "inspect", "plan", "stream_input", "verify"]
