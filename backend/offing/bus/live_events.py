"""Live updates of runs: the events, their JSON, and the names of their channels and keys."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import orjson

from offing.bus.stream_messages import StreamMessage, parse_message
from offing.core.answer_draft import MAX_DRAFT_CHARS, AnswerDraft, DraftEnd, DraftPart
from offing.core.step import Step, StepKind
from offing.core.step_codes import StepSummary, StepSummaryCode, SummaryValue
from offing.core.step_summary import summarize_step

MALFORMED_MESSAGE_ERRORS = (ValueError, KeyError, TypeError)
"""Errors raised when a malformed message is parsed."""

PROBE_CHANNEL = "offing:live"
"""A channel without messages. Redis confirms its subscription when a connection is ready."""

_STREAM_CHANNEL = "offing:stream:"


@dataclass(frozen=True, slots=True)
class CurrentAction:
    """What a run does at this moment, as a short text, and since when."""

    text: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class RunActivity:
    """What a run is doing."""

    action: CurrentAction | None
    """The last published action. `None` means that there is none or that it is unknown."""
    drafts: list[DraftPart]
    """The answers that are being written, each as one part from the beginning."""


@dataclass(frozen=True, slots=True)
class StepsEvent:
    """Newly committed steps, without their payloads."""

    run_id: UUID
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ActionEvent:
    run_id: UUID
    action: CurrentAction | None
    """What the run is doing now. `None` means that no action is in progress."""


@dataclass(frozen=True, slots=True)
class DraftEvent:
    """More text of an answer while it is written, or the end of its draft."""

    run_id: UUID
    change: DraftPart | DraftEnd


@dataclass(frozen=True, slots=True)
class ResyncEvent:
    """Requires the subscriber to read Postgres, because events may have been missed."""


BusEvent = StepsEvent | ActionEvent | DraftEvent | StreamMessage | ResyncEvent


def run_channel_name(tenant_id: UUID, run_id: UUID) -> str:
    """Return the name of the channel of a run's events."""
    return f"offing:live:{tenant_id}:{run_id}"


def stream_channel_name(tenant_id: UUID, thread_id: UUID) -> str:
    """Return the name of the channel that tells of new events in the stream of a thread."""
    return f"{_STREAM_CHANNEL}{tenant_id}:{thread_id}"


def build_action_key(tenant_id: UUID, run_id: UUID) -> str:
    """Return the key of what a run is doing now."""
    return f"offing:doing:{tenant_id}:{run_id}"


def build_draft_index_key(tenant_id: UUID, run_id: UUID) -> str:
    """Return the key of the drafts of a run, by the id of their call."""
    return f"offing:drafts:{tenant_id}:{run_id}"


def build_draft_key(tenant_id: UUID, run_id: UUID, draft: AnswerDraft) -> str:
    """Return the key of the text of one attempt, so that a crashed claim cannot append to that of a later one."""
    return f"offing:draft:{tenant_id}:{run_id}:{draft.fence}:{draft.attempt}:{draft.call_id}"


def encode_draft(draft: AnswerDraft) -> list[Any]:
    """Return the values of a draft, without its text, for JSON."""
    return [draft.call_id, draft.fence, draft.attempt, draft.role, draft.label, draft.is_unverified]


def decode_draft(encoded: list[Any]) -> AnswerDraft:
    """Reverse `encode_draft`. Raises one of `MALFORMED_MESSAGE_ERRORS`."""
    call_id, fence, attempt, role, label, is_unverified = encoded
    if not all(isinstance(text, str) for text in (call_id, role, label)) or type(is_unverified) is not bool:
        raise TypeError("a field of a draft has the wrong type")
    if any(type(number) is not int or number < 0 for number in (fence, attempt)):
        raise TypeError("a number of a draft is not a count")
    return AnswerDraft(call_id, fence, attempt, role, label, is_unverified)


def _decode_draft_part(encoded: list[Any]) -> DraftPart:
    *draft, offset, text = encoded
    if type(offset) is not int or not 0 <= offset <= MAX_DRAFT_CHARS or not isinstance(text, str):
        raise TypeError("a part of a draft needs an offset and a text")
    return DraftPart(decode_draft(draft), offset, text[:MAX_DRAFT_CHARS])


def _decode_draft_end(encoded: list[Any]) -> DraftEnd:
    call_id, fence = encoded
    if not isinstance(call_id, str) or type(fence) is not int:
        raise TypeError("the end of a draft needs the id of its call and a fence")
    return DraftEnd(call_id, fence)


def encode_step(step: Step) -> list[Any]:
    """Return the values of a step, without its payload, for JSON."""
    summary = summarize_step(step)
    return [
        step.seq, step.kind, step.title, step.label, step.detail, step.ok, step.ms, step.tokens, step.turn, step.at,
        summary and [summary.code, summary.parameters],
    ]  # fmt: skip


def _decode_step(encoded: list[Any]) -> Step:
    seq, kind, title, label, detail, ok, ms, tokens, turn, at, summary = encoded
    numbers, texts = (seq, tokens, turn, 0 if ms is None else ms), (title, label, detail)
    if any(type(n) is not int for n in numbers) or not all(isinstance(t, str) for t in texts) or type(ok) is not bool:
        raise TypeError("a field of a step has the wrong type")
    return Step(
        seq=seq, kind=StepKind(kind), title=title, payload={}, label=label, detail=detail, ok=ok, ms=ms, tokens=tokens,
        turn=turn, at=datetime.fromisoformat(at), fence=0, summary=_decode_summary(summary),
    )  # fmt: skip


def _decode_summary(encoded: list[Any] | None) -> StepSummary | None:
    if encoded is None:
        return None
    code, parameters = encoded
    if not isinstance(parameters, dict) or not all(map(_is_summary_value, cast(dict[str, Any], parameters).values())):
        raise TypeError("a parameter of a summary has the wrong type")
    return StepSummary(StepSummaryCode(code), cast(dict[str, SummaryValue], parameters))


def _is_summary_value(value: object) -> bool:
    values = cast(list[object], value) if isinstance(value, list) else [value]
    return all(isinstance(one, (int, str)) for one in values)


def decode_action(encoded: dict[str, Any] | None) -> CurrentAction | None:
    """Return the action of a message or key. Raises one of `MALFORMED_MESSAGE_ERRORS`."""
    if encoded is None:
        return None
    text, since = encoded["text"], datetime.fromisoformat(encoded["since"])
    if not isinstance(text, str) or since.tzinfo is None:
        raise TypeError("a current action needs a text and a time with an offset")
    return CurrentAction(text, since)


def parse_event(channel: str, data: bytes) -> BusEvent:
    """Parse a message of a channel into an event. Raises one of `MALFORMED_MESSAGE_ERRORS`."""
    if channel.startswith(_STREAM_CHANNEL):
        return parse_message(data)
    run_id, event = UUID(channel.rpartition(":")[2]), orjson.loads(data)
    if "doing" in event:
        return ActionEvent(run_id, decode_action(event["doing"]))
    if "draft" in event:
        return DraftEvent(run_id, _decode_draft_part(event["draft"]))
    if "draft_end" in event:
        return DraftEvent(run_id, _decode_draft_end(event["draft_end"]))
    steps = tuple(_decode_step(s) for s in event["steps"])
    return StepsEvent(run_id, steps) if steps else ResyncEvent()
