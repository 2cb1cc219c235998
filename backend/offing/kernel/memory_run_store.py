"""The run store of one run in memory, for tests and for runs that are not stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from offing.core.errors import AlreadyRecordedError
from offing.core.follow_up import FollowUp
from offing.core.input_request import InputPrompt, InputRequest, Responder
from offing.core.model import EngineResponse
from offing.core.report import Report
from offing.core.run import RunUsage
from offing.core.step import CallKey, Step, StepDraft, StepKind, step_from_draft
from offing.core.tool import SideEffect, SourceSpan
from offing.core.trajectory import SegmentTail
from offing.core.usage import UsageDelta
from offing.kernel.run_store import (
    ChildRun,
    EarlierRun,
    InputRequestAttachment,
    InputResponseAttachment,
    InterruptRequest,
    JournalEntry,
    ParentUsage,
    ReportAttachment,
    RoleCallAttachment,
    StepAttachment,
    StoredChildResult,
    ThreadReport,
    TransactionHook,
)
from offing.sdk.child_runs import ChildRequest, ChildRunsUnavailable


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A step with its attachment."""

    step: Step
    attachment: StepAttachment | None


class MemoryRunStore:
    """The `RunStore` of one run in memory.

    `text_lookup` returns the stored text of a source span. Empty means that there is no text.
    """

    def __init__(
        self, text_lookup: Callable[[SourceSpan], str], now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._text_of, self._now = text_lookup, now
        self.stored_entries: list[StoredEntry] = []
        self.run_usage = RunUsage()
        self.intents: dict[CallKey, tuple[str, Mapping[str, Any]]] = {}
        self.requests: dict[int, InputRequest] = {}
        """Input requests by number."""
        self.consumed: set[int] = set()
        """Numbers of input requests whose response a step has consumed."""

    @property
    def steps(self) -> list[Step]:
        return [one.step for one in self.stored_entries]

    # Journal ----------------------------------------------------------------------------------------------------------

    async def append_entries(
        self, entries: Sequence[JournalEntry], usage: UsageDelta, hook: TransactionHook | None = None
    ) -> list[Step]:
        existing_keys = {step.call_key for step in self.steps if step.call_key is not None}
        if duplicate_key := next((e.draft.call_key for e in entries if e.draft.call_key in existing_keys), None):
            raise AlreadyRecordedError(str(duplicate_key))
        new = [self._store_entry(entry) for entry in entries]
        spent = self.run_usage
        turns, tokens = max(spent.turns, usage.turns), spent.tokens + usage.tokens
        self.run_usage = RunUsage(
            turns, tokens, spent.cost_usd + usage.cost_usd + usage.child_cost_usd, spent.seconds + usage.seconds
        )

        async def read_steps() -> Sequence[Step]:
            return new

        if hook is not None:
            await hook(None, read_steps)
        return new

    async def find_entries(self, entries: Sequence[JournalEntry], after_seq: int) -> list[Step] | None:
        stored = {(s.call_key, s.kind): s for s in self.steps}
        keys = [(e.draft.call_key, e.draft.kind) for e in entries]
        return [stored[one] for one in keys] if all(one in stored for one in keys) else None

    async def declare_intent(self, key: CallKey, tool: str, args: Mapping[str, Any], side_effect: SideEffect) -> bool:
        if key in self.intents:
            return False
        self.intents[key] = tool, args
        return True

    # Steps, reports and segments --------------------------------------------------------------------------------------

    async def get_steps(self, seqs: Sequence[int]) -> Sequence[Step]:
        by_seq = {step.seq: step for step in self.steps}
        return [by_seq[seq] for seq in seqs if seq in by_seq]

    async def last_steps(self, kind: StepKind, limit: int) -> Sequence[Step]:
        return [step for step in self.steps if step.kind is kind][-limit:] if limit > 0 else []

    async def list_user_messages(self) -> Sequence[Step]:
        return [step for step in self.steps if step.kind is StepKind.USER_MESSAGE]

    async def find_latest_report(self) -> Report | None:
        reports = [one.attachment.report for one in self.stored_entries if isinstance(one.attachment, ReportAttachment)]
        return reports[-1] if reports else None

    async def read_texts(self, spans: Sequence[SourceSpan]) -> Sequence[str | None]:
        return [self._text_of(span) or None for span in spans]

    async def get_segment_tails(self) -> tuple[int, Mapping[str, SegmentTail]]:
        following, tails = 0, dict[str, SegmentTail]()
        for one in self.stored_entries:
            record = one.attachment
            if not isinstance(record, RoleCallAttachment) or record.position is None:
                continue
            following = max(following, record.position.segment_idx + 1)
            if isinstance(record.completion, EngineResponse):
                tails[record.origin.role] = _build_tail(one.step.seq, record, record.completion)
        return following, tails

    # Money and people -------------------------------------------------------------------------------------------------

    async def reserve(self, usd: Decimal) -> date | None:
        """Return the current day. A run in memory has no tenant, so no daily spending limit applies."""
        return self._now().date()

    async def find_input_request(self, number: int, *, take_default: bool) -> InputRequest | None:
        request = self.requests.get(number)
        if (
            request is not None
            and request.response is None
            and take_default
            and request.input_prompt.default is not None
        ):
            request = self.requests[number] = _respond_to(
                request, request.input_prompt.default, Responder.DEFAULT, self._now()
            )
        return request

    async def list_interrupt_requests(self, ids: Sequence[str]) -> Mapping[str, InterruptRequest]:
        return {
            one.interrupt_id: InterruptRequest(one, one.seq in self.consumed)
            for one in self.requests.values()
            if one.interrupt_id in ids and one.interrupt_id is not None
        }

    def store_response(self, number: int, response: Any) -> None:
        """Store a person's response to an input request that has none."""
        request = self.requests[number]
        self.requests[number] = _respond_to(request, response, Responder.PERSON, self._now())

    # The thread and child runs ----------------------------------------------------------------------------------------

    async def find_earlier_run(self, follow_up: FollowUp) -> EarlierRun | None:
        return None

    async def list_thread_reports(self, limit: int) -> Sequence[ThreadReport]:
        return ()

    async def list_thread_notes(self, limit: int) -> Sequence[tuple[str, str, UUID]]:
        return ()

    async def create_children(
        self, requests: Sequence[tuple[CallKey, ChildRequest]], usage: ParentUsage
    ) -> Sequence[ChildRun] | ChildRunsUnavailable:
        return ChildRunsUnavailable("A run in memory cannot start child runs.")

    async def get_child_result(self, run_id: UUID) -> StoredChildResult:
        raise AssertionError("A run in memory has no child runs.")

    def append_external(self, draft: StepDraft) -> Step:
        """Append a step from outside the run, such as a user message."""
        return self._store_entry(JournalEntry(draft))

    def _store_entry(self, entry: JournalEntry) -> Step:
        """Store an entry. Like Postgres, it returns JSON and loses the order of keys."""
        step = step_from_draft(entry.draft, len(self.stored_entries) + 1, self._now(), 1)
        payload = orjson.loads(orjson.dumps(step.payload, default=str, option=orjson.OPT_SORT_KEYS))
        self.stored_entries.append(StoredEntry(replace(step, payload=payload), entry.attachment))
        match entry.attachment:
            case InputRequestAttachment(asking, interrupt_id):
                self.requests[step.seq] = _build_input_request(step, asking, interrupt_id)
            case InputResponseAttachment(number):
                self.consumed.add(number)
            case _:
                pass
        return step


def _build_input_request(step: Step, prompt: InputPrompt, interrupt_id: str | None) -> InputRequest:
    return InputRequest(step.seq, prompt, step.at, interrupt_id=interrupt_id)


def _respond_to(request: InputRequest, response: Any, responder: Responder, at: datetime) -> InputRequest:
    return replace(request, response=response, responded_at=at, responder=responder)


def _build_tail(seq: int, attachment: RoleCallAttachment, response: EngineResponse) -> SegmentTail:
    assert attachment.position is not None
    ids = response.trace.prompt_ids + response.trace.completion_ids if response.trace else None
    return SegmentTail(
        attachment.position.segment_idx, attachment.position.position, seq, response.messages, response.text, ids
    )
