"""The tool that searches the web. What it finds are addresses to fetch: a snippet is no evidence."""

from typing import Any

from pydantic import Field

from offing.core.step import shortened
from offing.core.tool import Effect, ToolOutput, ToolSpec
from offing.tools.tool import ToolArgs, ToolFailed, ToolScope
from offing.web.search import Found


class WebSearchArgs(ToolArgs, frozen=True):
    query: str = Field(min_length=1, max_length=500, description="What to look for, in a few telling words.")
    limit: int = Field(default=8, ge=1, le=20, description="Pages wanted.")


class WebSearch:
    spec = ToolSpec(
        name="web_search",
        description="Find pages on the web. Each result has an address to read with `fetch_page`; snippets are cut "
        "out by a search engine and cannot be cited.",
        args=WebSearchArgs,
        verb="search",
        effect=Effect.PURE,
        untrusted=True,
        outward=True,
    )

    async def __call__(self, args: WebSearchArgs, scope: ToolScope) -> ToolOutput:
        if scope.web is None:
            raise ToolFailed("This run may not use the web.")
        searched = await scope.web.search(args.query, args.limit)
        if not searched.found and searched.failed:
            raise ToolFailed(" ".join(f"{engine}: {problem}" for engine, problem in searched.failed.items()))
        return ToolOutput(
            content={"results": [_shown(one) for one in searched.found], "failed": dict(searched.failed)},
            title=shortened(args.query),
            detail=_told(len(searched.found)),
        )


def _shown(found: Found) -> dict[str, Any]:
    hit = found.hit
    told = {"url": hit.url, "title": hit.title, "snippet": hit.snippet, "found_by": list(found.engines)}
    return {**told, "published": hit.published} if hit.published else told


def _told(pages: int) -> str:
    if not pages:
        return "nothing found"
    return f"{pages} page{'s' if pages > 1 else ''}"
