"""A model measured on a board: arena, latency per operator, outputs, energy.

measure -> measurement -> report
"""
