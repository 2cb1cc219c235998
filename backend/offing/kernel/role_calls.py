"""Role calls: key, journal, budget, engine, check and one append, each passed once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from offing.core.model import Answer, Attempt, EngineChoice, EngineFailure, FailureKind
from offing.core.role_call import CallOrigin, rejections
from offing.core.step import Step, StepDraft, StepKind
from offing.core.token_checks import refuse_broken
from offing.core.trajectory import Fracture
from offing.kernel import drafts
from offing.kernel.budget import RunBudget
from offing.kernel.call_key import Call, CallKeys
from offing.kernel.journal import Journal
from offing.kernel.reports import ReportWriter
from offing.kernel.segment_tracker import SegmentTracker
from offing.kernel.store import Entry, LiveSink, RoleCallRecord
from offing.kernel.trace_spans import CallSpans, answered
from offing.models.engine import RoleRequest, engine_for
from offing.sdk import Role, RoleReply
from offing.sdk.advice import Advice, advised
from offing.sdk.values import Input, Output
from offing.telemetry.redaction import redact


class Engines(Protocol):
    """Answers the roles of a run."""

    def choice(self, role: str) -> EngineChoice:
        """Return which engine answers a role."""
        ...

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure: ...


@dataclass(frozen=True, slots=True)
class ConfiguredEngines:
    """The engines that a run's configuration names, by role."""

    choices: Mapping[str, EngineChoice]

    def choice(self, role: str) -> EngineChoice:
        return self.choices.get(role, EngineChoice())

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        engine = engine_for(request.choice)
        return engine if isinstance(engine, EngineFailure) else await engine.answer(request)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A role call that is not on record."""

    role: Role[Any, Any]
    given: Any
    choice: EngineChoice
    call: Call
    turn: int
    fracture: Fracture | None


class RoleCaller:
    """Makes the role calls of one claim.

    `own_turns`: each call is a turn, for graphs that count none. `excerpts`: of prompt libraries, by role.
    """

    def __init__(
        self,
        keys: CallKeys,
        journal: Journal,
        budget: RunBudget,
        segments: SegmentTracker,
        reports: ReportWriter,
        engines: Engines,
        spans: CallSpans,
        sink: LiveSink,
        *,
        seed: int,
        own_turns: bool,
        excerpts: Mapping[str, Advice],
        monotonic: Callable[[], float],
    ) -> None:
        self._keys, self._journal, self._budget, self._segments, self._reports = (
            keys,
            journal,
            budget,
            segments,
            reports,
        )
        self._engines, self._spans, self._sink = engines, spans, sink
        self._seed, self._own_turns = seed, own_turns
        self._excerpts, self._monotonic = excerpts, monotonic

    async def call(
        self, role: Role[Input, Output], given: Input, *, turn: int = 0, fracture: Fracture | None = None
    ) -> RoleReply[Output] | EngineFailure:
        """See `offing.sdk.RunContext.call`."""
        call = self._keys.next(role.name, given)
        if step := self._journal.take(call, frozenset({role.kind, StepKind.FAILURE})):
            self._journal.recorded.compare_prompt(role, given, step)
            self._reports.note_author(role, step)
            return reply_from_step(role, step)
        if self._own_turns and (reason := self._budget.begin_own_turn(call.key)):
            return EngineFailure(FailureKind.OUT_OF_BUDGET, "No room for another call.", stop=reason)
        self._journal.check_new(call)
        asked = _Asked(role, given, self._engines.choice(role.name), call, turn, fracture)
        if asked.choice.engine != "extractive":
            await self._journal.flush()  # a slow call must not hold back what is known already
            await self._segments.load()  # now, so that an answer that was paid for waits for nothing
        try:
            return await self._made(asked)
        except BaseException:
            self._journal.usage.give_up(call.key)
            raise

    async def _made(self, asked: _Asked) -> RoleReply[Any] | EngineFailure:
        role, choice, began = asked.role, asked.choice, self._monotonic()
        await self._sink.action(redact(f"{role.label or role.kind}: {choice.model or choice.engine}"))
        with self._spans.of_role(asked.call, role.name, choice, asked.turn) as opened:
            answer = await self._engines.answer(self._request(asked))
            answered(opened, answer)
        ms = int((self._monotonic() - began) * 1000)
        if isinstance(answer, EngineFailure):
            draft = drafts.failed(role, choice, answer, asked.call.key, asked.turn, ms)
            draft = self._journal.note_anew(asked.call, draft, answer.usage.usd)
            await self._append(asked, draft, answer.attempts)
            return answer
        draft = drafts.accepted(role, choice, answer, asked.call.key, asked.turn, ms)
        draft = self._journal.note_anew(asked.call, draft, answer.usage.usd)
        step = await self._append(asked, draft, answer.attempts, answer)
        self._reports.note_author(role, step)
        return RoleReply(step.seq, answer.output, (answer.usage.prompt_tokens, answer.usage.completion_tokens))  # pyright: ignore[reportUnknownVariableType]

    def _request(self, asked: _Asked) -> RoleRequest:
        role, call = asked.role, asked.call
        if advice := self._excerpts.get(role.name):
            role = advised(role, advice)
        meter, left = self._budget.meter(call.key), self._budget.seconds_left
        recall, place = self._segments.recall, call.seed_text
        return RoleRequest(role, asked.given, asked.choice, asked.turn, self._seed, meter, left, recall, place)

    async def _append(
        self, asked: _Asked, draft: StepDraft, attempts: Sequence[Attempt], answer: Answer | None = None
    ) -> Step:
        """Append a role call: an entry for each completion that could not be used, then its own."""
        role, rejected = asked.role.name, rejections(attempts)
        for sampled in (r.sampled.trace for r in rejected):
            refuse_broken(sampled, sampled.text)
        if answer is not None and answer.trace is not None:
            refuse_broken(answer.trace, answer.text)
        origin = CallOrigin(role, asked.choice.engine, asked.call.key.superstep)
        unusable = [
            Entry(
                drafts.unused(asked.role, asked.choice, one, asked.turn),
                RoleCallRecord(origin, one, self._segments.assign_rejected(role, one.sampled)),
            )
            for one in rejected
        ]
        position = self._segments.assign_position(role, answer, asked.fracture) if answer else None
        record = RoleCallRecord(origin, answer, position) if answer else None
        *_, step = await self._journal.append(*unusable, Entry(draft, record))
        self._segments.placed(role, position, step.seq)
        return step


def reply_from_step(role: Role[Any, Output], step: Step) -> RoleReply[Output] | EngineFailure:
    """Return what a recorded role call gave."""
    payload = step.payload
    if step.kind is StepKind.FAILURE:
        return EngineFailure(FailureKind(payload["failure"]), payload["message"], stop=payload["stop"])
    prompt, completion = payload.get("used", (0, 0))
    return RoleReply(step.seq, role.output.model_validate(payload["output"]), (prompt, completion))
