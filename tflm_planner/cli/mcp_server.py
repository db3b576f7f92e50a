"""Serves the tools of `mcp_tools` by the Model Context Protocol, over stdin and stdout.

    client <--JSON-RPC--> SDK --call--> one thread --> ServedTool

One call is computed at a time, in a thread, so that the server can meanwhile answer pings and
receive cancellations. It must not know what tools do.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import mcp.types as sdk
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from tflm_planner.cli.mcp_tools import TOOLS, Caller, JsonValues, ServedTool, Workspace, failure
from tflm_planner.support.stopping import Stop
from tflm_planner.support.version import __version__

_ABOUT = (
    "tflm_planner makes TensorFlow Lite models fit microcontrollers that run TFLite-Micro. Begin "
    "with `arena` or `compare`; `plan` writes a smaller model that computes the same bits. Sizes "
    "are bytes. Errors have a code, a kind and a message that says what to try."
)


def make_server(workspace: Workspace) -> Server[Any]:
    """A server whose tools read and write the files of one folder."""
    tools = {tool.name: tool for tool in TOOLS}
    one_at_a_time = anyio.Lock()

    async def on_list_tools(_: Any, __: Any) -> sdk.ListToolsResult:
        return sdk.ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def on_call_tool(
        context: ServerRequestContext[Any], params: sdk.CallToolRequestParams
    ) -> sdk.CallToolResult:
        if params.name not in tools:
            words = f"no tool {params.name!r}; there are {', '.join(tools)}"
            raise MCPError(sdk.INVALID_PARAMS, words)
        steps = 0

        def on_progress(words: str) -> None:
            nonlocal steps
            steps += 1
            anyio.from_thread.run(context.session.report_progress, steps, None, words)

        caller = Caller(on_progress, Stop())
        async with one_at_a_time, _interrupting(caller.stop):
            answer = await anyio.to_thread.run_sync(
                lambda: _call(tools[params.name], params.arguments or {}, workspace, caller)
            )
            await anyio.lowlevel.checkpoint()  # a cancelled call ends here, without an answer
        return answer

    return Server(
        "tflm-planner",
        version=__version__,
        instructions=_ABOUT,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


@asynccontextmanager
async def _interrupting(stop: Stop) -> AsyncGenerator[None]:
    """Interrupt `stop` when the body of this context is cancelled or ends. A worker thread that the
    body awaits is still waited for; it ends when it next checks `stop`."""

    async def interrupt() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.interrupt()

    async with anyio.create_task_group() as beside:
        beside.start_soon(interrupt)
        yield
        beside.cancel_scope.cancel()


def _described(tool: ServedTool) -> sdk.Tool:
    return sdk.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=sdk.ToolAnnotations(
            read_only_hint=not tool.writes, destructive_hint=False, open_world_hint=False
        ),
    )


def _call(
    tool: ServedTool, arguments: JsonValues, workspace: Workspace, caller: Caller
) -> sdk.CallToolResult:
    """The answer of a tool, or its error. An internal error is an answer too."""
    try:
        values, is_error = tool.answer(arguments, workspace, caller), False
    except Exception as error:
        values, is_error = failure(error), True
    text = sdk.TextContent(type="text", text=_text(values, is_error=is_error))
    return sdk.CallToolResult(content=[text], structured_content=values, is_error=is_error)


def _text(values: JsonValues, *, is_error: bool) -> str:
    if is_error:
        return f"error {values['code']} ({values['kind']}): {values['message']}"
    return json.dumps(values, ensure_ascii=False)


async def serve(workspace: Workspace) -> None:
    """Answer requests until stdin ends."""
    server = make_server(workspace)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
