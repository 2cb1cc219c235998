"""The run as a graph's nodes see it: `offing.sdk.RunContext` over a journal and its store."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from offing.core import question
from offing.core.model import EngineFailure
from offing.core.report import Evidence, Report, ReportDraft
from offing.core.run import Spent, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import ToolResult, ToolSpec, ToolStatus
from offing.core.trajectory import Fracture
from offing.kernel import drafts
from offing.kernel.budget import RunBudget
from offing.kernel.call_key import CallKeys
from offing.kernel.child_runs import ChildRunClient
from offing.kernel.graph_tools import GraphTools
from offing.kernel.human_input import HumanInput
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import NOTES, OBSERVATIONS
from offing.kernel.reports import ReportWriter
from offing.kernel.restriction import restrict
from offing.kernel.role_calls import RoleCaller
from offing.kernel.step_cache import StepCache
from offing.kernel.store import Entry, LiveSink
from offing.kernel.thread_search import ThreadSearch, note_draft
from offing.kernel.tool_executor import ToolExecutor
from offing.kernel.trace_spans import CallSpans
from offing.sdk import Role, RoleReply, RunView, ToolCall, result_of
from offing.sdk.asking import AsksPeople
from offing.sdk.children import ChildRequest, ChildResult, NoChildren
from offing.sdk.conversation import Note, Recalled
from offing.sdk.values import Input, Output
from offing.telemetry.attributes import DECISION
from offing.telemetry.redaction import redact, without_secrets
from offing.telemetry.tracing import mark_failed

RECORDS = frozenset(StepKind) - {StepKind.TOOL, StepKind.REPORT}


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a context puts together, all of one epoch of a claim."""

    keys: CallKeys
    journal: Journal
    cache: StepCache
    budget: RunBudget
    roles: RoleCaller
    tools: ToolExecutor
    reports: ReportWriter
    people: HumanInput
    children: ChildRunClient
    thread: ThreadSearch
    spans: CallSpans
    sink: LiveSink
    monotonic: Callable[[], float]
    flushes_records: bool
    """The node's checkpoint is written at once, and what it recorded must be in."""


class KernelContext(AsksPeople):
    """The only implementation of `offing.sdk.RunContext`. Every method that appends asks the journal first."""

    def __init__(self, run: RunView, parts: RunParts) -> None:
        self._run, self._parts = run, parts

    @property
    def run(self) -> RunView:
        return self._run

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._parts.tools.specs

    @property
    def graph_tools(self) -> GraphTools:
        """See `offing.langchain.tool_calls.KeepsTools`."""
        return GraphTools(self._parts.keys, self._parts.journal, self._parts.tools)

    @property
    def spent(self) -> Spent:
        return self._parts.budget.spent

    def stop(self) -> StopReason | None:
        return self._parts.budget.stop_reason()

    async def begin_turn(self, number: int) -> None:
        self._parts.budget.begin_turn(number)

    async def call(
        self, role: Role[Input, Output], given: Input, *, turn: int = 0, fracture: Fracture | None = None
    ) -> RoleReply[Output] | EngineFailure:
        return await self._parts.roles.call(role, given, turn=turn, fracture=fracture)

    async def use(self, call: ToolCall, *, turn: int = 0) -> ToolResult:
        parts, call = self._parts, ToolCall(*without_secrets([call.tool, call.args]))
        under = parts.keys.next(call.tool, call.args)
        if step := parts.journal.take(under, OBSERVATIONS):
            return result_of(step)
        parts.journal.check_new(under)
        began = parts.monotonic()
        await self.show(f"{call.tool}: {next((str(v) for v in call.args.values()), '')}")
        with parts.spans.of_tool(under, call.tool, turn) as opened:
            outcome = await parts.tools.use(call, under)
            opened.set_attribute(DECISION, outcome.rule)
            if outcome.status is not ToolStatus.OK:
                mark_failed(opened, outcome.status)
        draft = drafts.used(call, outcome, under.key, turn, int((parts.monotonic() - began) * 1000))
        draft = parts.journal.note_anew(under, draft)
        (step,) = await parts.journal.append(Entry(draft))
        return result_of(step)

    async def put(self, asking: question.Asking, turn: int) -> question.Answer:
        call = self._parts.keys.next(asking.kind, question.asking_json(asking))
        return await self._parts.people.put(asking, call, turn)

    async def narrow(self, rules: Sequence[Mapping[str, Any]], *, turn: int = 0) -> str:
        parts = self._parts
        call = parts.keys.next("narrow", [dict(rule) for rule in rules])
        return await restrict(parts.journal, parts.tools, rules, call, turn)

    async def children(
        self, requests: Sequence[ChildRequest], *, turn: int = 0
    ) -> tuple[ChildResult, ...] | NoChildren:
        return await self._parts.children.results(requests, turn)

    async def conversation(self, words: str, most: int = 8, *, turn: int = 0) -> tuple[Recalled, ...]:
        return await self._parts.thread.recalled(words, most, turn)

    async def remember(self, key: str, text: str) -> None:
        await self.record(note_draft(key, text))

    async def remembered(self) -> tuple[Note, ...]:
        return await self._parts.thread.notes()

    async def record(self, *drafts: StepDraft) -> None:
        parts = self._parts
        for draft in drafts:
            call = parts.keys.next(draft.kind, draft.payload)
            if parts.journal.take(call, RECORDS) is None:
                parts.journal.check_new(call)
                parts.journal.buffer(replace(draft, key=call.key))
        if parts.flushes_records:
            await parts.journal.flush()

    async def recall(self, kind: StepKind, last: int) -> tuple[Step, ...]:
        await self._parts.journal.flush()
        return await self._parts.cache.last_of(kind, last)

    async def fetch(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        return await self._parts.cache.by_seq(seqs)

    async def messages(self, after: int) -> tuple[Step, ...]:
        return await self._parts.cache.messages(after)

    async def evidence(self, last: int) -> tuple[Evidence, ...]:
        return (await self._parts.cache.evidence()).latest(last)

    async def deliver(self, draft: ReportDraft, reason: StopReason) -> Report:
        return await self._parts.reports.deliver(draft, reason, self._parts.keys.next("report"))

    async def once(self, name: str, given: Any, work: Callable[[], Awaitable[Any]]) -> Any:
        """See `offing.sdk.running.Journal`. The result is kept as a note."""
        journal, monotonic, call = self._parts.journal, self._parts.monotonic, self._parts.keys.next(name, given)
        if step := journal.take(call, NOTES):
            return step.payload["result"]
        journal.check_new(call)
        began = monotonic()
        result = orjson.loads(orjson.dumps(await work()))
        ms = int((monotonic() - began) * 1000)
        note = StepDraft(StepKind.NOTE, name, {"function": name, "result": result}, label="calls", ms=ms, key=call.key)
        await journal.append(Entry(note))
        return result

    async def show(self, text: str) -> None:
        """Show subscribers what the run does now; not on record."""
        await self._parts.sink.action(redact(text))
