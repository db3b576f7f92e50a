"""Pictures: arenas, memory maps and Pareto fronts, of `shapes`."""
