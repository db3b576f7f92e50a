"""Reads flatbuffers, and refuses damaged ones before other code relies on them."""
