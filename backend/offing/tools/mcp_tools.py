"""Tools of MCP servers, and the one for each server that reads on in what they answered. Knows no protocol."""

from collections.abc import Iterable

from pydantic import Field

from offing.core.step import shortened
from offing.core.tool import Effect, ToolOutput, ToolSpec
from offing.mcp.offered import Offered, OfferedTool
from offing.mcp.schema import McpArgs
from offing.tools.read_source import observed
from offing.tools.tool import McpPort, Tool, ToolArgs, ToolFailed, ToolScope


def mcp_tools(servers: Iterable[Offered]) -> tuple[Tool, ...]:
    """All that these servers offer."""
    return tuple(tool for one in servers if one.tools for tool in (*map(McpTool, one.tools), ReadOn(one)))


class McpTool:
    """A tool of somebody else's server."""

    def __init__(self, offered: OfferedTool) -> None:
        self._offered = offered
        self.spec = offered.spec

    async def __call__(self, args: McpArgs, scope: ToolScope) -> ToolOutput:
        answer = await _port(scope).ask(self._offered, args.model_dump(mode="json"), scope.idempotency_key)
        if isinstance(answer, str):
            raise ToolFailed(answer)
        if answer.window is None:
            return self._without_text(answer.left_out)
        output = observed(answer.window)
        if answer.left_out:
            output.content["left_out"] = list(answer.left_out)
        return output

    def _without_text(self, left_out: tuple[str, ...]) -> ToolOutput:
        if left_out:
            kinds = ", ".join(sorted(set(left_out)))
            raise ToolFailed(f"The answer has no text, only {kinds}, which is not taken.")
        title = f"{self._offered.remote} ({self._offered.server})"
        return ToolOutput(content={"answer": "", "note": "It answered without a text."}, title=title, detail="no text")


class ReadOnArgs(ToolArgs, frozen=True):
    name: str = Field(min_length=1, max_length=200, description="`name` of an answer.")
    start: int = Field(default=0, ge=0, le=2**31 - 1, description="First character wanted, from 0.")
    length: int = Field(default=3000, ge=1, le=6000, description="Characters wanted.")


class ReadOn:
    """Reads on in a long answer, a window at a time."""

    def __init__(self, server: Offered) -> None:
        self._server = server.name
        self.spec = ToolSpec(
            name=server.read_on,
            description=f"Read on in an answer that a tool of the server {server.name} gave to this run. `next` in the "
            "answer is where to read on; null at the end.",
            args=ReadOnArgs,
            verb="read",
            effect=Effect.PURE,
            untrusted=True,
        )

    async def __call__(self, args: ReadOnArgs, scope: ToolScope) -> ToolOutput:
        window = await _port(scope).read(self._server, args.name, args.start, args.length)
        if isinstance(window, str):
            raise ToolFailed(shortened(window, 300))
        return observed(window)


def _port(scope: ToolScope) -> McpPort:
    if scope.mcp is None:
        raise ToolFailed("This run may not use MCP servers.")
    return scope.mcp
