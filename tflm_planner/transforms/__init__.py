"""Rewrites of a model. Each is exact (the same bits on every input), or refuses with a reason.

    normalize                                    always applied: rewrites that never cost anything
        fold_shapes, drop_identities, fold_transpose, collapse_axes
    substitutes/                                 operators that TFLM has for those that it lacks
    drop_conversions                             other types at inputs and outputs (--io int8)
    reorder, minify, attach_plan                 order; size of the file; plan in the file
    spelling                                     operators written so that other kernels run
    axis_graph                                   which axes can be split together
    tile/                                        regions computed in tiles
    row_loop/                                    regions computed a few rows at a time in a WHILE
    dialect                                      tiles whose views cost no operator, only for TFLM

These modules know what is legal; `tiling` chooses what is worth doing.
"""
