"""Forks as rows: a new run with the first steps of another, and everything that was stored beside those.

The only home of which rows belong to a run up to a step. What a fork may be is decided by the caller, who holds the
origin's row, so that all statements see it as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.model import EngineChoice
from offing.core.run import Budget, Spent
from offing.core.step import Step
from offing.storage import runs
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing.storage.steps import COLUMNS as STEP_COLUMNS
from offing.storage.steps import step_of

HELD = f"select {runs.COLUMNS}, policy_given from run where id = %s for share"
"""Appends update the run's row, so none of them comes between the statements of a fork."""

OF_KIND_AFTER = f"select {STEP_COLUMNS} from step where run_id = %s and seq > %s and kind = %s order by seq"

FIRST_OF_ENDING = """
    select min(seq) from step e
     where run_id = %(run)s and kind in ('ended', 'report') and superstep is null
       and not exists (select from step s where s.run_id = e.run_id and s.seq > e.seq
                          and (s.superstep is not null or s.kind not in ('ended', 'report')))
"""
"""The steps with which no call of the graph has to do: the run's end, and the report that it was given by its ending.
Null: it has not ended."""

FIRST = """
    select (payload->>'run')::uuid from step
     where run_id = %s and kind = 'resumed' and payload->>'after' = 'fork' order by seq limit 1
"""

LACKS_STATE = """
    select (select min(superstep) from step where run_id = %(origin)s and seq <= %(at)s) > 1
       and exists (select from app.thread_line(%(source)s) as line
                     join run e on e.thread_id = line.thread_id and e.created_at < least(line.before, %(created_at)s)
                    where e.durability = 'sync' and e.started_at is not null)
       and not exists (select from checkpoint c join step s on s.run_id = %(origin)s and s.seq = %(at)s
                        where c.thread_id = %(source)s and c.ns = '' and c.created_at <= s.at)
"""
"""Whether the run began from the state of an earlier one of its thread that is not kept any more, nor a later one. The
first nodes after a state that there was before are those of a later superstep than the first."""

USED = """
    select coalesce(max(s.turn), 0),
           count(*) filter (where s.superstep is not null and jsonb_exists(s.payload, 'role')),
           coalesce(sum((s.payload->'spent'->>'turns')::integer), 0)::integer,
           coalesce(sum(s.tokens + coalesce((s.payload->'spent'->>'tokens')::bigint, 0)), 0)::bigint,
           coalesce(sum(coalesce(t.usd, 0) + coalesce((s.payload->'usage'->>'usd')::numeric, 0)
                        + coalesce((s.payload->'spent'->>'usd')::numeric, 0)), 0),
           coalesce(sum(coalesce(s.ms, 0) / 1000.0 + coalesce((s.payload->'spent'->>'seconds')::float8, 0)), 0)::float8
      from step s left join turn t using (run_id, seq)
     where s.run_id = %s and s.seq <= %s
"""
"""Turns by the numbers that steps have, or by role calls where each is one, and what the steps cost."""

INSERT_RUN = f"""
    insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, policy, policy_sha256, budget,
                     policy_given, scope, seed, idempotency_key, request_sha256, traceparent, kind, durability, status,
                     fence, next_seq, progress_seq, turns, tokens, usd, work_seconds, forked_from, forked_at,
                     forked_kind, forked_spent)
    select %(id)s, tenant_id, %(thread)s, graph, %(graph_version)s, question, %(engines)s, %(policy)s,
           %(policy_sha256)s, %(budget)s, policy_given, scope, seed, %(idempotency_key)s, %(request_sha256)s,
           %(traceparent)s, 'ask',
           'sync', 'queued', greatest(fence, 1), %(at)s + 1, %(at)s, %(turns)s, %(tokens)s, %(usd)s, %(seconds)s, id,
           %(at)s, coalesce(forked_kind, kind), %(spent)s
      from run where id = %(origin)s
    returning {runs.COLUMNS}
"""
"""Its claims have higher numbers than those of its origin, so that none is taken for a run's first."""

STEPS = """
    insert into step (run_id, seq, tenant_id, fence, kind, label, title, detail, ok, ms, tokens, turn, superstep, path,
                      ordinal, digest, payload, at)
    select %(id)s, seq, tenant_id, fence, kind, label, title, detail, ok, ms, tokens, turn, superstep, path, ordinal,
           digest, payload, at
      from step where run_id = %(origin)s and seq <= %(at)s
"""

INTENTS = """
    insert into intent (run_id, superstep, path, ordinal, digest, tenant_id, fence, tool, args, effect, started_at)
    select %(id)s, i.superstep, i.path, i.ordinal, i.digest, i.tenant_id, i.fence, i.tool, i.args, i.effect,
           i.started_at
      from intent i join step s using (run_id, superstep, path, ordinal, digest)
     where i.run_id = %(origin)s and s.seq <= %(at)s
"""
"""Of the effects that are on record. One without a result is the origin's: the fork declares its own."""

