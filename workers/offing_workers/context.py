"""The run's context as a graph's nodes see it: `offing.sdk.RunContext` over real engines, tools and storage."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from opentelemetry import trace

from offing.core import question, trajectory
from offing.core.citation import check
from offing.core.evidence import EvidenceBook
from offing.core.model import Answer, Attempt, EngineChoice, EngineFailure, FailureKind
from offing.core.report import Evidence, Report, ReportDraft
from offing.core.role_call import CallOrigin, rejections
from offing.core.run import RunStatus, StopReason, exhausted
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.token_checks import refuse_broken
from offing.core.tool import Span, ToolResult, ToolSpec, ToolStatus
from offing.core.trajectory import Fracture, outcome_of
from offing.models.engine import RoleRequest, engine_for
from offing.sdk import Role, RoleReply, RunView, ToolCall, result_of
from offing.sdk.advice import Advice, advised
from offing.sdk.asking import AsksPeople
from offing.sdk.children import ChildRequest, ChildResult, NoChildren
from offing.sdk.conversation import Note, Recalled
from offing.sdk.values import Input, Output
from offing.services.library import texts_of
from offing.storage import reports, turns
from offing.storage.pool import Connection, Database
from offing.storage.turn_rows import TurnRow
from offing.telemetry.attributes import DECISION
from offing.telemetry.redaction import redact, without_secrets
from offing.telemetry.tracing import mark_failed
from offing_workers import drafts
from offing_workers.asking import Asker
from offing_workers.authors import NO_MODEL, author_of, mentioned, wrote
from offing_workers.children import Children
from offing_workers.conversing import Conversing, note_draft
from offing_workers.hold import Drain, Hold
from offing_workers.meter import OpenReservations, RunMeter
from offing_workers.narrowing import narrow
from offing_workers.placing import Placing
from offing_workers.recollection import MOST
from offing_workers.recorder import ASKED, Also, Recorder, Viewers
from offing_workers.spans import NodeSpans, answered, role_span, tool_span
from offing_workers.toolbelt import Toolbelt

OWN_ACCORD = frozenset({trajectory.Outcome.ANSWERED, trajectory.Outcome.DONE})
"""Endings that are the run's own."""

RECORDS = frozenset(StepKind) - {StepKind.TOOL, StepKind.REPORT}


@dataclass(frozen=True, slots=True)
class Checked:
    """A report that is ready to be recorded."""

    report: Report
    step: StepDraft
    store: Also
    """Writes the report's rows; its step is the first of those appended."""


