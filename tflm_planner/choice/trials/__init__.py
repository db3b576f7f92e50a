"""Candidates made, planned and counted, in several processes; each once."""
