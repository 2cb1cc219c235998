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
from offing.core.model import Answer, Attempt, FailureKind, Message
from offing.core.role_call import CallOrigin, SegmentPosition
from offing.core.run import Fence, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.tokens import SpanKind, TextSpan, TokenTrace
from offing.core.trajectory import Fracture
from offing.core.usage import UsageDelta
from offing.services.runs import ended_step
from offing.storage import runs, steps, threads, turn_rows, turns
from offing.storage.pool import Database
from offing.storage.runs import Release
from tests.storage.builders import TERM, a_run

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Said(BaseModel):
    text: str


@dataclass
class A:
    """One turn as a test tells it. Its prompt goes on from the turn before, unless `fracture` says why not."""

    text: str
    adds: Sequence[int] = (7, 8, 9)
    """Prompt ids after those of the segment."""
    ids: bool = True
    """False: an engine that gives text only."""
    fracture: Fracture | None = None
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
class _Told:
    segment: int = -1
    place: int = -1
    ids: tuple[int, ...] = ()
    messages: tuple[Message, ...] = ()


@dataclass
class Teller:
    """Writes a run's turns through the store's own functions."""

    database: Database
    tenant: UUID
    fence: Fence
    told: _Told = field(default_factory=_Told)
    seqs: list[int] = field(default_factory=list[int])

    async def tell(self, a: A) -> int:
        begins = self.told.segment < 0 or a.fracture is not None
        before = _Told(self.told.segment) if begins else self.told
        prompt = (*before.ids, *a.adds)
        messages = (*before.messages, Message("user", (f"observation {len(self.seqs)}",)))
        trace = trace_of(a.text, prompt) if a.ids else None
        place = SegmentPosition(
            before.segment + 1 if begins else before.segment,
            0 if begins else before.place + 1,
            (a.fracture or Fracture.ROOT) if begins else None,
            before.segment if begins and before.segment >= 0 else None,
            None,
            len(before.messages),
            len(before.ids),
        )
        failed = Attempt(FailureKind.INVALID_OUTPUT, "not JSON", text="a failed attempt")
        answer = Answer(
            Said(text=a.text), a.text, "tiny", messages, {"temperature": 1.0, "top_p": 1.0}, attempts=(failed,),
            trace=trace, spans=(TextSpan(SpanKind.ACTION, 0, min(3, len(a.text))),),
        )  # fmt: skip
        number = a.number or len(self.seqs) + 1
        draft = StepDraft(StepKind.TURN, a.text, {"role": a.role, "output": {"text": a.text}}, turn=number)
        async with self.database.transaction(self.tenant) as connection:
            (step,) = await steps.append(connection, self.fence, TERM, [draft], UsageDelta())
            row = turns.turn_of(step.seq, CallOrigin(a.role, "policy", number), answer, place)
            await turn_rows.insert(connection, self.fence, [row])
            if a.tool:
                await steps.append(connection, self.fence, TERM, [a_tool(number)], UsageDelta())
        self.seqs.append(step.seq)
        said = Message("assistant", (a.text,), turn=step.seq)
        end = (*prompt, *(trace.completion_ids if trace else ()))
        self.told = _Told(place.segment, place.place, end, (*messages, said))
        return step.seq


def a_tool(number: int) -> StepDraft:
    payload: dict[str, Any] = {
        "tool": "look_up", "args": {"entity": "e1"}, "content": {"values": ["e2"]}, "status": "ok", "message": "",
        "rule": "allow", "spans": [],
    }  # fmt: skip
    return StepDraft(StepKind.TOOL, "looked up", payload, turn=number)


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
            owner.execute("insert into batch (id, tenant_id, request) values (%s, %s, '{}')", (batch, self.tenant))
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
                "size, seed, attempts, tags, state) values (%s, %s, %s, %s, 'counting', '1', '{}', '[]', %s, 7, 2, %s, "
                "'complete')",
                (group, self.tenant, batch, task, size, list(tags)),
            )
        return group

    async def rollout(
        self,
        *told: A,
        group: UUID | None = None,
        member: int = 0,
        outcome: str | None = "answered",
        reward: float | None = 1.0,
        minutes: int = 0,
        settled: bool = True,
        graph: str = "counting",
        kind: str = "rollout",
    ) -> UUID:
        """A finished run; final so many minutes after `LONG_AGO`."""
        teller = await self.begun(graph, kind)
        for one in told or (A("yes"),):
            await teller.tell(one)
        await self.ended(teller.fence)
        at = LONG_AGO + timedelta(minutes=minutes)
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute("update app.run set ended_at = %s where id = %s", (at, teller.fence.run))
            if kind == "rollout":
                owner.execute(
                    "insert into app.rollout (run_id, group_id, tenant_id, member, outcome, reward, settled_at) "
                    "values (%s, %s, %s, %s, %s, %s, %s)",
                    (teller.fence.run, group or self.group(), self.tenant, member, outcome, reward,
                     at if settled else None),
                )  # fmt: skip
        return teller.fence.run

    async def begun(self, graph: str = "counting", kind: str = "rollout") -> Teller:
        new = a_run(graph=graph, kind=kind)
        async with self.database.transaction(self.tenant) as connection:
            await threads.insert(connection, self.tenant, new.thread, "thread")
            await runs.insert(connection, self.tenant, new)
            await steps.append_unowned(connection, new.id, [StepDraft(StepKind.QUEUED, new.question)])
        claim = await runs.claim(self.database, new.id, "worker", TERM)
        assert claim is not None
        return Teller(self.database, self.tenant, claim.fence)

    async def ended(self, fence: Fence) -> None:
        async with self.database.transaction(self.tenant) as connection:
            end = ended_step(RunStatus.DONE, StopReason.ANSWERED)
            await steps.append(connection, fence, TERM, [end], UsageDelta())
            await runs.hand_back(connection, fence, Release(RunStatus.DONE, StopReason.ANSWERED))

    def score(self, run: UUID, scorer: str, value: float | None, *, failure: str = "", version: int = 1) -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute(
                "insert into app.reward (id, tenant_id, run_id, target, scorer, version, value, failure) "
                "values (%s, %s, %s, 'run', %s, %s, %s, %s)",
                (new_id(), self.tenant, run, scorer, version, value, failure),
            )

    def quarantine(self, run: UUID, place: int, why: str = "other log-probabilities") -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            owner.execute("update app.turn set quarantine = %s where run_id = %s and place = %s", (why, run, place))
