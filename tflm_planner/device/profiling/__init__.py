"""Operators measured one by one on a board, and the database that keeps what they took."""
