"""Boards: the serial protocol, measuring, profiles, C export, and a virtual board.

    ports -> framing -> messages -> link -> board -> measuring, profiling
    virtual_board: the other end of the same line, with the Python wheel behind it

The protocol is specified in schema/protocol.md, the profile database in schema/profile.md.
"""
