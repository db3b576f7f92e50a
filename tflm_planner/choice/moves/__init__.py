"""What lies near a tiling, or is worth trying beside it. Moves know schemes, not their worth."""
