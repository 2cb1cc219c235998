"""The tool that reads one window of a source at a time, however long the source is."""

import re
from dataclasses import replace

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, SourceSpan, ToolOutput, ToolSpec
from offing.core.tool_policy import ToolRule
from offing.core.value_repair import find_same_name
from offing.tools.platform_tool import MAX_CALLS, WINDOW_CONDITIONS, PlatformTool, limit_length
from offing.tools.tool import TextWindow, ToolArgs, ToolFailedError, ToolScope

_EVIDENCE_ID = re.compile(r"\W*([Ee]\d{1,6})\W*")


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
        source = await scope.resolve_source(args.source)
        window = await scope.library.read(source, args.start, args.length)
        if window is not None:
            return build_window_output(window)
        output = await _read_evidence(args, scope) or await _read_same_name(args, scope)
        if output is None:
            raise ToolFailedError(await _unknown_source_error(args.source, scope))
        return output


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
        **({"published": window.published} if window.published else {}),
    }


async def _read_evidence(args: ReadSourceArgs, scope: ToolScope) -> ToolOutput | None:
    """Read the source of a passage that is named by its id. Without a start it is read from that passage on."""
    if scope.find_evidence is None or (match := _EVIDENCE_ID.fullmatch(args.source)) is None:
        return None
    passage = await scope.find_evidence(match.group(1).upper())
    if passage is None:
        return None
    start = args.start if "start" in args.model_fields_set else passage.span.start
    window = await scope.library.read(str(passage.source_id), start, args.length)
    note = f"{passage.id} is a passage of {passage.name or passage.title}; that source was read from character {start}."
    return window and _add_notice(build_window_output(window), note)


async def _read_same_name(args: ReadSourceArgs, scope: ToolScope) -> ToolOutput | None:
    """Read the only source whose name differs in case and punctuation alone."""
    if scope.find_evidence is None:
        return None
    name = find_same_name(args.source, await scope.library.suggest(args.source, 5))
    window = await scope.library.read(name, args.start, args.length) if name else None
    return window and _add_notice(build_window_output(window), f"{args.source!r} was taken as {name}.")


def _add_notice(output: ToolOutput, notice: str) -> ToolOutput:
    return replace(output, content={**output.content, "notices": [notice]})


async def _unknown_source_error(reference: str, scope: ToolScope) -> str:
    names = await scope.library.suggest(reference, 5)
    examples = f" There are for instance: {'; '.join(names)}." if names else " The library is empty for this run."
    return f"No source is called {shorten_line(reference, 80)}.{examples}"
