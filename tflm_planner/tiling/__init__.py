"""Chooses what to tile. `search` is the front door; docs/search.md explains the algorithm.

intervals -> estimate/   what geometry promises, in microseconds
segmentation             the best cover of all operators by segments, exactly
evaluate/                what a candidate really comes to: tiled, ordered, packed, counted
hotspots/                irregular graphs: what is fat between places where little lives
moves/                   around the best models so far
beam_search              Algorithm 1 of MOTES, beside it
"""
