"""Tiles irregular graphs. A hotspot is a set of the largest operators and operators around them,
chosen so that few bytes live before and after it. Hotspots are tiled in orders that run each
hotspot without interruption.

min_cut       the cheapest cuts before and after some operators
orders        hotspots between such cuts; an estimate of how good an order around them can be
contraction   the best order in which every hotspot runs without interruption
tiles         the number of tiles of each hotspot
"""
