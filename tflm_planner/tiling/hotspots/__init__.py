"""Irregular graphs: operators that need most, with those around them that leave little alive, in
orders that run each such group in one piece.
"""
