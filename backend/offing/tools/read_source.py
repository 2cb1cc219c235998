"""The tool that reads one window of a source at a time, however long the source is."""

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, SourceSpan, ToolOutput, ToolSpec
from offing.core.tool_policy import ToolRule
from offing.tools.platform_tool import MAX_CALLS, WINDOW_CONDITIONS, PlatformTool, limit_length
from offing.tools.tool import TextWindow, ToolArgs, ToolFailedError, ToolScope


class ReadSourceArgs(ToolArgs, frozen=True):
    source: str = Field(min_length=1, max_length=1000, description="A source's id or name, as a search gives them.")
    start: int = Field(default=0, ge=0, le=2**31 - 1, description="First character wanted, from 0.")
    length: int = Field(default=3000, ge=1, le=6000, description="Characters wanted.")


class ReadSource:
    spec = ToolSpec(
        name="read_source",
        description="Read a stretch of one of the user's documents, for instance around a passage that a search found. "
        "`next` in the answer is where to read on; null at the end.",
        args=ReadSourceArgs,
        label="read",
        side_effect=SideEffect.PURE,
        untrusted=True,
    )

    async def __call__(self, args: ReadSourceArgs, scope: ToolScope) -> ToolOutput:
        window = await scope.library.read(args.source, args.start, args.length)
        if window is None:
            raise ToolFailedError(await _unknown_source_error(args.source, scope))
        return build_window_output(window)


TOOL = PlatformTool(
    ReadSource(),
    ToolRule(tool="read_source", when=(limit_length("source", 1_000), *WINDOW_CONDITIONS), max_calls=MAX_CALLS),
    position=20,
)


def build_window_output(window: TextWindow, location_note: str = "") -> ToolOutput:
    """Return a window as the model sees it, with the span that becomes evidence.

    `location_note` says before the text where it is. Raises ToolFailedError if the window starts at or after the end.
    """
    if window.start >= window.total_chars:
        raise ToolFailedError(f"{window.name} ends at character {window.total_chars}; choose a smaller start.")
    end = window.start + len(window.text)
    return ToolOutput(
        content=_render_window(window, end),
        title=shorten_line(window.title),
        detail=f"{location_note}characters {window.start:,} to {end:,} of {window.total_chars:,}",
        spans=(SourceSpan(window.text_id, window.start, end),),
    )


def _render_window(window: TextWindow, end: int) -> dict[str, object]:
    return {
        "source": str(window.source_id),
        "text_id": str(window.text_id),
        "title": window.title,
        "name": window.name,
        "start": window.start,
        "end": end,
        "text": window.text,
        "total": window.total_chars,
        "next": end if end < window.total_chars else None,
    }


async def _unknown_source_error(reference: str, scope: ToolScope) -> str:
    names = await scope.library.suggest(reference, 5)
    examples = f" There are for instance: {'; '.join(names)}." if names else " The library is empty for this run."
    return f"No source is called {shorten_line(reference, 80)}.{examples}"
