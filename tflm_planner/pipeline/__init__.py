"""From a file to a proved file.

bytes -> normalize -> memory_search -----------------> planned_file -+
            |                                                         +-> prove -> file, Report
            +-> tiling -> tiled_file -> memory_search ---------------+

api, interface   the front doors: the command's, with all `options`, and the users'
read_only        what answers at once, and changes nothing
inspection/      a model as it is: arena, memory map, whether it fits
planning/        from a model to files that can be proved, one after the other
prove            files against the original; `runtime_failures` says what a runtime meant
stream_input/    a model split in two, for rows from a camera
comparison/      one model on many boards
guidance/        the report, and what to do next
"""
