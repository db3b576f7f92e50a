"""From a file to a proved file.

    bytes -> normalize -> memory_plan --------------------> planned_model -+
                |                                                          +-> prove -> file, Report
                +-> tiling -> tiled_model -> memory_plan -> planned_model -+

`api` is the front door: `plan`, `arena`, `inspect`, `verify`, `stream_input`.
"""
