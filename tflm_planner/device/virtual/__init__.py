"""A board without hardware: the protocol's other side, with real TFLM in a child process.

virtual_board -> responder -> host_runtime -> host_runtime_worker
"""
