"""Searches a space of networks for the most accurate one that fits a board.

space       networks whose kernels, expansions, depths, widths and resolutions vary
memory      decides whether one fits, by the cheapest test that can tell
evolution   draws, judges and scores them; `search_svg` draws what was found
"""
