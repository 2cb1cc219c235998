"""The tool that reads on in a source, a window at a time, however long the source is."""

from pydantic import Field

from offing.core.step import shortened
from offing.core.tool import Effect, Span, ToolOutput, ToolSpec
from offing.tools.tool import ToolArgs, ToolFailed, ToolScope, Window


class ReadArgs(ToolArgs, frozen=True):
    source: str = Field(min_length=1, max_length=1000, description="A source's id or name, as a search gives them.")
    start: int = Field(default=0, ge=0, le=2**31 - 1, description="First character wanted, from 0.")
    length: int = Field(default=3000, ge=1, le=6000, description="Characters wanted.")


class ReadSource:
    spec = ToolSpec(
        name="read_source",
        description="Read a stretch of one of the user's documents, for instance around a passage that a search found. "
        "`next` in the answer is where to read on; null at the end.",
        args=ReadArgs,
        verb="read",
        effect=Effect.PURE,
        untrusted=True,
    )

    async def __call__(self, args: ReadArgs, scope: ToolScope) -> ToolOutput:
        window = await scope.library.read(args.source, args.start, args.length)
        if window is None:
            raise ToolFailed(await _unknown(args.source, scope))
        return observed(window)


def observed(window: Window, place: str = "") -> ToolOutput:
    """A stretch as a model sees it and evidence is made of it. `place`: told before where it lies.

    Raises ToolFailed where it begins at the end or after it.
    """
    if window.start >= window.total:
        raise ToolFailed(f"{window.name} ends at character {window.total}; choose a smaller start.")
    end = window.start + len(window.text)
    return ToolOutput(
        content=_shown(window, end),
        title=shortened(window.title),
        detail=f"{place}characters {window.start:,} to {end:,} of {window.total:,}",
        spans=(Span(window.artefact, window.start, end),),
    )


def _shown(window: Window, end: int) -> dict[str, object]:
    return {
        "source": str(window.source),
        "artefact": str(window.artefact),
        "title": window.title,
        "name": window.name,
        "start": window.start,
        "end": end,
        "text": window.text,
        "total": window.total,
        "next": end if end < window.total else None,
    }


async def _unknown(wanted: str, scope: ToolScope) -> str:
    names = await scope.library.suggest(wanted, 5)
    known = f" There are for instance: {'; '.join(names)}." if names else " The library is empty for this run."
    return f"No source is called {shortened(wanted, 80)}.{known}"
