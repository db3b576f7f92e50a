"""Measures a model on a board: arena, latency for each operator, outputs, energy.

measure -> measurement -> report
"""
