"""Rewrites of a model. Each is exact (the same bits on every input), or refuses with a reason.

    normalize                                    applied always: all that never costs anything
        fold_shapes, drop_identities, fold_transpose, collapse_axes
    drop_conversions                             other types at inputs and outputs (--io int8)
    reorder, minify, attach_plan         one thing each
    spelling                                     operators written so that other kernels run
    axis_graph                                   what can be split together
    tile/                                        regions computed in tiles
    row_loop/                                    regions computed a few rows at a time in a WHILE
    dialect                                      tiles whose views cost no operator, for TFLM alone

These modules know what is legal; `tiling` chooses what pays.
"""