SEGMENTS = """
    insert into segment (run_id, idx, tenant_id, role, parent_idx, parent_tokens, fracture)
    select %(id)s, idx, tenant_id, role, parent_idx, parent_tokens, fracture
      from segment s
     where run_id = %(origin)s
       and exists (select from turn t where t.run_id = s.run_id and t.segment = s.idx and t.seq <= %(at)s)
"""

TURNS = """
    insert into turn (run_id, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens,
                      completion_tokens, usd, priced, failed_attempts, trainable, trainable_reason, segment, place,
                      prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, mask, policy,
                      policy_version_id, weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish,
                      checkpoint_id, state_key, action_key, quarantine, accepted, attempt, problem)
    select %(id)s, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens, completion_tokens,
           usd, priced, failed_attempts, 'none', 'it was made in the run that this one is a fork of', segment, place,
           prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, mask, policy, policy_version_id,
           weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish,
           (select checkpoint_id from checkpoint c
             where c.thread_id = %(thread)s and c.ns = '' and c.checkpoint_id = turn.checkpoint_id),
           state_key, action_key, quarantine, accepted, attempt, problem
      from turn where run_id = %(origin)s and seq <= %(at)s
"""
"""Context of what the fork says itself, and not to be trained on a second time."""

SPANS = """
    insert into span (run_id, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token)
    select %(id)s, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token
      from span where run_id = %(origin)s and seq <= %(at)s
"""

REPORTS = """
    insert into report (run_id, version, tenant_id, seq, status, reason, body, created_at)
    select %(id)s, version, tenant_id, seq, status, reason, body, created_at
      from report where run_id = %(origin)s and seq <= %(at)s
"""

CITATIONS = """
    insert into citation (run_id, version, number, tenant_id, artefact_id, source_id, start_at, end_at, quote, title)
    select %(id)s, c.version, c.number, c.tenant_id, c.artefact_id, c.source_id, c.start_at, c.end_at, c.quote, c.title
      from citation c join report r using (run_id, version) where c.run_id = %(origin)s and r.seq <= %(at)s
"""

QUESTIONS = """
    insert into question (run_id, seq, tenant_id, interrupt_id, kind, asked_at, due_at, answered_at, answer, answerer,
                          answered_by, taken_seq)
    select %(id)s, q.seq, q.tenant_id, q.interrupt_id, q.kind,
           case when k.known then q.asked_at else clock_timestamp() end,
           case when k.known then q.due_at else clock_timestamp() + (q.due_at - q.asked_at) end,
           case when k.known then q.answered_at end, case when k.known then q.answer end,
           case when k.known then q.answerer end, case when k.known then q.answered_by else '' end,
           case when k.known then q.taken_seq end
      from question q cross join lateral (select coalesce(q.taken_seq <= %(at)s, false) as known) as k
     where q.run_id = %(origin)s and q.seq <= %(at)s
"""
"""A question whose answer the copied steps do not have is put to people again."""

FILES = """
    insert into run_file (run_id, sha256, name, tenant_id, media_type, body, created_at)
    select %(id)s, f.sha256, f.name, f.tenant_id, f.media_type, f.body, f.created_at
      from run_file f
     where f.run_id = %(origin)s
       and f.created_at <= (select at from step where run_id = %(origin)s and seq = %(at)s)
"""

CHECKPOINTS = """
    with until as (
      select case when kind = 'question' and superstep is null
                  then coalesce((select min(n.at) from step n
                                  where n.run_id = %(origin)s and n.seq > %(at)s
                                    and (n.kind <> 'question' or n.superstep is not null)), 'infinity')
                  else at end as at
        from step where run_id = %(origin)s and seq = %(at)s),
    mine as (
      select c.* from checkpoint c, until where c.thread_id = %(source)s and c.created_at <= until.at),
    copied_values as (
      insert into checkpoint_value (thread_id, ns, channel, version, tenant_id, base_version, type, items, body)
      select %(thread)s, v.ns, v.channel, v.version, v.tenant_id, v.base_version, v.type, v.items, v.body
        from checkpoint_value v where v.thread_id = %(source)s and exists (select from mine where mine.ns = v.ns)),
    copied_writes as (
      insert into checkpoint_write (thread_id, ns, checkpoint_id, task_id, idx, tenant_id, run_id, task_path, channel,
                                    type, body)
      select %(thread)s, w.ns, w.checkpoint_id, w.task_id, w.idx, w.tenant_id,
             case when w.run_id = %(origin)s then %(id)s else w.run_id end, w.task_path, w.channel, w.type, w.body
        from checkpoint_write w
       where w.thread_id = %(source)s
         and exists (select from mine where mine.ns = w.ns and mine.parent_id = w.checkpoint_id
                        and w.channel = any(mine.delta)))
    insert into checkpoint (thread_id, ns, checkpoint_id, parent_id, tenant_id, run_id, fence, superstep, turn, body,
                            metadata, channels, versions, delta, created_at)
    select %(thread)s, ns, checkpoint_id, parent_id, tenant_id,
           case when run_id = %(origin)s then %(id)s else run_id end, fence, superstep, turn, body, metadata, channels,
           versions, delta, created_at
      from mine order by nth
"""
"""Those that were stored when the step was, of earlier runs of the thread, too. A graph's own interrupt is asked for
after its checkpoint, whose superstep a later step goes on with. What tasks wrote is copied where a channel is rebuilt
from it; all other tasks run again and read their calls back."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The run that is forked, held until the transaction ends."""

    run: RunRow
    policy_given: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class NewFork:
    """What a fork has of its own, or keeps of its origin up to `at`."""

    id: UUID
    thread: UUID
    at: int
    graph_version: str
    engines: Mapping[str, EngineChoice]
    policy: Mapping[str, Any]
    policy_sha256: str
    budget: Budget
    spent: Spent
    """What the copied steps have used."""
    idempotency_key: str | None = None
    request_sha256: str | None = None
    traceparent: str | None = None


