"""Candidates tiled, ordered, planned and counted, in several processes; each once."""
