"""The serial protocol (schema/protocol.md), seen by the host.

    line -> framing -> messages -> link -> board -> station

`link` repeats requests that were lost, `board` checks every answer, `station` starts again after a
reset; `fill` makes the inputs that host and board generate alike.
"""
