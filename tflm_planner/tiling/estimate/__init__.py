"""What an interval of a schedule would need in tiles or in a loop, from its geometry alone."""
