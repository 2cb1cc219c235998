"""A run again from its record, without a model, a tool or a write: its graph is executed, and every call is answered
with what was recorded for it.

Proves that the record determines the run: the graph must ask for the same things in the same order, and end in the same
state and with the same report. The first difference is told.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import orjson
from langgraph.config import get_config

from offing.core import question
from offing.core.citation import check
from offing.core.episode import Talk
from offing.core.errors import Conflict, InvalidInput, OffingError
from offing.core.evidence import EvidenceBook
from offing.core.model import EngineChoice, EngineFailure, FailureKind, Message
from offing.core.policy import policy_of
from offing.core.provenance import label_in
from offing.core.question import Asking, QuestionKind
from offing.core.report import Evidence, Report, ReportDraft
from offing.core.run import RunStatus, Spent, StopReason, exhausted
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.tool import ToolResult, ToolSpec
from offing.core.trajectory import Fracture
from offing.mcp.catalogue import Catalogue
from offing.sdk import Graph, Role, RoleReply, RunView, ToolCall
from offing.sdk.asking import AsksPeople
from offing.sdk.children import ChildRequest, ChildResult, NoChildren
from offing.sdk.conversation import Note, Recalled
from offing.sdk.observation import result_of
from offing.sdk.tool import OwnTool
from offing.sdk.values import Input, Output
from offing.services.graphs import at_version, own_tools
from offing.services.library import texts_of
from offing.services.mcp_results import usable
from offing.storage import reports, runs, steps, stretches, trajectories
from offing.storage.pool import Database
from offing.storage.runs import RunRow
from offing.tools import registry
from offing.tools.mcp_tools import mcp_tools
from offing.tools.tool import Tool
from offing_workers.authors import NO_MODEL, author_of, holds_draft, mentioned
from offing_workers.children import child_result
from offing_workers.conversing import note_draft, notes_in, recalled_in

UNRECORDED_STOPS = frozenset(
    {StopReason.TOKEN_LIMIT, StopReason.SPEND_LIMIT, StopReason.TIME_LIMIT, StopReason.ASKED_TO_WRITE}
)
"""Reasons to stop that came from clocks, money or people: at which look they showed is found by trying."""

LOOKS = 8
"""How many looks back from a difference are tried."""


class Diverged(OffingError):
    """The graph did something else than what is recorded."""

    code = "diverged"


class OutOfRecord(OffingError):
    """The run was cut off here, so there is nothing to compare with."""

    code = "out_of_record"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of it."""

    same: bool
    calls: int
    """Calls that were answered from the record."""
    recorded: int
    """Calls that are on record."""
    detail: str
    seq: int | None = None
    """The step at which the difference showed. None: there is none, or it is behind the last step."""


@dataclass(frozen=True, slots=True)
class Record:
    """All of a run that its graph may see."""

    row: RunRow
    steps: tuple[Step, ...]
    turns: Mapping[int, Talk]
    report: Report | None
    state: Mapping[str, Any] | None
    """As it was last saved. None: never."""
    earlier: tuple[tuple[str, str], ...]

    @property
    def keyed(self) -> dict[CallKey, Step]:
        return {step.key: step for step in self.steps if step.key is not None}


async def replayed(
    database: Database, tenant: UUID, run: UUID, graphs: Mapping[str, Graph], servers: Catalogue | None = None
) -> Replayed:
    """Raises NotFound, InvalidInput when this installation has not the run's graph, Conflict while it goes on.

    `servers`: MCP servers whose tools runs were shown; none is asked.
    """
    record = await _record(database, tenant, run)
    row = record.row
    if not row.terminal:
        raise Conflict("The run has not ended.", "Wait for it, or cancel it first.")
    graph = at_version(graphs, row.graph, row.graph_version)
    if graph is None:
        wanted = f"run {run} was made by {row.graph} {row.graph_version[:12]}, which is not installed here"
        raise InvalidInput("RUN", wanted, "Replay it where that version of the graph is.")
    if graph.plain is not None:
        problem = "its graph is written for LangGraph alone, and what its own functions did is not on record"
        raise InvalidInput("RUN", problem, "Replay a run of a graph that knows the SDK.")
    if any(s.kind is StepKind.QUESTION and s.payload["kind"] == QuestionKind.INTERRUPT for s in record.steps):
        raise InvalidInput("RUN", "its graph interrupted itself, which no record can repeat", "Replay another run.")
    outside = mcp_tools(usable(servers or Catalogue(), row.scope.get("mcp", ())).values())
    context = ReplayContext(record, database, tenant, None, own_tools(graph), outside)
    first = await _attempt(graph, context)
    if first.same or row.stop_reason not in UNRECORDED_STOPS:
        return first
    for look in range(context.looks - 1, max(-1, context.looks - 1 - LOOKS), -1):
        again = await _attempt(graph, ReplayContext(record, database, tenant, look, own_tools(graph), outside))
        if again.same:
            return again
    return first


