"""The command line of `mcp`: it parses arguments and starts the server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tflm_planner.cli.shared import exit_on_errors
from tflm_planner.support.errors import UsageError


def mcp_command(
    folder: Annotated[
        Path, typer.Option(help="Whose files may be read and written.", metavar="FOLDER")
    ] = Path(),
) -> None:
    """Serve arena, compare, inspect and plan to programs that speak the Model Context Protocol."""
    with exit_on_errors():
        try:
            import anyio

            from tflm_planner.cli.mcp_server import Workspace, serve
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("tflm_planner"):
                raise
            raise UsageError(
                f"this needs the package {error.name!r}: pip install 'tflm-planner[mcp]'"
            ) from error
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder")
        anyio.run(serve, Workspace(folder.resolve()))
