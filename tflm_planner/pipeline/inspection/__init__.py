"""A model as it is: its arena, its memory map, what decides them, and whether it fits.

    arenas         the arena of a file, with the plan that it carries if that is right
    inspect_model  the memory map and the floors of the head
    advice         what lies there at the peak, in sentences
    memory_fit     many files against the memory that they are given

Nothing here plans or searches.
"""
