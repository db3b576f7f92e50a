"""The command line. `tflm_planner.cli.app` is its front door; it parses, calls `api`, prints. The
command starts in `main`."""
