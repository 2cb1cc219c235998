"""Tools of MCP servers, and one tool per server that reads more of their answers."""

from collections.abc import Iterable

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.mcp.allowed_tools import AllowedMcpTool, McpServerTools
from offing.mcp.args_schema import McpArgs
from offing.tools.read_source import build_window_output
from offing.tools.tool import McpAccess, Tool, ToolArgs, ToolFailedError, ToolScope


def create_mcp_tools(servers: Iterable[McpServerTools]) -> tuple[Tool, ...]:
    """Return all tools of these servers."""
    return tuple(tool for one in servers if one.tools for tool in (*map(McpTool, one.tools), ReadMoreTool(one)))


class McpTool:
    """A third-party tool of an MCP server."""

    def __init__(self, allowed_tool: AllowedMcpTool) -> None:
        self._offered = allowed_tool
        self.spec = allowed_tool.spec

    async def __call__(self, args: McpArgs, scope: ToolScope) -> ToolOutput:
        answer = await _require_mcp(scope).call(self._offered, args.model_dump(mode="json"), scope.idempotency_key)
        if isinstance(answer, str):
            raise ToolFailedError(answer)
        if answer.window is None:
            return self._output_without_text(answer.skipped)
        output = build_window_output(answer.window)
        if answer.skipped:
            output.content["skipped"] = list(answer.skipped)
        return output

    def _output_without_text(self, omitted: tuple[str, ...]) -> ToolOutput:
        if omitted:
            kinds = ", ".join(sorted(set(omitted)))
            raise ToolFailedError(f"The answer has no text, only {kinds}, which is not taken.")
        title = f"{self._offered.remote_name} ({self._offered.server})"
        return ToolOutput(content={"answer": "", "note": "It answered without a text."}, title=title, detail="no text")


class ReadMoreArgs(ToolArgs, frozen=True):
    name: str = Field(min_length=1, max_length=200, description="`name` of an answer.")
    start: int = Field(default=0, ge=0, le=2**31 - 1, description="First character wanted, from 0.")
    length: int = Field(default=3000, ge=1, le=6000, description="Characters wanted.")


class ReadMoreTool:
    """Reads more of a long answer, one window at a time."""

    def __init__(self, server: McpServerTools) -> None:
        self._server = server.name
        self.spec = ToolSpec(
            name=server.read_more_name,
            description=f"Read on in an answer that a tool of the server {server.name} gave to this run. `next` in the "
            "answer is where to read on; null at the end.",
            args=ReadMoreArgs,
            label="read",
            side_effect=SideEffect.PURE,
            untrusted=True,
        )

    async def __call__(self, args: ReadMoreArgs, scope: ToolScope) -> ToolOutput:
        window = await _require_mcp(scope).read(self._server, args.name, args.start, args.length)
        if isinstance(window, str):
            raise ToolFailedError(shorten_line(window, 300))
        return build_window_output(window)


def _require_mcp(scope: ToolScope) -> McpAccess:
    if scope.mcp is None:
        raise ToolFailedError("This run may not use MCP servers.")
    return scope.mcp
