"""The tool that finds passages in the library."""

from dataclasses import asdict

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, SourceSpan, ToolOutput, ToolSpec
from offing.core.tool_policy import ToolRule
from offing.tools.platform_tool import LIMIT_CONDITION, MAX_CALLS, PlatformTool, limit_length
from offing.tools.tool import FoundPassage, ToolArgs, ToolScope


class SearchLibraryArgs(ToolArgs, frozen=True):
    query: str = Field(
        min_length=1,
        max_length=500,
        description="Words that the passage sought would contain, or a question. Identifiers may be given whole.",
        examples=["connection pooling pipelining"],
    )
    limit: int = Field(default=8, ge=1, le=20, description="Passages wanted.")


class SearchLibrary:
    spec = ToolSpec(
        name="search_library",
        description="Find the passages of the user's documents that best match a query. Gives each passage's text, "
        "its source and heading, and its place in the source.",
        args=SearchLibraryArgs,
        label="search",
        side_effect=SideEffect.PURE,
        untrusted=True,
    )

    async def __call__(self, args: SearchLibraryArgs, scope: ToolScope) -> ToolOutput:
        result = await scope.library.search(args.query, args.limit)
        passages = result.passages
        content: dict[str, object] = {"query": args.query, "passages": [_render_passage(p) for p in passages]}
        if result.notices:
            content["notices"] = list(result.notices)
        return ToolOutput(
            content=content,
            title=shorten_line(args.query),
            detail=_summarize(passages),
            spans=tuple(SourceSpan(p.text_id, p.start, p.end) for p in passages),
        )


TOOL = PlatformTool(
    SearchLibrary(),
    ToolRule(tool="search_library", when=(limit_length("query", 500), LIMIT_CONDITION), max_calls=MAX_CALLS),
    position=10,
)


def _render_passage(passage: FoundPassage) -> dict[str, object]:
    fields: dict[str, object] = {
        **asdict(passage),
        "text_id": str(passage.text_id),
        "source": str(passage.source),
        "score": round(passage.score, 3),
    }
    return fields if passage.published else {name: value for name, value in fields.items() if name != "published"}


def _summarize(passages: tuple[FoundPassage, ...]) -> str:
    if not passages:
        return "nothing found"
    sources = len({p.source for p in passages})
    return f"{_count_noun(len(passages), 'passage')} from {_count_noun(sources, 'source')}"


def _count_noun(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
