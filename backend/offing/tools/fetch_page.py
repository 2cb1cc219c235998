"""The tool that reads one window of a web page at a time."""

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.core.tool_policy import Condition, ToolRule
from offing.tools.platform_tool import MAX_WEB_CALLS, WINDOW_CONDITIONS, PlatformTool
from offing.tools.read_source import build_window_output
from offing.tools.tool import ToolArgs, ToolFailedError, ToolScope


class FetchPageArgs(ToolArgs, frozen=True):
    url: str = Field(min_length=8, max_length=2048, description="The page's address, with http:// or https://.")
    start: int = Field(default=0, ge=0, le=2**31 - 1, description="First character wanted, from 0.")
    length: int = Field(default=3000, ge=1, le=6000, description="Characters wanted.")


class FetchPage:
    spec = ToolSpec(
        name="fetch_page",
        description="Read a stretch of a public web page or PDF, by its address. `next` in the answer is where to read "
        "on, under the address in `name`; null at the end.",
        args=FetchPageArgs,
        label="read",
        side_effect=SideEffect.PURE,
        timeout_seconds=90.0,
        untrusted=True,
        sends_data_out=True,
    )

    async def __call__(self, args: FetchPageArgs, scope: ToolScope) -> ToolOutput:
        if scope.web is None:
            raise ToolFailedError("This run may not use the web.")
        window = await scope.web.read(args.url, args.start, args.length)
        if isinstance(window, str):
            raise ToolFailedError(window)
        return build_window_output(window, f"{shorten_line(window.name, 120)}, ")


TOOL = PlatformTool(
    FetchPage(),
    ToolRule(
        tool="fetch_page",
        when=(Condition(arg="url", glob="http*://*", min_length=8, max_length=2_048), *WINDOW_CONDITIONS),
        max_calls=MAX_WEB_CALLS,
        reason="The run was asked with the web.",
    ),
    position=50,
    permission="web",
)
