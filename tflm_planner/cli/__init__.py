"""The command line. It parses arguments, calls `api` and prints. `tflm_planner.cli.app` is its
front door; the process starts in `main`."""
