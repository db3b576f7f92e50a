"""What every floor of the package uses and what knows nothing of models: errors with exit codes,
sizes in bytes as people write them, files written completely or not at all, a spinner, messages
between processes.
"""
