"""Candidates that are variants of a tiling. Moves know regions, but not the gain of a candidate."""
