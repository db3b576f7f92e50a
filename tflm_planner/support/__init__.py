"""What every floor uses and that knows nothing of models: errors with exit codes, bytes as people
write them, files written whole or not at all, a spinner, messages between processes.
"""
