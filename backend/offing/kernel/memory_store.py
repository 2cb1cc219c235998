"""One run in memory, as the kernel reads and writes it: for tests, and for runs that nobody keeps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from offing.core.errors import AlreadyRecorded
from offing.core.model import Answer
from offing.core.question import Answerer, Asking, Question
from offing.core.report import Report
from offing.core.run import Spent
from offing.core.step import CallKey, Step, StepDraft, StepKind, place_step
from offing.core.tool import Effect, Span
from offing.core.trajectory import Tail
from offing.core.usage import UsageDelta
from offing.kernel.store import (
    ChildResult,
    ChildRun,
    ChildRunsUnavailable,
    Entry,
    Hook,
    InputRequestRecord,
    InterruptRequest,
    ParentUsage,
    Record,
    ReportRecord,
    ResponseRecord,
    RoleCallRecord,
    ThreadReport,
)
from offing.sdk.children import ChildRequest


@dataclass(frozen=True, slots=True)
class Stored:
    """A step with what is stored beside it."""

    step: Step
    record: Record | None


class MemoryRunStore:
    """The `RunStore` of one run in memory. `text_of`: the stored text of a source span, empty where there is none."""

    def __init__(self, text_of: Callable[[Span], str], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._text_of, self._now = text_of, now
        self.stored: list[Stored] = []
        self.spent = Spent()
        self.intents: dict[CallKey, tuple[str, Mapping[str, Any]]] = {}
        self.requests: dict[int, Question] = {}
        """Input requests by number."""
        self.consumed: set[int] = set()
        """Numbers of input requests whose response a step has consumed."""

    @property
    def steps(self) -> list[Step]:
        return [one.step for one in self.stored]

    # Journal ----------------------------------------------------------------------------------------------------------

    async def write(self, entries: Sequence[Entry], usage: UsageDelta, hook: Hook | None = None) -> list[Step]:
        known = {step.key for step in self.steps if step.key is not None}
        if taken := next((e.draft.key for e in entries if e.draft.key in known), None):
            raise AlreadyRecorded(str(taken))
        new = [self._place(entry) for entry in entries]
        spent = self.spent
        turns, tokens = max(spent.turns, usage.turns), spent.tokens + usage.tokens
        self.spent = Spent(turns, tokens, spent.usd + usage.usd + usage.inherited, spent.seconds + usage.seconds)
        if hook is not None:
            await hook(None, new)
        return new

    async def find(self, entries: Sequence[Entry], after: int) -> list[Step] | None:
        found = {(s.key, s.kind): s for s in self.steps}
        wanted = [(e.draft.key, e.draft.kind) for e in entries]
        return [found[one] for one in wanted] if all(one in found for one in wanted) else None

    async def declare_intent(self, key: CallKey, tool: str, args: Mapping[str, Any], effect: Effect) -> bool:
        if key in self.intents:
            return False
        self.intents[key] = tool, args
        return True

    # Steps, reports and segments --------------------------------------------------------------------------------------

    async def steps_by_seq(self, seqs: Sequence[int]) -> Sequence[Step]:
        known = {step.seq: step for step in self.steps}
        return [known[seq] for seq in seqs if seq in known]

    async def last_steps(self, kind: StepKind, limit: int) -> Sequence[Step]:
        return [step for step in self.steps if step.kind is kind][-limit:] if limit > 0 else []

    async def user_messages(self) -> Sequence[Step]:
        return [step for step in self.steps if step.kind is StepKind.HUMAN]

    async def latest_report(self) -> Report | None:
        found = [one.record.report for one in self.stored if isinstance(one.record, ReportRecord)]
        return found[-1] if found else None

    async def texts(self, spans: Sequence[Span]) -> Sequence[str | None]:
        return [self._text_of(span) or None for span in spans]

    async def segment_tails(self) -> tuple[int, Mapping[str, Tail]]:
        following, tails = 0, dict[str, Tail]()
        for one in self.stored:
            record = one.record
            if not isinstance(record, RoleCallRecord) or record.position is None:
                continue
            following = max(following, record.position.segment + 1)
            if isinstance(record.call, Answer):
                tails[record.origin.role] = _tail(one.step.seq, record, record.call)
        return following, tails

    # Money and people -------------------------------------------------------------------------------------------------

    async def reserve(self, usd: Decimal) -> date | None:
        """A run in memory has no tenant, so that nothing limits a day."""
        return self._now().date()

    async def input_request(self, number: int, *, take_default: bool) -> Question | None:
        found = self.requests.get(number)
        if found is not None and found.answer is None and take_default and found.asking.default is not None:
            found = self.requests[number] = _answered(found, found.asking.default, Answerer.DEFAULT, self._now())
        return found

    async def interrupt_requests(self, ids: Sequence[str]) -> Mapping[str, InterruptRequest]:
        return {
            one.interrupt: InterruptRequest(one, one.number in self.consumed)
            for one in self.requests.values()
            if one.interrupt in ids and one.interrupt is not None
        }

    def respond(self, number: int, answer: Any) -> None:
        """Store a person's response to an input request that has none."""
        request = self.requests[number]
        self.requests[number] = _answered(request, answer, Answerer.PERSON, self._now())

    # The thread and child runs ----------------------------------------------------------------------------------------

    async def thread_reports(self, limit: int) -> Sequence[ThreadReport]:
        return ()

    async def thread_notes(self, limit: int) -> Sequence[tuple[str, str, UUID]]:
        return ()

    async def create_children(
        self, wanted: Sequence[tuple[CallKey, ChildRequest]], usage: ParentUsage
    ) -> Sequence[ChildRun] | ChildRunsUnavailable:
        return ChildRunsUnavailable("A run in memory has nobody else to send.")

    async def child_result(self, run: UUID) -> ChildResult:
        raise AssertionError("A run in memory has no child runs.")

    def place(self, draft: StepDraft) -> Step:
        """Append a step of somebody else, such as a person's message."""
        return self._place(Entry(draft))

    def _place(self, entry: Entry) -> Step:
        """Store an entry. As from Postgres, what is read back is JSON, and the order of its keys is lost."""
        step = place_step(entry.draft, len(self.stored) + 1, self._now(), 1)
        payload = orjson.loads(orjson.dumps(step.payload, default=str, option=orjson.OPT_SORT_KEYS))
        self.stored.append(Stored(replace(step, payload=payload), entry.record))
        match entry.record:
            case InputRequestRecord(asking, interrupt_id):
                self.requests[step.seq] = _request(step, asking, interrupt_id)
            case ResponseRecord(number):
                self.consumed.add(number)
            case _:
                pass
        return step


def _request(step: Step, asking: Asking, interrupt_id: str | None) -> Question:
    return Question(step.seq, asking, step.at, interrupt=interrupt_id)


def _answered(request: Question, answer: Any, answerer: Answerer, at: datetime) -> Question:
    return replace(request, answer=answer, answered_at=at, answerer=answerer)


def _tail(seq: int, record: RoleCallRecord, call: Answer) -> Tail:
    assert record.position is not None
    ids = call.trace.prompt_ids + call.trace.completion_ids if call.trace else None
    return Tail(record.position.segment, record.position.place, seq, call.messages, call.text, ids)
