"""What lies near a tiling, or is worth trying beside it. Moves know regions, not their worth."""
