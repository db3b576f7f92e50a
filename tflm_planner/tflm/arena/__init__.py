"""The arena of a target to the byte: `predict` is the front door."""