class SliceContext(AsksPeople):
    """One claim's context. Every method that appends asks the journal first.

    `fresh`: this is the run's first claim, so there is nothing of it to read back.
    """

    def __init__(
        self,
        run: RunView,
        engines: Mapping[str, EngineChoice],
        hold: Hold,
        recorder: Recorder,
        toolbelt: Toolbelt,
        database: Database,
        viewers: Viewers,
        *,
        turns_per_slice: int,
        fresh: bool,
        counts_turns: bool,
        roles: Sequence[Role[Any, Any]],
        asker: Asker,
        children: Children,
        conversing: Conversing,
        advice: Mapping[str, Advice] | None = None,
    ) -> None:
        self._asker, self._children, self._conversing = asker, children, conversing
        self._run, self._engines, self._hold = run, engines, hold
        self._recorder, self._toolbelt, self._database, self._viewers = recorder, toolbelt, database, viewers
        self._turns_left = turns_per_slice
        self._fresh, self._counts_turns = fresh, counts_turns
        self._roles, self._advice = roles, advice or {}
        self._reservations = OpenReservations()
        self._author = ""
        """Empty: this claim has heard nobody write."""
        self._placing = Placing(database, recorder.fence.tenant, run.id, fresh=fresh)
        self.spans: NodeSpans | None = None
        """Spans of the nodes that run. None: nothing is recorded."""
        self.report: Report | None = None
        """The latest that this claim delivered."""

    @property
    def run(self) -> RunView:
        return self._run

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._toolbelt.specs

    @property
    def spent(self):
        return self._recorder.spent

    def stop(self) -> StopReason | None:
        """A turn that has begun may end: the limit on turns stops the one after the last."""
        if self._hold.write_now:
            return StopReason.ASKED_TO_WRITE
        if self._hold.overdue:
            return StopReason.TIME_LIMIT
        spent = self.spent
        return exhausted(replace(spent, turns=spent.turns - 1), self._run.budget)

    async def begin_turn(self, number: int) -> None:
        if self._recorder.begin_turn(number):
            self._turns_left -= 1
            if self._turns_left <= 0:
                self._hold.drain(Drain.SLICE_OVER)

    async def call(
        self, role: Role[Input, Output], given: Input, *, turn: int = 0, fracture: Fracture | None = None
    ) -> RoleReply[Output] | EngineFailure:
        key = self._recorder.next_key(role.name, given)
        if step := self._recorder.recorded(key, frozenset({role.kind, StepKind.FAILURE})):
            self._note_author(role, step)
            return _replayed(role, step)
        if self._recorder.by_content and (reason := await self._turn_of_its_own()):
            return EngineFailure(FailureKind.OUT_OF_BUDGET, "No room for another call.", stop=reason)
        choice = self._engines.get(role.name, EngineChoice())
        if choice.engine != "extractive":
            await self._recorder.settle()  # a slow call must not hold back what is known already
            await self._placing.know()  # now, so that an answer that was paid for waits for nothing
        try:
            return await self._made(role, given, choice, key, turn, fracture)
        except BaseException:
            self._recorder.leave_without_step(key)
            raise

    async def _made(
        self,
        role: Role[Input, Output],
        given: Input,
        choice: EngineChoice,
        key: CallKey,
        turn: int,
        fracture: Fracture | None,
    ) -> RoleReply[Output] | EngineFailure:
        """A call that is not on record."""
        began = time.monotonic()
        await self._doing(f"{role.label or role.kind}: {choice.model or choice.engine}")
        with role_span(self._node(key), role.name, choice, turn) as opened:
            answer = await self._answer(role, given, choice, key, turn)
            answered(opened, answer)
        ms = int((time.monotonic() - began) * 1000)
        if isinstance(answer, EngineFailure):
            await self._called(role, choice, drafts.failed(role, choice, answer, key, turn, ms), answer.attempts)
            return answer
        return await self._accepted(role, choice, answer, key, turn, ms, fracture)

    async def use(self, call: ToolCall, *, turn: int = 0) -> ToolResult:
        call = ToolCall(*without_secrets([call.tool, call.args]))
        key = self._recorder.next_key(call.tool, call.args)
        if step := self._recorder.recorded(key, frozenset({StepKind.TOOL})):
            return result_of(step)
        began = time.monotonic()
        await self._doing(f"{call.tool}: {next((str(v) for v in call.args.values()), '')}")
        with tool_span(self._node(key), call.tool, turn) as opened:
            outcome = await self._toolbelt.use(call, key)
            opened.set_attribute(DECISION, outcome.rule)
            if outcome.status is not ToolStatus.OK:
                mark_failed(opened, outcome.status)
        draft = drafts.used(call, outcome, key, turn, int((time.monotonic() - began) * 1000))
        (step,) = await self._recorder.append(draft)
        return result_of(step)

    async def put(self, asking: question.Asking, turn: int) -> question.Answer:
        key = self._recorder.next_key(asking.kind, question.asking_json(asking))
        return await self._asker.put(asking, key, turn)

    async def narrow(self, rules: Sequence[Mapping[str, Any]], *, turn: int = 0) -> str:
        return await narrow(self._recorder, self._toolbelt, rules, turn)

    async def children(
        self, requests: Sequence[ChildRequest], *, turn: int = 0
    ) -> tuple[ChildResult, ...] | NoChildren:
        return await self._children.results(requests, turn, await self._book())

    async def conversation(self, words: str, most: int = 8, *, turn: int = 0) -> tuple[Recalled, ...]:
        return await self._conversing.recalled(words, most, turn, await self._book())

    async def remember(self, key: str, text: str) -> None:
        await self.record(note_draft(key, text))

    async def remembered(self) -> tuple[Note, ...]:
        return await self._conversing.notes()

    async def record(self, *drafts: StepDraft) -> None:
        for draft in drafts:
            key = self._recorder.next_key(draft.kind, draft.payload)
            if self._recorder.recorded(key, RECORDS) is None:
                self._recorder.leave(replace(draft, key=key))
        if not self._counts_turns:
            await self._recorder.settle()  # the node's checkpoint is written at once, and what it recorded must be in

    async def recall(self, kind: StepKind, last: int) -> tuple[Step, ...]:
        await self._recorder.settle()
        return await self._recorder.recollection.last_of(kind, last)

    async def fetch(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        return await self._recorder.recollection.by_seq(seqs)

    async def messages(self, after: int) -> tuple[Step, ...]:
        return await self._recorder.recollection.messages(after)

    async def evidence(self, last: int) -> tuple[Evidence, ...]:
        return (await self._book()).latest(last)

    async def deliver(self, draft: ReportDraft, reason: StopReason) -> Report:
        key = self._recorder.next_key()
        if self._recorder.recorded(key, frozenset({StepKind.REPORT})):
            self.report = await self.latest_report()
        else:
            self.report = await self._deliver(draft, reason, key)
        assert self.report is not None
        return self.report

    async def latest_report(self) -> Report | None:
        """The report that this run has so far. None: there is none.

        A branch that was cancelled as its report was committed has not said that it delivered one.
        """
        if self.report is not None or (self._fresh and not self._recorder.has_written):
            return self.report
        async with self._reading() as connection:
            return await reports.latest(connection, self._run.id)

    async def once(self, name: str, given: Any, work: Callable[[], Awaitable[Any]]) -> Any:
        """See `offing.sdk.running.Journal`. The result is kept as a note."""
        key = self._recorder.next_key(name, given)
        if step := self._recorder.recorded(key, frozenset({StepKind.NOTE})):
            return step.payload["result"]
        began = time.monotonic()
        result = orjson.loads(orjson.dumps(await work()))
        ms = int((time.monotonic() - began) * 1000)
        note = StepDraft(StepKind.NOTE, name, {"function": name, "result": result}, label="calls", ms=ms, key=key)
        await self._recorder.append(note)
        return result

    async def show(self, text: str) -> None:
        """Show viewers what the run does now; not on record."""
        await self._doing(text)

    async def closing(self, draft: ReportDraft, reason: StopReason) -> Checked:
        """As `checked`, for a report that the graph itself came to: its roles' latest turns are done with it."""
        checked = await self.checked(draft, reason)
        await self._placing.know()
        last = self._placing.latest() if outcome_of(RunStatus.DONE, reason) in OWN_ACCORD else []

        async def store(connection: Connection, new: list[Step]) -> None:
            await checked.store(connection, new)
            if last:
                await turns.mark_done(connection, self._run.id, last)

        return replace(checked, store=store)

    async def _turn_of_its_own(self) -> StopReason | None:
        """Begin a turn for a call of a graph that counts none. Why there is no room for it; None: there is."""
        if reason := self.stop() or exhausted(self.spent, self._run.budget):
            return reason
        await self.begin_turn(self.spent.turns + 1)
        return None

    async def _answer(
        self, role: Role[Any, Any], given: Any, choice: EngineChoice, key: CallKey, turn: int
    ) -> Answer | EngineFailure:
        engine = engine_for(choice)
        if isinstance(engine, EngineFailure):
            return engine
        meter = RunMeter(self._database, self._recorder, self._run.budget, key, self._reservations)
        budget = self._run.budget.seconds
        left = None if budget is None else max(0.0, budget - self._recorder.spent.seconds)
        place = f"{key.superstep}/{key.path}/{key.ordinal}"
        if advice := self._advice.get(role.name):
            role = advised(role, advice)
        request = RoleRequest(role, given, choice, turn, self._run.seed, meter, left, self._placing.recall, place)
        return await engine.answer(request)

    async def _accepted(
        self,
        role: Role[Any, Output],
        choice: EngineChoice,
        answer: Answer,
        key: CallKey,
        turn: int,
        ms: int,
        fracture: Fracture | None,
    ) -> RoleReply[Output]:
        output: Any = answer.output
        headline = role.headline(output)
        draft = StepDraft(
            role.kind,
            headline.title,
            {
                "role": role.name,
                "engine": choice.engine,
                "model": answer.model,
                "output": output.model_dump(mode="json"),
                **({"library": choice.library} if choice.library else {}),
                **({"used": [answer.usage.prompt_tokens, answer.usage.completion_tokens]} if role.native else {}),
            },
            label=role.label,
            detail=headline.detail,
            ms=ms,
            tokens=answer.usage.tokens,
            turn=turn,
            key=key,
        )
        step = await self._called(role, choice, draft, answer.attempts, answer, fracture)
        self._note_author(role, step)
        return RoleReply(step.seq, output, (answer.usage.prompt_tokens, answer.usage.completion_tokens))

    async def _called(
        self,
        role: Role[Any, Any],
        choice: EngineChoice,
        draft: StepDraft,
        attempts: Sequence[Attempt],
        answer: Answer | None = None,
        fracture: Fracture | None = None,
    ) -> Step:
        """Append a role call: a step and a turn for each completion that could not be used, then its own."""
        rejected = rejections(attempts)
        for sampled in (r.sampled.trace for r in rejected):
            refuse_broken(sampled, sampled.text)
        if answer is not None and answer.trace is not None:
            refuse_broken(answer.trace, answer.text)
        aside = [self._placing.aside(role.name, r.sampled) for r in rejected]
        place = self._placing.place(role.name, answer, fracture) if answer else None
        assert draft.key is not None
        origin = CallOrigin(role.name, choice.engine, draft.key.superstep)

        def behind(new: Sequence[Step]) -> list[TurnRow]:
            unused = zip(rejected, aside, new, strict=False)
            rows = [turns.rejected_of(step.seq, origin, one, where) for one, where, step in unused]
            return rows + ([turns.turn_of(new[-1].seq, origin, answer, place)] if answer else [])

        unusable = [drafts.unused(role, choice, r, draft.turn) for r in rejected]
        *_, step = await self._recorder.append(*unusable, draft, behind=behind)
        self._placing.placed(role.name, place, step.seq)
        return step

    def _note_author(self, role: Role[Any, Any], step: Step) -> None:
        """Remember who wrote a draft that was accepted, be it a whole answer or a part of one."""
        if wrote(role, step):
            self._author = author_of(step)

    async def _written_by(self) -> str:
        """Who wrote what is handed over; from the record where that was heard in an earlier slice."""
        if self._author or self._fresh:
            return self._author or NO_MODEL
        roles = {role.name: role for role in self._roles}
        said = [s for kind in {r.kind for r in self._roles} for s in await self.recall(kind, MOST)]
        heard = [s for s in said if (role := roles.get(s.payload.get("role", ""))) and wrote(role, s)]
        return author_of(max(heard, key=lambda step: step.seq)) if heard else NO_MODEL

    async def _deliver(self, draft: ReportDraft, reason: StopReason, key: CallKey) -> Report:
        checked = await self.checked(draft, reason, key)
        await self._placing.know()
        last = self._placing.latest() if outcome_of(RunStatus.DONE, reason) in OWN_ACCORD else []

        async def store(connection: Connection, new: list[Step]) -> None:
            await checked.store(connection, new)
            if last:
                await turns.mark_done(connection, self._run.id, last)

        await self._recorder.append(checked.step, also=store)
        return checked.report

    async def checked(self, draft: ReportDraft, reason: StopReason, key: CallKey | None = None) -> Checked:
        """A draft with its quotes checked, and what belongs in the transaction that records it.

        `key` None: outside any node, for a run that ended before its own generator could write.
        """
        draft = ReportDraft.model_validate(without_secrets(draft.model_dump()))
        pieces = (await self._book()).all()
        text_of = await self._texts([pieces[id_].span for id_ in mentioned(draft) if id_ in pieces])
        report = check(draft, pieces, text_of, reason, await self._written_by())

        async def store(connection: Connection, new: list[Step]) -> None:
            await reports.insert(connection, self._recorder.fence, new[0].seq, report)

        return Checked(report, drafts.reported(report, key), store)

    async def _book(self) -> EvidenceBook:
        return await self._recorder.recollection.evidence()

    async def _texts(self, spans: Sequence[Span]) -> Callable[[Span], str]:
        """The stored text of these spans, read now. Empty for what is not there any more."""
        found = await texts_of(self._database, self._recorder.fence.tenant, spans) if spans else ()
        texts = {span: text or "" for span, text in zip(spans, found, strict=True)}
        return lambda span: texts.get(span, "")

    def _node(self, key: CallKey) -> trace.Span:
        """The span that calls under this key belong to."""
        return self.spans.at((key.superstep, key.path.partition(ASKED)[0])) if self.spans else trace.get_current_span()

    async def _doing(self, text: str) -> None:
        await self._viewers.doing(self._recorder.fence.tenant, self._run.id, redact(text))

    def _reading(self):
        return self._database.transaction(self._recorder.fence.tenant)


def _replayed(role: Role[Any, Output], step: Step) -> RoleReply[Output] | EngineFailure:
    payload = step.payload
    if step.kind is StepKind.FAILURE:
        return EngineFailure(FailureKind(payload["failure"]), payload["message"], stop=payload["stop"])
    prompt, completion = payload.get("used", (0, 0))
    return RoleReply(step.seq, role.output.model_validate(payload["output"]), (prompt, completion))
