"""Draws arenas, memory maps and Pareto fronts as SVG, with `shapes`."""
