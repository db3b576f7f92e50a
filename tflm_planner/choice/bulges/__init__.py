"""Irregular graphs: what is fat between places where little lives, in orders made for it."""
