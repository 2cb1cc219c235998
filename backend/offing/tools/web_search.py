"""The tool that searches the web. It returns addresses to fetch; a snippet is no evidence."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.core.tool_policy import ToolRule
from offing.tools.platform_tool import LIMIT_CONDITION, MAX_WEB_CALLS, PlatformTool, limit_length
from offing.tools.tool import ToolArgs, ToolFailedError, ToolScope

if TYPE_CHECKING:
    from offing.web.search import MergedHit


class WebSearchArgs(ToolArgs, frozen=True):
    query: str = Field(min_length=1, max_length=500, description="What to look for, in a few telling words.")
    limit: int = Field(default=8, ge=1, le=20, description="Pages wanted.")


class WebSearch:
    spec = ToolSpec(
        name="web_search",
        description="Find pages on the web. Each result has an address to read with `fetch_page`; snippets are cut "
        "out by a search engine and cannot be cited.",
        args=WebSearchArgs,
        label="search",
        side_effect=SideEffect.PURE,
        untrusted=True,
        sends_data_out=True,
    )

    async def __call__(self, args: WebSearchArgs, scope: ToolScope) -> ToolOutput:
        if scope.web is None:
            raise ToolFailedError("This run may not use the web.")
        searched = await scope.web.search(args.query, args.limit)
        if not searched.hits and searched.failed:
            raise ToolFailedError(" ".join(f"{engine}: {problem}" for engine, problem in searched.failed.items()))
        return ToolOutput(
            content={"results": [_render_hit(one) for one in searched.hits], "failed": dict(searched.failed)},
            title=shorten_line(args.query),
            detail=_summarize(len(searched.hits)),
        )


TOOL = PlatformTool(
    WebSearch(),
    ToolRule(
        tool="web_search",
        when=(limit_length("query", 500), LIMIT_CONDITION),
        max_calls=MAX_WEB_CALLS,
        reason="The run was asked with the web.",
    ),
    position=40,
    permission="web",
)


def _render_hit(merged_hit: "MergedHit") -> dict[str, Any]:
    hit = merged_hit.hit
    result = {"url": hit.url, "title": hit.title, "snippet": hit.snippet, "found_by": list(merged_hit.engines)}
    return {**result, "published": hit.published} if hit.published else result


def _summarize(pages: int) -> str:
    if not pages:
        return "nothing found"
    return f"{pages} page{'s' if pages > 1 else ''}"
