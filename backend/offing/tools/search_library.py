"""The tool that finds passages in the library."""

from dataclasses import asdict

from pydantic import Field

from offing.core.step import shortened
from offing.core.tool import Effect, Span, ToolOutput, ToolSpec
from offing.tools.tool import FoundPassage, ToolArgs, ToolScope


class SearchArgs(ToolArgs, frozen=True):
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
        args=SearchArgs,
        verb="search",
        effect=Effect.PURE,
        untrusted=True,
    )

    async def __call__(self, args: SearchArgs, scope: ToolScope) -> ToolOutput:
        found = await scope.library.search(args.query, args.limit)
        return ToolOutput(
            content={"query": args.query, "passages": [_shown(p) for p in found]},
            title=shortened(args.query),
            detail=_counted(found),
            spans=tuple(Span(p.artefact, p.start, p.end) for p in found),
        )


def _shown(passage: FoundPassage) -> dict[str, object]:
    return {
        **asdict(passage),
        "artefact": str(passage.artefact),
        "source": str(passage.source),
        "score": round(passage.score, 3),
    }


def _counted(found: tuple[FoundPassage, ...]) -> str:
    if not found:
        return "nothing found"
    sources = len({p.source for p in found})
    return f"{_number(len(found), 'passage')} from {_number(sources, 'source')}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
