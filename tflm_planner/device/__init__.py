"""Code for boards: the serial protocol, measuring, profiling, C++ export, and a virtual board.

protocol/   the host's side of a serial line (schema/protocol.md)
measuring/  measures a model on a board
profiling/  measures its operators one by one (schema/profile.md)
virtual/    a board in software: the other end of the line, which runs the Python wheel
cpp/        exports a model as sources for firmware
"""
