"""Lean firmware: the pool of parameters in the model file, and what is left in the arena."""