async def held(connection: Connection, run: UUID) -> Origin:
    """Raises NotFound."""
    row = await (await connection.execute(HELD, (run,))).fetchone()
    if row is None:
        raise NotFound("run", str(run))
    return Origin(runs.run_of(row[:-1]), row[-1])


async def first(connection: Connection, run: RunRow) -> UUID | None:
    """The run in which a fork's first steps were made, also where that is gone. None: it is no fork."""
    if run.forked_at is None:
        return None
    row = await (await connection.execute(FIRST, (run.id,))).fetchone()
    return row[0] if row else None


async def last_before_end(connection: Connection, origin: RunRow) -> int:
    """The last step that a fork can have."""
    row = await (await connection.execute(FIRST_OF_ENDING, {"run": origin.id})).fetchone()
    return origin.last_seq if row is None or row[0] is None else row[0] - 1


async def lacks_state(connection: Connection, origin: RunRow, at: int) -> bool:
    """Whether supersteps would be counted from another one than in the origin, so that calls were not found again."""
    given = {"source": origin.thread, "created_at": origin.created_at, "origin": origin.id, "at": at}
    row = await (await connection.execute(LACKS_STATE, given)).fetchone()
    return bool(row and row[0])


async def of_kind_after(connection: Connection, run: UUID, seq: int, kind: str) -> list[Step]:
    """All steps of a kind after `seq`."""
    return [step_of(row) for row in await (await connection.execute(OF_KIND_AFTER, (run, seq, kind))).fetchall()]


async def used(connection: Connection, origin: RunRow, at: int, *, each_call_is_a_turn: bool) -> Spent:
    """What the steps up to `at` have used, and never more than the run."""
    row = await (await connection.execute(USED, (origin.id, at))).fetchone()
    assert row is not None
    numbered, calls, theirs, tokens, usd, seconds = row
    turns, whole = (calls if each_call_is_a_turn else numbered) + theirs, origin.spent
    return Spent(min(turns, whole.turns), min(tokens, whole.tokens), min(usd, whole.usd), min(seconds, whole.seconds))


async def insert(connection: Connection, origin: RunRow, new: NewFork) -> RunRow:
    """Store the fork with everything that it has of its origin. Its thread is there already."""
    given = _parameters(origin, new)
    row = await (await connection.execute(INSERT_RUN, given)).fetchone()
    for statement in (STEPS, INTENTS, CHECKPOINTS, SEGMENTS, TURNS, SPANS, REPORTS, CITATIONS, QUESTIONS, FILES):
        await connection.execute(statement, given)
    return runs.run_of(row)


def _parameters(origin: RunRow, new: NewFork) -> dict[str, Any]:
    spent = new.spent
    figures = {"turns": spent.turns, "tokens": spent.tokens, "usd": str(spent.usd), "seconds": spent.seconds}
    return {
        "id": new.id,
        "origin": origin.id,
        "source": origin.thread,
        "thread": new.thread,
        "at": new.at,
        "graph_version": new.graph_version,
        "engines": _jsonb({role: choice.model_dump() for role, choice in new.engines.items()}),
        "policy": _jsonb(new.policy),
        "policy_sha256": new.policy_sha256,
        "budget": _jsonb(runs.budget_json(new.budget)),
        **figures,
        "usd": Decimal(spent.usd),
        "spent": _jsonb(figures),
        "idempotency_key": new.idempotency_key,
        "request_sha256": new.request_sha256,
        "traceparent": new.traceparent,
    }


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
