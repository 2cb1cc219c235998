"""Which sources a run has met, and what came of each: cited, read, found, rejected, blocked or failed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, cast
from uuid import UUID

from offing.core.step import Step
from offing.core.tool import SourceSpan, ToolStatus

MAX_SPANS_PER_SOURCE = 12
MAX_STEPS_PER_SOURCE = 50

READ_LABEL = "read"
"""Label of steps that read a source. Others found it."""


class SourceState(StrEnum):
    CITED = "cited"
    """The latest report cites it."""
    READ = "read"
    """The run read on in it."""
    FOUND = "found"
    """A search returned passages or a link of it, and the run did not read on in it."""
    REJECTED = "rejected"
    """A judge discarded every passage of it."""
    BLOCKED = "blocked"
    """The tool policy denied the call that would have read it."""
    FAILED = "failed"
    """It could not be read."""


@dataclass(frozen=True, slots=True)
class RunSource:
    """A source of a run."""

    key: str
    """Id in the library, or the address of a page that was not read."""
    source_id: UUID | None
    """`None` means that it is not in the library."""
    title: str
    name: str
    """Path of the document, or address of the page. Empty means unknown."""
    state: SourceState
    reason: str = ""
    """Why it was rejected, blocked or not read. Empty for other states."""
    step_seqs: tuple[int, ...] = ()
    """Steps that met it, oldest first, at most `MAX_STEPS_PER_SOURCE`."""
    step_count: int = 0
    spans: tuple[SourceSpan, ...] = ()
    """Passages of it, at most `MAX_SPANS_PER_SOURCE`."""
    span_count: int = 0


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage or a link that a tool result returned."""

    seq: int
    is_read: bool
    """Whether the tool read in a known source, in place of a search."""
    source_id: UUID | None
    title: str
    name: str
    span: SourceSpan | None


@dataclass(frozen=True, slots=True)
class FailedRead:
    """A call that did not return a source that it names."""

    seq: int
    reference: str
    status: ToolStatus
    message: str


@dataclass
class _Draft:
    passage: Passage
    is_read: bool = False
    seqs: dict[int, None] = field(default_factory=dict[int, None])
    spans: dict[SourceSpan, None] = field(default_factory=dict[SourceSpan, None])


def list_sources(
    passages: Iterable[Passage],
    failures: Sequence[FailedRead],
    discarded: Mapping[SourceSpan, str],
    cited: Iterable[UUID],
) -> list[RunSource]:
    """Return the sources in the order in which the run first met them.

    `discarded` has the passages that a judge discarded, with its reasons.
    """
    drafts: dict[str, _Draft] = {}
    for passage in passages:
        key = str(passage.source_id or passage.name)
        draft = drafts.setdefault(key, _Draft(passage))
        draft.is_read = draft.is_read or passage.is_read
        draft.seqs[passage.seq] = None
        if passage.span is not None:
            draft.spans[passage.span] = None
    cited_ids = set(cited)
    sources = {key: _build_source(key, draft, discarded, cited_ids) for key, draft in drafts.items()}
    for failure in failures:
        _add_failure(sources, failure)
    return list(sources.values())


def _build_source(key: str, draft: _Draft, discarded: Mapping[SourceSpan, str], cited: set[UUID]) -> RunSource:
    passage, reason = draft.passage, ""
    state = SourceState.READ if draft.is_read else SourceState.FOUND
    if passage.source_id in cited:
        state = SourceState.CITED
    elif draft.spans and all(span in discarded for span in draft.spans):
        state, reason = SourceState.REJECTED, discarded[next(reversed(draft.spans))]
    return RunSource(
        key=key,
        source_id=passage.source_id,
        title=passage.title,
        name=passage.name,
        state=state,
        reason=reason,
        step_seqs=tuple(draft.seqs)[:MAX_STEPS_PER_SOURCE],
        step_count=len(draft.seqs),
        spans=tuple(draft.spans)[:MAX_SPANS_PER_SOURCE],
        span_count=len(draft.spans),
    )


def _add_failure(sources: dict[str, RunSource], failure: FailedRead) -> None:
    """Add a failed call. A source that another call has read keeps its state."""
    state = SourceState.BLOCKED if failure.status is ToolStatus.DENIED else SourceState.FAILED
    known = next(
        (one for one in sources.values() if failure.reference in (one.key, one.name)),
        RunSource(failure.reference, None, "", failure.reference, state),
    )
    seqs = (*known.step_seqs, failure.seq)[:MAX_STEPS_PER_SOURCE]
    known = replace(known, step_seqs=seqs, step_count=known.step_count + 1)
    if known.state in (SourceState.FOUND, SourceState.BLOCKED, SourceState.FAILED):
        known = replace(known, state=state, reason=failure.message)
    sources[known.key] = known


def find_discarded(judgments: Iterable[Step], spans_by_id: Mapping[str, SourceSpan]) -> dict[SourceSpan, str]:
    """Return the passages that a judge discarded, with its reasons. `spans_by_id` has the evidence by its ids."""
    discarded: dict[SourceSpan, str] = {}
    for step in judgments:
        output: object = step.payload.get("output")
        judgment: Mapping[str, Any] = cast("Mapping[str, Any]", output) if isinstance(output, Mapping) else {}
        ids: object = judgment.get("discard")
        for id in cast("list[object]", ids) if isinstance(ids, list) else []:
            if (span := spans_by_id.get(str(id))) is not None:
                discarded[span] = str(judgment.get("why", ""))
    return discarded
