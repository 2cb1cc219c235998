"""Finished rollouts as the collector leaves them, in tables of their own; a test states only what matters to it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb
from pydantic import BaseModel

from offing.clock import new_id
from offing.core.model import EngineResponse, FailedAttempt, FailureKind, Message
from offing.core.role_call import CallOrigin, SegmentPosition
from offing.core.run import FencingToken, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.tokens import CompletionSpan, SpanKind, TokenTrace
from offing.core.trajectory import BoundaryReason
from offing.core.usage import UsageDelta
from offing.services.runs import draft_end_step
from offing.storage import claims, role_calls, runs, steps, threads
from offing.storage.claims import Release
from offing.storage.pool import Database
from tests.storage.builders import TERM, a_run

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class SpeakerOutput(BaseModel):
    text: str


@dataclass
class A:
    """One turn as a test tells it. Its prompt continues from the turn before, unless `boundary_reason` says why not."""

    text: str
    adds: Sequence[int] = (7, 8, 9)
    """Prompt ids after those of the segment."""
    ids: bool = True
    """False: an engine that gives text only."""
    boundary_reason: BoundaryReason | None = None
    role: str = "planner"
    number: int = 0
    tool: bool = False
    """Followed by a tool call."""


def trace_of(text: str, prompt: Sequence[int], policy: str = "planner@1") -> TokenTrace:
    """One id a byte, log-probabilities that tell places apart, and an end of turn that decodes to nothing."""
    pieces = (*(bytes([b]) for b in text.encode()), b"")
    ids = (*(100 + b for b in text.encode()), 2)
    probabilities = tuple(-(n + 1) / 16 for n in range(len(ids)))
    return TokenTrace(
        tuple(prompt), ids, probabilities, pieces, policy, "stop",
        tuple((n + 1) / 8 for n in range(len(ids))), "w" * 8, "tok", "template", "offing 1",
    )  # fmt: skip


@dataclass
class _SegmentEnd:
    segment: int = -1
    place: int = -1
    ids: tuple[int, ...] = ()
    messages: tuple[Message, ...] = ()


@dataclass
class RoleCallWriter:
    """Writes a run's turns through the store's own functions."""

    database: Database
    tenant: UUID
    fence: FencingToken
    segment_end: _SegmentEnd = field(default_factory=_SegmentEnd)
    seqs: list[int] = field(default_factory=list[int])

    async def tell(self, a: A) -> int:
        begins = self.segment_end.segment < 0 or a.boundary_reason is not None
        before = _SegmentEnd(self.segment_end.segment) if begins else self.segment_end
        prompt = (*before.ids, *a.adds)
        messages = (*before.messages, Message("user", (f"observation {len(self.seqs)}",)))
        trace = trace_of(a.text, prompt) if a.ids else None
        position = SegmentPosition(
            before.segment + 1 if begins else before.segment,
            0 if begins else before.place + 1,
            (a.boundary_reason or BoundaryReason.ROOT) if begins else None,
            before.segment if begins and before.segment >= 0 else None,
            None,
            len(before.messages),
            len(before.ids),
        )
        failed = FailedAttempt(FailureKind.INVALID_OUTPUT, "not JSON", text="a failed attempt")
        answer = EngineResponse(
            SpeakerOutput(text=a.text), a.text, "tiny", messages, {"temperature": 1.0, "top_p": 1.0},
            attempts=(failed,), trace=trace, spans=(CompletionSpan(SpanKind.ACTION, 0, min(3, len(a.text))),),
        )  # fmt: skip
        number = a.number or len(self.seqs) + 1
        draft = StepDraft(StepKind.ROLE_CALL, a.text, {"role": a.role, "output": {"text": a.text}}, turn=number)
        async with self.database.transaction(self.tenant) as connection:
            (step,) = await steps.append_steps(connection, self.fence, TERM, [draft], UsageDelta())
            row = role_calls.build_role_call_row(step.seq, CallOrigin(a.role, "policy", number), answer, position)
            await role_calls.insert_role_calls(connection, self.fence, [row])
            if a.tool:
                await steps.append_steps(connection, self.fence, TERM, [a_tool(number)], UsageDelta())
        self.seqs.append(step.seq)
        text = Message("assistant", (a.text,), turn=step.seq)
        end = (*prompt, *(trace.completion_ids if trace else ()))
        self.segment_end = _SegmentEnd(position.segment_idx, position.position, end, (*messages, text))
        return step.seq


def a_tool(number: int) -> StepDraft:
    payload: dict[str, Any] = {
        "tool": "look_up", "args": {"entity": "e1"}, "content": {"values": ["e2"]}, "status": "ok", "message": "",
        "rule": "allow", "spans": [],
    }  # fmt: skip
    return StepDraft(StepKind.TOOL_RESULT, "looked up", payload, turn=number)


@dataclass
class Collected:
    """A tenant's rollouts, written by the owner where the collector would write."""

    database: Database
    tenant: UUID
    owner_url: str

    def group(
        self,
        *,
        size: int = 2,
        tags: Sequence[str] = (),
        question: str = "Who?",
        answers: Sequence[str] | None = ("e2",),
    ) -> UUID:
        """`answers` None: nothing is known to be right."""
        batch, task, group = new_id(), new_id(), new_id()
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute("set search_path = app")
            owner.execute(
                "insert into rollout_batch (id, tenant_id, request) values (%s, %s, '{}')", (batch, self.tenant)
            )
            owner.execute(
                "insert into task (id, tenant_id, dataset, split, name, question, content_sha256) values "
                "(%s, %s, 'world', 'train', 'q1', %s, %s)",
                (task, self.tenant, question, task.hex),
            )
            if answers is not None:
                owner.execute(
                    "insert into task_reference (task_id, tenant_id, answers) values (%s, %s, %s)",
                    (task, self.tenant, Jsonb(list(answers))),
                )
            owner.execute(
                "insert into rollout_group (id, tenant_id, batch_id, task_id, graph, graph_version, engines, scorers, "
                "size, seed, max_attempts, tags, state) values (%s, %s, %s, %s, 'counting', '1', '{}', '[]', %s, 7, 2, "
                "%s, 'complete')",
                (group, self.tenant, batch, task, size, list(tags)),
            )
        return group

    async def rollout(
        self,
        *message: A,
        group_id: UUID | None = None,
        member: int = 0,
        outcome: str | None = "answered",
        reward: float | None = 1.0,
        minutes: int = 0,
        settled: bool = True,
        graph: str = "counting",
        kind: str = "rollout",
    ) -> UUID:
        """A finished run, finalized this number of minutes after `LONG_AGO`."""
        teller = await self.begun(graph, kind)
        for one in message or (A("yes"),):
            await teller.tell(one)
        await self.ended(teller.fence)
        at = LONG_AGO + timedelta(minutes=minutes)
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute("update app.run set ended_at = %s where id = %s", (at, teller.fence.run_id))
            if kind == "rollout":
                owner.execute(
                    "insert into app.rollout (run_id, group_id, tenant_id, member, outcome, reward, finalized_at) "
                    "values (%s, %s, %s, %s, %s, %s, %s)",
                    (teller.fence.run_id, group_id or self.group(), self.tenant, member, outcome, reward,
                     at if settled else None),
                )  # fmt: skip
        return teller.fence.run_id

    async def begun(self, graph: str = "counting", kind: str = "rollout") -> RoleCallWriter:
        new = a_run(graph=graph, kind=kind)
        async with self.database.transaction(self.tenant) as connection:
            await threads.insert_thread(connection, self.tenant, new.thread_id, "thread")
            await runs.insert_run(connection, self.tenant, new)
            await steps.append_external(connection, new.id, [StepDraft(StepKind.QUEUED, new.question)])
        claim = await claims.claim_run(self.database, new.id, "worker", TERM)
        assert claim is not None
        return RoleCallWriter(self.database, self.tenant, claim.fence)

    async def ended(self, fence: FencingToken) -> None:
        async with self.database.transaction(self.tenant) as connection:
            end = draft_end_step(RunStatus.DONE, StopReason.ANSWERED)
            await steps.append_steps(connection, fence, TERM, [end], UsageDelta())
            await claims.release_run(connection, fence, Release(RunStatus.DONE, StopReason.ANSWERED))

    def score(self, run_id: UUID, scorer: str, value: float | None, *, failure: str = "", version: int = 1) -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "insert into app.reward (id, tenant_id, run_id, target, scorer, version, value, failure) "
                "values (%s, %s, %s, 'run', %s, %s, %s, %s)",
                (new_id(), self.tenant, run_id, scorer, version, value, failure),
            )

    def quarantine(self, run_id: UUID, position: int, why: str = "other log-probabilities") -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "update app.role_call set quarantine = %s where run_id = %s and position = %s", (why, run_id, position)
            )
