"""Boards: the serial protocol, measuring, profiles, C++ sources, and a virtual board.

protocol/    the host's side of a serial line (schema/protocol.md)
measuring/   a model on a board; profiling/ its operators one by one (schema/profile.md)
virtual/     the other end of the same line, with the Python wheel behind it
cpp/         a model as sources for firmware
"""
