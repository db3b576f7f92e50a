"""One model on many boards.

compare_boards: boards -> sorts of firmware -> cells, of which some need `planned_cells`
cell_search: which cells are looked for, and what that may cost
"""
