"""A run context in memory, for trying graphs without a database, and a small library to search.

It keeps the promises of `offing.sdk.RunContext` that a graph can notice: steps are appended in order, evidence is what
tools returned, reports go through the real citation check. Engines are the model-free ones unless a test gives others,
or names rules; a role with a prompt format is asked in it, and its answer is
written and parsed in that format.
"""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from pydantic import BaseModel, Field, ValidationError

from offing.core.calculation import find_calculation
from offing.core.citation import ClaimContext, verify_citations
from offing.core.claim_check import DraftClaimCheck, apply_claim_check
from offing.core.claim_passages import ClaimToJudge, list_claims
from offing.core.draft_check import DraftCheck, check_draft
from offing.core.model import EngineFailure, FailureKind, InvalidOutput
from offing.core.report import Evidence, Report, ReportDraft, ReportRevision
from offing.core.report_style import ReportStyle
from offing.core.run import Budget, RunUsage, StopReason
from offing.core.step import Step, StepDraft, StepKind
from offing.core.tool import SourceSpan, ToolOutput, ToolResult, ToolSpec, ToolStatus
from offing.kernel.execution import compile_graph
from offing.kernel.report_writer import build_outcome
from offing.library.passages import HEADING_SEPARATOR, find_first_heading, split_passages, strip_markup
from offing.library.terms import extract_terms
from offing.sdk import (
    CHILD_RUN,
    BoundaryReason,
    ChildRequest,
    ChildResult,
    ChildRunsUnavailable,
    CompletionSpan,
    EarlierReport,
    FollowUpResult,
    Message,
    PlanProposal,
    PlanReview,
    ReviewDecision,
    Role,
    RoleReply,
    RuleContext,
    RunInfo,
    ThreadFinding,
    ToolCall,
)
from offing.tools.environment import extend_role
from offing.tools.tool import ToolFailedError

NAMES = UUID("00000000-0000-7000-8000-000000000000")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
Engine = Callable[[Any], BaseModel | EngineFailure]
Handler = Callable[[Any], Awaitable[ToolOutput]]
Team = Callable[[ChildRequest], tuple[ChildResult, Sequence[SourceSpan]]]
"""Does a child's work: the result, and the passages that it brings."""


@dataclass(frozen=True, slots=True)
class RoleCall:
    """One role call that was answered: its prompt as it was asked, and the text in its prompt format."""

    seq: int
    role: str
    turn: int
    messages: tuple[Message, ...]
    text: str
    """Empty means that the role has no prompt format."""
    spans: tuple[CompletionSpan, ...]
    boundary_reason: BoundaryReason | None


@dataclass(frozen=True, slots=True)
class Document:
    id: UUID
    name: str
    title: str
    text: str


class Library:
    """Documents cut into passages as the platform cuts them, ranked by BM25."""

    def __init__(self, documents: Sequence[tuple[str, str]]) -> None:
        self.documents = {
            uuid5(NAMES, name): Document(uuid5(NAMES, name), name, strip_markup(find_first_heading(text)) or name, text)
            for name, text in documents
        }
        self.passages: list[tuple[Document, SourceSpan, str, Counter[str]]] = []
        for d in self.documents.values():
            known_as = set(extract_terms(f"{d.title}\n{d.name}"))
            for p in split_passages(d.text):
                heading = HEADING_SEPARATOR.join(p.headings)
                counts = Counter([*extract_terms(d.text[p.start : p.end] + "\n" + heading), *known_as])
                self.passages.append((d, SourceSpan(d.id, p.start, p.end), heading, counts))
        self.held = Counter(term for *_, counts in self.passages for term in counts)
        self.mean = sum(c.total() for *_, c in self.passages) / max(len(self.passages), 1)

    @classmethod
    def folder(cls, *folders: Path) -> "Library":
        files = [
            (f.relative_to(folder.parent).as_posix(), f) for folder in folders for f in sorted(folder.rglob("*.md"))
        ]
        return cls([(name, path.read_text()) for name, path in files])

    def text_of(self, span: SourceSpan) -> str:
        return self.documents[span.text_id].text[span.start : span.end]

    def search(self, query: str, limit: int) -> list[tuple[Document, SourceSpan, str]]:
        requests = set(extract_terms(query))
        scored = [(self._score(requests, counts), n) for n, (*_, counts) in enumerate(self.passages)]
        best = sorted((s for s in scored if s[0] > 0), key=lambda s: (-s[0], s[1]))[:limit]
        return [self.passages[n][:3] for _, n in best]

    def _score(self, requests: set[str], counts: Counter[str]) -> float:
        length = 0.4 + 0.6 * counts.total() / self.mean
        return sum(self._weight(t) * counts[t] * 2.2 / (counts[t] + 1.2 * length) for t in requests if t in counts)

    def _weight(self, term: str) -> float:
        return math.log(1 + (len(self.passages) - self.held[term] + 0.5) / (self.held[term] + 0.5))


