"""Chooses what to tile. `permissions.search_by_permission` is the front door, which calls `search`;
docs/search.md explains the algorithm.

intervals -> estimate/   what an interval needs in tiles or in a loop, from its geometry
segmentation             the best split of the schedule into segments, by dynamic programming
evaluate/                the exact figures of a candidate: it is tiled, ordered, planned, counted
hotspots/                irregular graphs: regions around large operators, cut where few bytes live
moves/                   candidates that are variants of the best models so far
beam_search              Algorithm 1 of MOTES, which replaces the search of segments
"""