async def _record(database: Database, tenant: UUID, run: UUID) -> Record:
    async with database.transaction(tenant) as connection:
        row = await runs.by_id(connection, run)
        return Record(
            row,
            tuple(await steps.after(connection, run, 0, 10_000_000)),
            {talk.seq: talk for talk in await stretches.talks(connection, run)},
            await reports.latest(connection, run),
            await trajectories.last_state(connection, run),
            await trajectories.earlier_answers(connection, run),
        )


async def _attempt(graph: Graph, context: "ReplayContext") -> Replayed:
    record = context.history
    try:
        config = {"recursion_limit": 1_000_000}
        state = await graph.build().compile().ainvoke(graph.start(context.run), config, context=context)
        context.finish(state)
    except Diverged as error:
        return Replayed(False, context.calls, len(record.keyed), str(error), context.at)
    except OutOfRecord:
        detail = f"{context.calls} calls, up to where the run was cut off ({record.row.stop_reason})"
        return Replayed(True, context.calls, len(record.keyed), detail)
    detail = f"{context.calls} calls in the same order, the same report and the same state at the end"
    return Replayed(True, context.calls, len(record.keyed), detail)


class ReplayContext(AsksPeople):
    """`RunContext` over a record. `stop_at`: the look at `stop` from which the recorded reason shows; None: never."""

    def __init__(
        self,
        record: Record,
        database: Database,
        tenant: UUID,
        stop_at: int | None,
        own: Sequence[OwnTool] = (),
        outside: Sequence[Tool] = (),
    ) -> None:
        self.history, self._database, self._tenant, self._stop_at = record, database, tenant, stop_at
        row, self._own, self._outside = record.row, own, outside
        self._run = RunView(row.id, row.question, record.earlier, row.budget, row.seed)
        self._journal, self._by_seq = record.keyed, {step.seq: step for step in record.steps}
        self._first = min((key.superstep for key in self._journal), default=0)
        self._shift: int | None = None
        self._ordinals = Counter[tuple[int, str]]()
        self._spent, self._author = Spent(), NO_MODEL
        self._book, self._seen = EvidenceBook(), list[Step]()
        self.calls, self.looks = 0, 0
        self.at: int | None = None
        """Seq of the step that was answered last."""

    @property
    def run(self) -> RunView:
        return self._run

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        policy = policy_of(self.history.row.policy)
        allowed = policy.offered if policy else frozenset[str]()
        scope = self.history.row.scope
        web, code = bool(scope.get("web")), bool(scope.get("code"))
        known = registry(str(scope.get("world", "")), web=web, code=code, own=self._own)
        return tuple(tool.spec for tool in (*known, *self._outside) if tool.spec.name in allowed)

    @property
    def spent(self) -> Spent:
        return self._spent

    def stop(self) -> StopReason | None:
        look, self.looks = self.looks, self.looks + 1
        if self._stop_at is not None and look >= self._stop_at:
            return self.history.row.stop_reason
        budget = replace(self._run.budget, tokens=None, usd=None, seconds=None)
        return exhausted(replace(self._spent, turns=self._spent.turns - 1), budget)

    async def begin_turn(self, number: int) -> None:
        self._spent = replace(self._spent, turns=max(number, self._spent.turns))

    async def call(
        self, role: Role[Input, Output], given: Input, *, turn: int = 0, fracture: Fracture | None = None
    ) -> RoleReply[Output] | EngineFailure:
        step = self._next(f"the role {role.name}", {role.kind, StepKind.FAILURE})
        self._same("role", step.payload["role"], role.name)
        if step.kind is StepKind.FAILURE:
            payload = step.payload
            return EngineFailure(FailureKind(payload["failure"]), payload["message"], stop=payload["stop"])
        if talk := self.history.turns.get(step.seq):
            self._same_prompt(role, given, talk)
        if holds_draft(role.output, step.payload["output"]):
            self._author = author_of(step)
        return RoleReply(step.seq, role.output.model_validate(step.payload["output"]))

    async def use(self, call: ToolCall, *, turn: int = 0) -> ToolResult:
        step = self._next(f"the tool {call.tool}", {StepKind.TOOL})
        self._same("tool", step.payload["tool"], call.tool)
        self._same("arguments", step.payload["args"], _plain(call.args))
        self._approved(step)
        self._book.add(step.payload["content"], label_in(step.payload))
        return result_of(step)

    async def children(
        self, requests: Sequence[ChildRequest], *, turn: int = 0
    ) -> tuple[ChildResult, ...] | NoChildren:
        taken: list[Step] = []
        for nth, request in enumerate(requests):
            step = self._next("to start a run", {StepKind.TOOL})
            self._same("question", step.payload["args"]["question"], request.question)
            if "refused" in step.payload:
                for _ in requests[nth + 1 :]:
                    self._key()
                return NoChildren(step.payload["refused"])
            self._book.add(step.payload["content"], label_in(step.payload))
            taken.append(step)
        results = tuple(child_result(step, self._book) for step in taken)
        turns = sum(result.spent.turns for result in results)
        self._spent = replace(self._spent, turns=self._spent.turns + turns)
        return results

    async def conversation(self, words: str, most: int = 8, *, turn: int = 0) -> tuple[Recalled, ...]:
        step = self._next("what the thread's earlier reports say", {StepKind.TOOL})
        self._same("arguments", step.payload["args"], {"words": words, "most": most})
        self._book.add(step.payload["content"], label_in(step.payload))
        return recalled_in(step, self._book)

    async def remember(self, key: str, text: str) -> None:
        await self.record(note_draft(key, text))

    async def remembered(self) -> tuple[Note, ...]:
        return notes_in(self._next("the thread's notes", {StepKind.TOOL}))

    async def put(self, asking: Asking, turn: int) -> question.Answer:
        step = self._next("to ask a person", {StepKind.QUESTION})
        self._same("question", step.payload, _plain(question.asking_json(asking)))
        return question.answer_of(self._beside(step, "?answer").payload["answer"])

    async def record(self, *drafts: StepDraft) -> None:
        for draft in drafts:
            step = self._next(f"to record a {draft.kind}", {draft.kind})
            self._same("content", step.payload, _plain(draft.payload))

    async def narrow(self, rules: Sequence[Mapping[str, Any]], *, turn: int = 0) -> str:
        step = self._next("to narrow what tools may do", {StepKind.NOTE})
        self._same("rules", step.payload.get("narrow"), _plain([dict(rule) for rule in rules]))
        return str(step.payload["refused"])

    async def recall(self, kind: StepKind, last: int) -> tuple[Step, ...]:
        known = [step for step in self._seen if step.kind is kind]
        return tuple(sorted(known, key=lambda step: step.seq))[-last:] if last > 0 else ()

    async def fetch(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        return tuple(self._by_seq[seq] for seq in seqs if seq in self._by_seq)

    async def messages(self, after: int) -> tuple[Step, ...]:
        latest = max((step.seq for step in self._seen), default=0)
        return tuple(s for s in self.history.steps if s.kind is StepKind.HUMAN and after < s.seq <= latest)

    async def evidence(self, last: int) -> tuple[Evidence, ...]:
        return self._book.latest(last)

    async def deliver(self, draft: ReportDraft, reason: StopReason) -> Report:
        step = self._next("to deliver a report", {StepKind.REPORT})
        self._same("reason", step.payload["reason"], reason)
        pieces = self._book.all()
        spans = [pieces[id].span for id in sorted(mentioned(draft)) if id in pieces]
        found = await texts_of(self._database, self._tenant, spans) if spans else ()
        texts = {span: text or "" for span, text in zip(spans, found, strict=True)}
        report = check(draft, pieces, lambda span: texts.get(span, ""), reason, self._author)
        self._same("title", step.payload["title"], report.title)
        self._same("sentences", step.payload["sentences"], len(report.sentences()))
        if self._is_last(step) and report != self.history.report:
            raise Diverged(f"step {step.seq}: the report differs from the stored one; has a source been erased since?")
        return report

    def _beside(self, asked: Step, name: str) -> Step:
        """The step under the key beside that of another."""
        assert asked.key is not None
        step = self._journal.pop(replace(asked.key, path=f"{asked.key.path}{name}"), None)
        if step is None:
            raise OutOfRecord(str(asked.key))
        self.calls += 1
        self._seen.append(step)
        return step

    def _approved(self, used: Step) -> None:
        """What a person was asked and said before a tool was used belongs to that use."""
        assert used.key is not None
        begins = f"{used.key.path}?approve "
        for key in [k for k in self._journal if (k.superstep, k.ordinal) == (used.key.superstep, used.key.ordinal)]:
            if key.path.startswith(begins):
                self._seen.append(self._journal.pop(key))
                self.calls += 1

    def finish(self, state: Mapping[str, Any]) -> None:
        """The graph has ended: nothing may be left of the record. Raises Diverged."""
        if self._journal:
            step = min(self._journal.values(), key=lambda step: step.seq)
            self.at = step.seq
            raise Diverged(f"the graph ended, and the record goes on with step {step.seq}: {step.kind} {step.title!r}")
        stored = self.history.state
        if stored is not None and self.history.row.status is RunStatus.DONE:
            for name in sorted(set(state) & set(stored)):
                if _plain(state[name]) != _plain(stored[name]):
                    raise Diverged(f"state {name!r} ended as {state[name]!r}, and {stored[name]!r} is stored")

    def _next(self, wanted: str, kinds: set[StepKind]) -> Step:
        """The step recorded where the running node asks for `wanted`."""
        key = self._key()
        step = self._journal.pop(key, None)
        if step is None and self.history.row.status is not RunStatus.DONE:
            raise OutOfRecord(str(key))
        if step is None:
            raise Diverged(f"the graph asks for {wanted} at {key}, and nothing is recorded there")
        self.at = step.seq
        if step.kind not in kinds:
            raise Diverged(f"step {step.seq}: recorded {step.kind} {step.title!r}, and the graph asks for {wanted}")
        self.calls += 1
        self._seen.append(step)
        self._spent = replace(self._spent, tokens=self._spent.tokens + step.tokens)
        return step

    def _key(self) -> CallKey:
        """As the recorder makes them; supersteps of a thread's earlier runs come before those of this one."""
        metadata: dict[str, Any] = get_config().get("metadata") or {}
        superstep, path = int(metadata["langgraph_step"]), "/".join(map(str, metadata["langgraph_path"]))
        if self._shift is None:
            self._shift = self._first - superstep
        superstep += self._shift
        ordinal = self._ordinals[superstep, path]
        self._ordinals[superstep, path] += 1
        return CallKey(superstep, path, ordinal)

    def _same_prompt(self, role: Role[Any, Any], given: Any, talk: Talk) -> None:
        """What was rendered then must be in what is rendered now; an engine may have added its own words."""
        if not talk.messages:
            return
        choice = self.history.row.engines.get(role.name, EngineChoice())
        form = role.form(choice.form)
        rendered: tuple[Message, ...] = form.render(given) if form else role.render(given)
        pairs = zip(rendered, talk.messages, strict=False)
        if len(rendered) > len(talk.messages) or not all(now.text in then.text for now, then in pairs):
            raise Diverged(f"step {talk.seq}: {role.name} is asked with another prompt than the recorded one")

    def _same(self, what: str, recorded: Any, now: Any) -> None:
        if recorded != now:
            raise Diverged(f"step {self.at}: {what} {recorded!r} is recorded, and now it is {now!r}")

    def _is_last(self, step: Step) -> bool:
        return not any(s.kind is StepKind.REPORT and s.seq > step.seq for s in self.history.steps)


def _plain(value: Any) -> Any:
    """As it is after it was stored as JSON."""
    return orjson.loads(orjson.dumps(value, default=str))
