"""Streamed input: a model split in two, so that its input comes row by row.

    split   where, so that front and back need the least SRAM together
    render  the report, and the C++ that runs the pair

`transforms.row_loop.split_input` makes the two halves.
"""
