"""Lean firmware: the pool of parameters in the model file, and what remains in the arena."""
