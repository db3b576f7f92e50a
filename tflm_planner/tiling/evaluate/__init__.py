"""Evaluates each candidate once, in several processes: makes its tiles, orders, plans, counts."""
