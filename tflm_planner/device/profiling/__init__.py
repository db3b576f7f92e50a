"""Measures operators one by one on a board, and keeps their latencies in a database."""
