"""Chooses what to tile. `search` is its front door.

regions                  the default search;      motes    Algorithm 1 of MOTES
intervals -> sketches/   what geometry promises   trials/  what a candidate really comes to
items, partition         the best cover           bulges/  irregular graphs
moves/                   around a model that is good already
"""