class SearchArgs(BaseModel, extra="forbid"):
    query: str = Field(min_length=1, max_length=500)
    limit: int = Field(default=8, ge=1, le=20)


class ReadArgs(BaseModel, extra="forbid"):
    source: str = Field(min_length=1, max_length=1000)
    start: int = Field(default=0, ge=0)
    length: int = Field(default=3000, ge=1, le=6000)


class CalculateArgs(BaseModel, extra="forbid"):
    expression: str = Field(min_length=1, max_length=500)


SPECS = (
    ToolSpec("search_library", "Find passages.", SearchArgs, "search", untrusted=True),
    ToolSpec("read_source", "Read a range of a document.", ReadArgs, "read", untrusted=True),
    ToolSpec("calculate", "Evaluate an arithmetic expression.", CalculateArgs, "calculate"),
)


@dataclass
class InMemoryContext:
    """One run. `engines`: by role name; absent: model-free. `stops`: what `stop` says at each asking, in order."""

    library: Library
    question: str
    budget: Budget = field(default_factory=Budget)
    earlier: tuple[tuple[str, str], ...] = ()
    engines: dict[str, Engine] = field(default_factory=dict[str, Engine])
    stops: list[StopReason | None] = field(default_factory=list[StopReason | None])
    steps: list[Step] = field(default_factory=list[Step])
    prompts: list[tuple[str, tuple[Message, ...]]] = field(default_factory=list[tuple[str, tuple[Message, ...]]])
    role_inputs: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    collected: list[Evidence] = field(default_factory=list[Evidence])
    reports: list[Report] = field(default_factory=list[Report])
    draft: ReportDraft | None = None
    turns: int = 0
    specs: tuple[ToolSpec, ...] = SPECS
    broken: dict[str, str] = field(default_factory=dict[str, str])
    """Tools that fail, with what they say."""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    rules: dict[str, str] = field(default_factory=dict[str, str])
    """Role name to the rule that answers it, where no engine does."""
    prompt_formats: dict[str, str] = field(default_factory=dict[str, str])
    """Prompt format by role name."""
    handlers: dict[str, Handler] = field(default_factory=dict[str, Handler])
    """What runs tools that are not the library's, by name."""
    role_calls: list[RoleCall] = field(default_factory=list[RoleCall])
    team: Team | None = None
    """Who does the work of child runs. None: nobody."""
    sent: list[ChildRequest] = field(default_factory=list[ChildRequest])
    reviews: list[PlanReview] = field(default_factory=list[PlanReview])
    """What a person says of plans, in order; then nobody is there."""
    proposals: list[PlanProposal] = field(default_factory=list[PlanProposal])
    quoted_earlier: tuple[SourceSpan, ...] = ()
    """What the thread's earlier reports quote."""
    looked_back: list[str] = field(default_factory=list[str])
    context_tokens: int | None = None
    """Context window of the models of all roles, as the platform knows it. None: unknown."""
    answer_tokens: int | None = None
    """Maximum tokens of an answer of all roles, as the platform knows it. None: unknown."""
    real_context_tokens: int | None = None
    """Context window that the provider really has: it rejects longer prompts. None: it takes all."""
    revisers: frozenset[str] = frozenset()
    """Roles whose engine can correct a draft."""
    report_style: ReportStyle | None = None
    calculations: list[str] = field(default_factory=list[str])
    seed: int = 0
    searching: float = 0.0
    """Seconds spent in tools, which are slow here and are not the graph's."""

    @property
    def run(self) -> RunInfo:
        id = uuid5(NAMES, self.question)
        return RunInfo(id, self.question, self.earlier, self.budget, self.seed, report_style=self.report_style)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self.specs

    @property
    def usage(self) -> RunUsage:
        return RunUsage(turns=self.turns)

    def get_context_tokens(self, role: str) -> int | None:
        return self.context_tokens

    def get_answer_tokens(self, role: str) -> int | None:
        return self.answer_tokens

    def stop_reason(self) -> StopReason | None:
        if self.stops and (reason := self.stops.pop(0)):
            return reason
        return StopReason.TURN_LIMIT if self.turns >= self.budget.max_turns else None

    async def begin_turn(self, number: int) -> None:
        self.turns = max(self.turns, number)

    async def call_role(
        self, role: Role[Any, Any], inputs: Any, *, turn: int = 0, boundary: BoundaryReason | None = None
    ) -> RoleReply[Any] | EngineFailure:
        role = extend_role(role)
        prompt_format = role.find_format(self.prompt_formats[role.name]) if role.name in self.prompt_formats else None
        messages = (prompt_format or role).render(inputs)
        self.prompts.append((role.name, messages))
        self.role_inputs.append((role.name, inputs))
        answer = self._find_overflow(role, messages) or self._answer(role, inputs, turn)
        if isinstance(answer, EngineFailure):
            payload = {"message": answer.message, "failure": answer.kind}
            self._append(StepDraft(StepKind.FAILURE, f"{role.name}: {answer.kind}", payload, turn=turn))
            return answer
        text = prompt_format.write(answer, inputs) if prompt_format and prompt_format.write else ""
        if prompt_format and text:
            answer = prompt_format.parse(text, inputs)
            assert not isinstance(answer, InvalidOutput), (text, answer)
        assert isinstance(answer, role.output)
        head = role.headline(answer)
        payload = {"role": role.name, "output": answer.model_dump(mode="json")}
        seq = self._append(StepDraft(role.step_kind, head.title, payload, role.label, head.detail, turn=turn))
        spans = prompt_format.spans(text) if prompt_format else ()
        self.role_calls.append(RoleCall(seq, role.name, turn, messages, text, spans, boundary))
        return RoleReply(seq, answer)

    def _find_overflow(self, role: Role[Any, Any], messages: Sequence[Message]) -> EngineFailure | None:
        """Reject what leaves no room for an answer of a quarter of the window, as providers do.

        It counts more tokens for a text than the graphs estimate.
        """
        window = self.real_context_tokens
        if window is None:
            return None
        texts = [*(m.text for m in messages), json.dumps(role.output.model_json_schema())]
        size = sum(math.ceil(len(text.encode()) / 3.3) for text in texts) + 8 * len(messages) + window // 4
        if size <= window:
            return None
        message = f"This model's maximum context length is {window} tokens. However, you requested {size} tokens."
        return EngineFailure(FailureKind.CONTEXT_TOO_LONG, message)

    def _answer(self, role: Role[Any, Any], inputs: Any, turn: int) -> BaseModel | EngineFailure:
        if role.name not in self.engines and role.name in self.rules:
            return role.rules[self.rules[role.name]](inputs, RuleContext(self.seed, turn))
        engine = self.engines.get(role.name, role.extractive)
        assert engine
        return engine(inputs)

    async def call_tool(self, call: ToolCall, *, turn: int = 0) -> ToolResult:
        self.calls.append(call)
        start = time.perf_counter()
        status, output, message = await self._used(call)
        self.searching += time.perf_counter() - start
        spans = [{"text_id": str(s.text_id), "start": s.start, "end": s.end} for s in output.spans]
        payload = {"status": status, "content": output.content, "message": message, "spans": spans}
        draft = StepDraft(
            StepKind.TOOL_RESULT,
            output.title,
            {"tool": call.tool, "args": call.args, **payload},
            ok=not message,
            turn=turn,
        )
        seq = self._append(draft)
        if (calculation := find_calculation(draft.payload)) is not None:
            self.calculations.append(calculation)
        for span in output.spans:
            self._see(span)
        return ToolResult(seq, call.tool, call.args, status, output.content, message, output.spans)

    async def call_tools(self, calls: Sequence[ToolCall], *, turn: int = 0) -> tuple[ToolResult, ...]:
        return tuple([await self.call_tool(call, turn=turn) for call in calls])

    async def _used(self, call: ToolCall) -> tuple[ToolStatus, ToolOutput, str]:
        spec = next((s for s in self.specs if s.name == call.tool), None)
        nothing = ToolOutput({}, call.tool)
        if spec is None:
            return ToolStatus.INVALID, nothing, f"There is no tool {call.tool}."
        try:
            args = spec.args.model_validate(call.args)
        except ValidationError as error:
            return ToolStatus.INVALID, nothing, f"{call.tool}: {error.errors()[0]['msg']}"
        if call.tool in self.broken:
            return ToolStatus.FAILED, nothing, self.broken[call.tool]
        if call.tool in self.handlers:
            return await self._handled(call.tool, args)
        return ToolStatus.OK, self._run(args), ""

    async def _handled(self, tool: str, args: BaseModel) -> tuple[ToolStatus, ToolOutput, str]:
        try:
            return ToolStatus.OK, await self.handlers[tool](args), ""
        except ToolFailedError as failed:
            return ToolStatus.FAILED, ToolOutput({}, tool), str(failed)

    def _run(self, args: BaseModel) -> ToolOutput:
        match args:
            case SearchArgs():
                hits = self.library.search(args.query, args.limit)
                rendered = [{"text": self.library.text_of(span), "heading": heading} for _, span, heading in hits]
                spans = tuple(span for _, span, _ in hits)
                return ToolOutput({"query": args.query, "passages": rendered}, args.query, spans=spans)
            case ReadArgs():
                document = self.library.documents[UUID(args.source)]
                span = SourceSpan(document.id, args.start, min(args.start + args.length, len(document.text)))
                return ToolOutput({"text": self.library.text_of(span)}, document.title, spans=(span,))
            case CalculateArgs():
                assert re.fullmatch(r"[\d\s.()+\-*/]+", args.expression)
                value = eval(args.expression)  # digits and operators only
                return ToolOutput(
                    {"expression": args.expression, "result": value, "text": f"{value:g}"}, args.expression
                )
            case _:
                raise AssertionError(args)

    def _see(self, span: SourceSpan) -> None:
        if any(e.span == span for e in self.collected):
            return
        d = self.library.documents[span.text_id]
        heading = next((h for _, s, h, _ in self.library.passages if s == span), "")
        id = f"E{len(self.collected) + 1}"
        self.collected.append(Evidence(id, span, self.library.text_of(span), d.id, d.title, heading, d.name))

    async def run_children(
        self, requests: Sequence[ChildRequest], *, turn: int = 0
    ) -> tuple[ChildResult, ...] | ChildRunsUnavailable:
        self.sent.extend(requests)
        if self.team is None:
            return ChildRunsUnavailable("There is nobody else here.")
        results: list[ChildResult] = []
        for request in requests:
            result, spans = self.team(request)
            seq = self._append(StepDraft(StepKind.TOOL_RESULT, request.question, {"tool": CHILD_RUN}, "child"))
            for span in spans:
                self._see(span)
            by_span = {e.span: e for e in self.collected}
            brought = tuple(by_span[span] for span in spans)
            ids = tuple(e.id for e in brought)
            findings = tuple(replace(f, evidence=_select(ids, f.evidence) or ids) for f in result.findings)
            cited, quoted = _select(ids, result.cited), _select(ids, result.quoted)
            results.append(replace(result, seq=seq, evidence=brought, findings=findings, cited=cited, quoted=quoted))
            self.turns += result.usage.turns
        return tuple(results)

    async def search_thread(self, query: str, limit: int = 8, *, turn: int = 0) -> tuple[ThreadFinding, ...]:
        self.looked_back.append(query)
        for span in self.quoted_earlier:
            self._see(span)
        return ()

    async def load_earlier_report(self, *, with_evidence: bool = True) -> EarlierReport | None:
        """No run in memory follows another."""
        return None

    async def review(
        self,
        plan: PlanProposal,
        *,
        default: ReviewDecision | None = None,
        timeout_seconds: float | None = None,
        turn: int = 0,
    ) -> PlanReview:
        self.proposals.append(plan)
        if self.reviews:
            return self.reviews.pop(0)
        assert default is not None, "nobody is there to ask"
        return PlanReview(default, plan)

    async def append_steps(self, *drafts: StepDraft) -> tuple[int, ...]:
        return tuple(map(self._append, drafts))

    async def last_steps(self, kind: StepKind, limit: int) -> tuple[Step, ...]:
        return tuple([s for s in self.steps if s.kind is kind][-limit:])

    async def get_steps(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        return tuple(self.steps[seq - 1] for seq in seqs)

    async def get_user_messages(self, after_seq: int) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.kind is StepKind.USER_MESSAGE and s.seq > after_seq)

    async def get_evidence(self, limit: int) -> tuple[Evidence, ...]:
        return tuple(self.collected[-limit:])

    async def check_report(self, draft: ReportDraft) -> DraftCheck:
        return check_draft(
            draft,
            {e.id: e for e in self.collected},
            self.library.text_of,
            ClaimContext(self.question, tuple(self.calculations)),
        )

    def can_revise(self, role: Role[Any, Any]) -> bool:
        return role.name in self.revisers

    def has_engine(self, role: Role[Any, Any]) -> bool:
        return role.name in self.engines

    async def list_claims(self, draft: ReportDraft) -> tuple[ClaimToJudge, ...]:
        evidence = {e.id: e for e in self.collected}
        context = ClaimContext(self.question, tuple(self.calculations))
        return list_claims(draft, evidence, self.library.text_of, context)

    async def submit_report(
        self,
        draft: ReportDraft,
        stop_reason: StopReason,
        *,
        revision: ReportRevision | None = None,
        follow_up: FollowUpResult | None = None,
        check: DraftClaimCheck | None = None,
    ) -> Report:
        self.draft = draft
        report = verify_citations(
            draft,
            {e.id: e for e in self.collected},
            self.library.text_of,
            stop_reason,
            "stand-in",
            ClaimContext(self.question, tuple(self.calculations)),
        )
        outcome = None if follow_up is None else build_outcome(follow_up, report)
        report = replace(report, revision=revision, follow_up=outcome)
        if check is not None:
            evidence = {e.id: e for e in self.collected}
            report = apply_claim_check(report, draft, check, evidence, self.library.text_of, "stand-in")
        self._append(StepDraft(StepKind.REPORT, report.title, {"reason": stop_reason.value}))
        self.reports.append(report)
        return report

    def say(self, text: str) -> None:
        """A person writes to the run."""
        self._append(StepDraft(StepKind.USER_MESSAGE, text, {"text": text}))

    def _append(self, draft: StepDraft) -> int:
        seq = len(self.steps) + 1
        step = Step(
            seq,
            draft.kind,
            draft.title,
            draft.payload,
            draft.label or draft.kind,
            draft.detail,
            draft.ok,
            draft.ms,
            draft.tokens,
            draft.turn,
            EPOCH,
            1,
        )
        self.steps.append(step)
        return seq

    def kinds(self) -> list[StepKind]:
        return [s.kind for s in self.steps]

    @property
    def report(self) -> Report:
        return self.reports[-1]


def _select(ids: Sequence[str], indices: Sequence[str]) -> tuple[str, ...]:
    """Return the ids at positions that a test wrote as text."""
    return tuple(ids[int(index)] for index in indices)


def failing(kind: FailureKind, stop: str = "") -> Engine:
    """An engine that gives no usable answer."""
    return lambda _inputs: EngineFailure(kind, f"it failed: {kind}", stop_reason=stop)


async def carry_out(
    ctx: InMemoryContext, graph: Any, thread: str = "t", saver: Any = None, state: Any = None
) -> dict[str, Any]:
    """Run a graph to its end; the final state."""
    compiled = compile_graph(graph.build).copy({"checkpointer": saver})
    inputs = graph.initial_state(ctx.run) if state is None else state
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 10_000}
    return await compiled.ainvoke(inputs, config=config, context=ctx)
