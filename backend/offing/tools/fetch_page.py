"""The tool that reads a page of the web, a window at a time."""

from pydantic import Field

from offing.core.step import shortened
from offing.core.tool import Effect, ToolOutput, ToolSpec
from offing.tools.read_source import observed
from offing.tools.tool import ToolArgs, ToolFailed, ToolScope


class FetchArgs(ToolArgs, frozen=True):
    url: str = Field(min_length=8, max_length=2048, description="The page's address, with http:// or https://.")
    start: int = Field(default=0, ge=0, le=2**31 - 1, description="First character wanted, from 0.")
    length: int = Field(default=3000, ge=1, le=6000, description="Characters wanted.")


class FetchPage:
    spec = ToolSpec(
        name="fetch_page",
        description="Read a stretch of a public web page or PDF, by its address. `next` in the answer is where to read "
        "on, under the address in `name`; null at the end.",
        args=FetchArgs,
        verb="read",
        effect=Effect.PURE,
        timeout_seconds=90.0,
        untrusted=True,
        outward=True,
    )

    async def __call__(self, args: FetchArgs, scope: ToolScope) -> ToolOutput:
        if scope.web is None:
            raise ToolFailed("This run may not use the web.")
        window = await scope.web.read(args.url, args.start, args.length)
        if isinstance(window, str):
            raise ToolFailed(window)
        return observed(window, f"{shortened(window.name, 120)}, ")
