"""Computes regions of a graph in tiles: `tile` is the transform, `tiler` draws up the operators,
`operator_tiles` says how one operator computes a box of its result.
"""
