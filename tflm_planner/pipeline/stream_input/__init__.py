"""Splits a model in two, so that its input comes row by row.

    split   finds where to split, so that front and back together need the least SRAM
    render  makes the report, and the C++ code that runs the pair

`transforms.row_loop.split_input` makes the two halves.
"""
