"""Boards: the serial protocol, measuring, profiles, C export, and a board that is none.

    ports -> framing -> messages -> client -> board -> measure, profile
    virtual_board: the other end of the same line, with the Python wheel behind it

The protocol is specified in schema/protocol.md, the profile database in schema/profile.md.
"""
