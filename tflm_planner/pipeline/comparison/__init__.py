"""Compares what one model needs on many boards.

compare_boards: boards -> kinds of firmware -> cells, some of which need `planned_cells`
cell_search: which cells are computed, and how
"""
