"""Irregular graphs: hotspots are the largest operators, with those around them that leave few bytes
alive. They are tiled in orders that run each hotspot in one piece.

min_cut       the cheapest places before and behind some operators
orders        hotspots between such places; how good an order around them may get
contraction   the best order in which every hotspot runs in one piece
tiles         how many tiles each hotspot takes
"""
