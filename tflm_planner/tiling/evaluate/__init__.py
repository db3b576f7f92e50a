"""Candidates are tiled, ordered, planned and counted, in several processes; each only once."""
