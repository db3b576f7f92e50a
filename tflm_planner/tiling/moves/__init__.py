"""Candidates near a tiling, or beside it. Moves know regions, not what they are worth."""
