"""Tiles irregular graphs. A hotspot consists of the largest operators and those around them, chosen
so that few bytes live before and after it. Hotspots are tiled in orders that run each of them in
one piece.

min_cut       the cheapest places before and after some operators
orders        hotspots between such places; how good an order around them may get
contraction   the best order in which every hotspot runs in one piece
tiles         how many tiles each hotspot takes
"""
