"""Examines a model as it is: its arena, its memory map, what decides them, and whether it fits.

    arenas         the arena of a file, with the plan that it carries if that is valid
    inspect_model  the memory map and the lower bounds of the head
    advice         what lies in the head at the peak, in sentences
    memory_fit     whether many files fit their memory

Nothing here plans or searches.
"""
