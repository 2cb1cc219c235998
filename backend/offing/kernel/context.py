"""The implementation of `offing.sdk.RunContext` over a journal and its store."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from offing.core import input_request
from offing.core.claim_check import DraftClaimCheck
from offing.core.claim_passages import ClaimToJudge
from offing.core.draft_check import DraftCheck
from offing.core.model import EngineFailure
from offing.core.report import Evidence, Report, ReportDraft, ReportRevision
from offing.core.run import RunUsage, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import ToolResult, ToolSpec
from offing.core.trajectory import BoundaryReason
from offing.kernel.budget import RunBudget
from offing.kernel.call_key import CallKeys
from offing.kernel.child_runs import ChildRunClient
from offing.kernel.earlier_report import EarlierReportLoader
from offing.kernel.graph_tools import GraphToolJournal
from offing.kernel.human_input import HumanInput
from offing.kernel.journal import Journal
from offing.kernel.recorded_calls import NOTE_KINDS
from offing.kernel.report_writer import ReportWriter
from offing.kernel.role_calls import RoleCaller
from offing.kernel.run_store import JournalEntry, LiveSink
from offing.kernel.step_cache import StepCache
from offing.kernel.thread_search import ThreadSearch, draft_note
from offing.kernel.tool_caller import ToolCaller
from offing.kernel.tool_executor import ToolExecutor
from offing.kernel.tool_restriction import restrict_tools
from offing.kernel.trace_spans import CallSpans
from offing.sdk import Role, RoleReply, RunInfo, ToolCall
from offing.sdk.child_runs import ChildRequest, ChildResult, ChildRunsUnavailable
from offing.sdk.earlier_report import EarlierReport, FollowUpResult
from offing.sdk.human_input import HumanInputMixin
from offing.sdk.thread_memory import ThreadFinding, ThreadNote
from offing.sdk.type_vars import Input, Output
from offing.telemetry.redaction import redact

APPENDED_KINDS = frozenset(StepKind) - {StepKind.TOOL_RESULT, StepKind.REPORT}


@dataclass(frozen=True, slots=True)
class RunComponents:
    """The components of a run context. All belong to one epoch of a claim."""

    call_keys: CallKeys
    journal: Journal
    cache: StepCache
    budget: RunBudget
    roles: RoleCaller
    tools: ToolExecutor
    reports: ReportWriter
    human_input: HumanInput
    children: ChildRunClient
    thread: ThreadSearch
    earlier_report: EarlierReportLoader
    spans: CallSpans
    sink: LiveSink
    monotonic: Callable[[], float]
    flushes_appends: bool
    """Appends are written at once, because the checkpoint of the node is written at once, too."""


class KernelContext(HumanInputMixin):
    """The only implementation of `offing.sdk.RunContext`.

    Every method that appends checks the journal first.
    """

    def __init__(self, run: RunInfo, components: RunComponents) -> None:
        self._run, self._components = run, components
        c = components
        self._tool_caller = ToolCaller(c.call_keys, c.journal, c.tools, c.spans, c.sink, c.monotonic)

    @property
    def run(self) -> RunInfo:
        return self._run

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._components.tools.specs

    @property
    def tool_journal(self) -> GraphToolJournal:
        """See `offing.langchain.tool_calls.SupportsGraphTools`."""
        return GraphToolJournal(self._components.call_keys, self._components.journal, self._components.tools)

    @property
    def usage(self) -> RunUsage:
        return self._components.budget.run_usage

    def get_context_tokens(self, role: str) -> int | None:
        return self._components.roles.get_context_tokens(role)

    def get_answer_tokens(self, role: str) -> int | None:
        return self._components.roles.get_answer_tokens(role)

    def stop_reason(self) -> StopReason | None:
        return self._components.budget.stop_reason()

    async def begin_turn(self, number: int) -> None:
        self._components.budget.begin_turn(number)

    async def call_role(
        self, role: Role[Input, Output], inputs: Input, *, turn: int = 0, boundary: BoundaryReason | None = None
    ) -> RoleReply[Output] | EngineFailure:
        return await self._components.roles.call_role(role, inputs, turn=turn, boundary=boundary)

    async def call_tool(self, call: ToolCall, *, turn: int = 0) -> ToolResult:
        return await self._tool_caller.call_tool(call, turn)

    async def call_tools(self, calls: Sequence[ToolCall], *, turn: int = 0) -> tuple[ToolResult, ...]:
        return await self._tool_caller.call_tools(calls, turn)

    async def request_input(self, prompt: input_request.InputPrompt, turn: int) -> input_request.InputResponse:
        call = self._components.call_keys.next_call(prompt.kind, input_request.prompt_to_json(prompt))
        return await self._components.human_input.request_input(prompt, call, turn)

    async def restrict_tools(self, rules: Sequence[Mapping[str, Any]], *, turn: int = 0) -> str:
        parts = self._components
        call = parts.call_keys.next_call("narrow", [dict(rule) for rule in rules])
        return await restrict_tools(parts.journal, parts.tools, rules, call, turn)

    async def run_children(
        self, requests: Sequence[ChildRequest], *, turn: int = 0
    ) -> tuple[ChildResult, ...] | ChildRunsUnavailable:
        return await self._components.children.get_results(requests, turn)

    async def search_thread(self, query: str, limit: int = 8, *, turn: int = 0) -> tuple[ThreadFinding, ...]:
        return await self._components.thread.search_reports(query, limit, turn)

    async def load_earlier_report(self, *, with_evidence: bool = True) -> EarlierReport | None:
        return await self._components.earlier_report.load(with_evidence=with_evidence)

    async def save_note(self, key: str, text: str) -> None:
        await self.append_steps(draft_note(key, text))

    async def load_notes(self) -> tuple[ThreadNote, ...]:
        return await self._components.thread.load_notes()

    async def append_steps(self, *drafts: StepDraft) -> None:
        parts = self._components
        for draft in drafts:
            call = parts.call_keys.next_call(draft.kind, draft.payload)
            if parts.journal.take_recorded(call, APPENDED_KINDS) is None:
                parts.journal.check_new(call)
                parts.journal.buffer(replace(draft, call_key=call.key))
        if parts.flushes_appends:
            await parts.journal.flush()

    async def last_steps(self, kind: StepKind, limit: int) -> tuple[Step, ...]:
        await self._components.journal.flush()
        return await self._components.cache.last_steps(kind, limit)

    async def get_steps(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        return await self._components.cache.get_steps(seqs)

    async def get_user_messages(self, after_seq: int) -> tuple[Step, ...]:
        return await self._components.cache.get_user_messages(after_seq)

    async def get_evidence(self, limit: int) -> tuple[Evidence, ...]:
        return (await self._components.cache.get_evidence()).latest(limit)

    async def check_report(self, draft: ReportDraft) -> DraftCheck:
        return await self._components.reports.check_draft(draft)

    def can_revise(self, role: Role[Any, Any]) -> bool:
        return self._components.roles.can_revise(role.name)

    def has_engine(self, role: Role[Any, Any]) -> bool:
        return self._components.roles.has_engine(role.name)

    async def list_claims(self, draft: ReportDraft) -> tuple[ClaimToJudge, ...]:
        return await self._components.reports.list_claims(draft)

    async def submit_report(
        self,
        draft: ReportDraft,
        stop_reason: StopReason,
        *,
        revision: ReportRevision | None = None,
        follow_up: FollowUpResult | None = None,
        check: DraftClaimCheck | None = None,
    ) -> Report:
        call = self._components.call_keys.next_call("report")
        return await self._components.reports.submit_report(draft, stop_reason, call, revision, follow_up, check)

    async def run_once(self, name: str, arguments: Any, function: Callable[[], Awaitable[Any]]) -> Any:
        """See `offing.sdk.current_run.Journal`. The result is kept as a note."""
        journal, monotonic, call = (
            self._components.journal,
            self._components.monotonic,
            self._components.call_keys.next_call(name, arguments),
        )
        if step := journal.take_recorded(call, NOTE_KINDS):
            return step.payload["result"]
        journal.check_new(call)
        began = monotonic()
        result = orjson.loads(orjson.dumps(await function()))
        ms = int((monotonic() - began) * 1000)
        note = StepDraft(
            StepKind.NOTE, name, {"function": name, "result": result}, label="calls", ms=ms, call_key=call.key
        )
        await journal.append(JournalEntry(note))
        return result

    async def show_action(self, text: str) -> None:
        """Show subscribers what the run is doing now. The text is not stored."""
        await self._components.sink.publish_action(redact(text))
