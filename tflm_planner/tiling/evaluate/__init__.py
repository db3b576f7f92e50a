"""Evaluates candidates, each once: tiles, orders, plans and counts them, in several processes."""
