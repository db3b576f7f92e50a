"""A virtual board: the board's side of the protocol, with real TFLM in a child process.

virtual_board -> responder -> host_runtime -> host_runtime_worker
"""
