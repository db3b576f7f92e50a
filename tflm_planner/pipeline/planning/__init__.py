"""From a model to files that can be proved.

    memory_search --MemoryPlan--> planned_file --+
    tiling -> tiled_file --MemoryPlan------------+--> PlannedFile
                    model_planner: which file is made next, where `refusals` rule some out

`memory_plan` is one plan, `memory_search` the choice between plans, `write` the last steps to a
file; `planning_session` plans one model by several sets of options. Runtimes are not known here:
`prove` is a function.
"""
