"""From a file to a proved file.

    bytes -> normalize -> memory_search -----------------> planned_file -+
                |                                                         +-> prove -> file, Report
                +-> tiling -> tiled_file -> memory_search ---------------+

`api` is the front door, with all `options`: `plan`, `arena`, `inspect`, `check_equal`,
`stream_input`. `model_planner` decides which file is made next if `prove` refuses one.
"""
