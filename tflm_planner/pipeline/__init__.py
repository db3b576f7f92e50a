"""Turns a model file into a planned and proved file.

bytes -> normalize -> memory_search -----------------> planned_file -+
            |                                                         +-> prove -> file, Report
            +-> tiling -> tiled_file -> memory_search ---------------+

    api, interface  the front doors: of the command, with all `options`, and for users
    read_only       the functions that answer at once and change nothing
    inspection/     examines a model as it is: arena, memory map, whether it fits
    planning/       makes one file after the other until one is proved
    prove           compares files with the original; `runtime_failures` explains errors
    stream_input/   splits a model in two, for rows from a camera
    comparison/     compares what one model needs on many boards
    guidance/       makes the report, and says what to do next
"""
