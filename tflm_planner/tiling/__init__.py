"""Chooses what to tile. `search` is the front door; docs/search.md explains the algorithm.

intervals -> estimate/   what an interval needs in tiles or in a loop, from its geometry
segmentation             the best split of the schedule into segments, by dynamic programming
evaluate/                what a candidate really needs: tiled, ordered, planned, counted
hotspots/                irregular graphs: large operators with the small places around them
moves/                   candidates near the best models so far
beam_search              Algorithm 1 of MOTES, instead of the search of segments
"""
