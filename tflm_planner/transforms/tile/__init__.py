"""Computes regions of a graph in tiles: `tile` is the transform, `tiler` drafts the operators, and
`operator_tiles` defines how one operator computes a box of its result.
"""
