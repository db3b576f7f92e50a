"""Reads flatbuffers, and refuses damaged ones before anything trusts them."""
