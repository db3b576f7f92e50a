"""Makes planned files from a model until one is proved.

    memory_search --MemoryPlan--> planned_file --+
    tiling -> tiled_file --MemoryPlan------------+--> PlannedFile
                    model_planner: order and plan, then spellings, then tiles, until it is enough
                    tiling_attempts: which tiling is next, without those that `refusals` rule out

`memory_plan` makes one plan, `memory_search` chooses between plans, `write` makes the file, and
`planning_session` plans one model with several sets of options. This package knows no runtimes:
`prove` is a function that it is given.
"""
