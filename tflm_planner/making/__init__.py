"""Makes files: `make` is the front door.

    original --+-- search -------------------------------------------> plain file --+
               +-- steps (choice) -> tilings -> tiled | by_hand -> search -> file --+-- the smaller
    file: finishing (strip, pool, plan) -> written -> read back, validated, replayed
    said: advice, front, what must be registered, what the target's TFLM lacks (versions)

It must not run models: that is `verify`'s, and `api` calls it.
"""
