"""The serial protocol (schema/protocol.md), seen by the host.

    line -> framing -> messages -> link -> board -> station

`link` repeats requests that were lost, `board` checks every answer, `station` starts a job again
after a reset; `fill` makes the inputs that host and board both generate.
"""
