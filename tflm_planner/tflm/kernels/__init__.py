"""What TFLM's kernels do with memory: sizes of their structures, what Prepare allocates and
fetches, scratch, the order in which they read and write, and where they are known to be wrong.
"""
