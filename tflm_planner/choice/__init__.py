"""Chooses what to tile. `tflm_planner.tile_search` is its front door."""
