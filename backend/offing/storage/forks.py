"""Forks as rows.

A fork is a new run with the first steps of another run and everything stored with those steps.
This module defines which rows belong to a run up to a step. The caller decides what may be
forked and locks the origin's row, so that all statements see the same state of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.model import EngineConfig, engine_to_json
from offing.core.run import Budget, RunUsage
from offing.core.step import Step
from offing.storage import runs
from offing.storage.pool import Connection
from offing.storage.runs import RunRow
from offing.storage.steps import COLUMNS as STEP_COLUMNS
from offing.storage.steps import step_from_row

LOCK_ORIGIN = f"select {runs.COLUMNS}, requested_tool_policy from run where id = %s for share"
"""Appends update the row of the run, so none can happen between the statements of a fork."""

LIST_STEPS_OF_KIND = f"select {STEP_COLUMNS} from step where run_id = %s and seq > %s and kind = %s order by seq"

GET_FIRST_ENDING_SEQ = """
    select min(seq) from step e
     where run_id = %(run)s and kind in ('ended', 'report') and superstep is null
       and not exists (select from step s where s.run_id = e.run_id and s.seq > e.seq
                          and (s.superstep is not null or s.kind not in ('ended', 'report')))
"""
"""First step of the ending, which no call of the graph produced: the end of the run and the report
written at the end. Null if the run has not ended.
"""

FIND_FIRST_RUN = """
    select (payload->>'run')::uuid from step
     where run_id = %s and kind = 'resumed' and payload->>'after' = 'fork' order by seq limit 1
"""

HAS_MISSING_STATE = """
    select (select min(superstep) from step where run_id = %(origin)s and seq <= %(at)s) > 1
       and exists (select from app.thread_lineage(%(source)s) as line
                     join run e on e.thread_id = line.thread_id and e.created_at < least(line.visible_before,
                     %(created_at)s)
                    where e.durability = 'sync' and e.started_at is not null)
       and not exists (select from checkpoint c join step s on s.run_id = %(origin)s and s.seq = %(at)s
                        where c.thread_id = %(source)s and c.ns = '' and c.created_at <= s.at)
"""
"""Whether the run began from the state of an earlier run of its thread, and neither that state nor
a later one is still stored. The first nodes after such a state belong to a superstep later than
the first.
"""

GET_COPIED_USAGE = """
    select coalesce(max(s.turn), 0),
           count(*) filter (where s.superstep is not null and jsonb_exists(s.payload, 'role')),
           coalesce(sum((s.payload->'child_usage'->>'turns')::integer), 0)::integer,
           coalesce(sum(s.tokens + coalesce((s.payload->'child_usage'->>'tokens')::bigint, 0)), 0)::bigint,
           coalesce(sum(coalesce(t.cost_usd, 0) + coalesce((s.payload->'usage'->>'cost_usd')::numeric, 0)
                        + coalesce((s.payload->'child_usage'->>'cost_usd')::numeric, 0)), 0),
           coalesce(sum(coalesce(s.ms, 0) / 1000.0
                        + coalesce((s.payload->'child_usage'->>'seconds')::float8, 0)), 0)::float8
      from step s left join role_call t using (run_id, seq)
     where s.run_id = %s and s.seq <= %s
"""
"""Turns, counted by the numbers of the steps or by role calls if each role call is a turn, and the
cost of the steps.
"""

INSERT_RUN = f"""
    insert into run (id, tenant_id, thread_id, graph, graph_version, question, engines, tool_policy,
                     tool_policy_sha256, budget,
                     requested_tool_policy, report_style, scope, seed, idempotency_key, request_sha256,
                     traceparent, kind,
                     durability, status,
                     fence, next_seq, progress_seq, turns, tokens, cost_usd, work_seconds, forked_from_id,
                     forked_at_seq,
                     forked_kind, forked_usage, follow_up, interactions, protocol)
    select %(id)s, tenant_id, %(thread)s, graph, %(graph_version)s, question, %(engines)s, %(policy)s,
           %(policy_sha256)s, %(budget)s, requested_tool_policy, report_style, scope, seed, %(idempotency_key)s,
           %(request_sha256)s, %(traceparent)s, 'interactive',
           'sync', 'queued', greatest(fence, 1), %(at)s + 1, %(at)s, %(turns)s, %(tokens)s,
           %(cost_usd)s, %(seconds)s, id,
           %(at)s, coalesce(forked_kind, kind), %(usage)s, follow_up, interactions, protocol
      from run where id = %(origin)s
    returning {runs.COLUMNS}
"""
"""Claims of the fork have higher fencing tokens than those of its origin, so none is taken for the
first claim of a run.
"""

COPY_LANGGRAPH_RUN = """
    insert into langgraph_run (run_id, tenant_id, assistant_id, metadata, multitask, arguments)
    select %(id)s, tenant_id, assistant_id, metadata, multitask, arguments from langgraph_run where run_id = %(origin)s
"""
"""The thread of a fork is kept, even if the origin's is deleted with its end."""

COPY_STEPS = """
    insert into step (run_id, seq, tenant_id, fence, kind, label, title, detail, ok, ms, tokens, turn, superstep, path,
                      ordinal, digest, node, payload, at)
    select %(id)s, seq, tenant_id, fence, kind, label, title, detail, ok, ms, tokens, turn, superstep, path, ordinal,
           digest, node, payload, at
      from step where run_id = %(origin)s and seq <= %(at)s
"""

COPY_INTENTS = """
    insert into intent (run_id, superstep, path, ordinal, digest, tenant_id, fence, tool, args, side_effect, started_at)
    select %(id)s, i.superstep, i.path, i.ordinal, i.digest, i.tenant_id, i.fence, i.tool, i.args, i.side_effect,
           i.started_at
      from intent i join step s using (run_id, superstep, path, ordinal, digest)
     where i.run_id = %(origin)s and s.seq <= %(at)s
"""
"""Intents of side effects that have a result. One without a result belongs to the origin; the fork
declares another one.
"""

COPY_SEGMENTS = """
    insert into segment (run_id, idx, tenant_id, role, parent_idx, parent_tokens, boundary_reason)
    select %(id)s, idx, tenant_id, role, parent_idx, parent_tokens, boundary_reason
      from segment s
     where run_id = %(origin)s
       and exists (select from role_call t where t.run_id = s.run_id and t.segment_idx = s.idx and t.seq <= %(at)s)
"""

COPY_ROLE_CALLS = """
    insert into role_call (run_id, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens,
                      completion_tokens, cached_prompt_tokens, reasoning_tokens, cost_usd, priced, failed_attempts,
                      trainable, trainable_reason, segment_idx,
                      position,
                      prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, loss_mask, policy,
                      policy_version_id, weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish_reason,
                      checkpoint_id, state_key, action_key, quarantine, is_accepted, attempt, problem)
    select %(id)s, seq, tenant_id, role, engine, model, prompt, completion, sampling, prompt_tokens, completion_tokens,
           cached_prompt_tokens, reasoning_tokens, cost_usd, priced, failed_attempts, 'none',
           'it was made in the run that this one is a fork of',
           segment_idx, position,
           prompt_kept, prompt_offset, prompt_ids, completion_ids, logprobs, entropy, loss_mask, policy,
           policy_version_id,
           weights_sha256, tokenizer_sha256, template_sha256, engine_build, finish_reason,
           (select checkpoint_id from checkpoint c
             where c.thread_id = %(thread)s and c.ns = '' and c.checkpoint_id = role_call.checkpoint_id),
           state_key, action_key, quarantine, is_accepted, attempt, problem
      from role_call where run_id = %(origin)s and seq <= %(at)s
"""
"""Context for the fork's own role calls. The copies are not trained on a second time."""

COPY_SPANS = """
    insert into completion_span (run_id, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token)
    select %(id)s, seq, nth, tenant_id, kind, start_char, end_char, start_token, end_token
      from completion_span where run_id = %(origin)s and seq <= %(at)s
"""

COPY_REPORTS = """
    insert into report (run_id, version, tenant_id, seq, status, stop_reason, body, created_at)
    select %(id)s, version, tenant_id, seq, status, stop_reason, body, created_at
      from report where run_id = %(origin)s and seq <= %(at)s and edited_by is null
"""

COPY_CITATIONS = """
    insert into citation (run_id, report_version, number, tenant_id, text_id, source_id, start_char, end_char, quote,
                          title)
    select %(id)s, c.report_version, c.number, c.tenant_id, c.text_id, c.source_id, c.start_char, c.end_char, c.quote,
           c.title
      from citation c join report r on r.run_id = c.run_id and r.version = c.report_version
     where c.run_id = %(origin)s and r.seq <= %(at)s and r.edited_by is null
"""

COPY_INPUT_REQUESTS = """
    insert into input_request (run_id, seq, tenant_id, interrupt_id, kind, requested_at, default_at, responded_at,
                               response, responder,
                          responded_by, consumed_seq)
    select %(id)s, q.seq, q.tenant_id, q.interrupt_id, q.kind,
           case when k.known then q.requested_at else clock_timestamp() end,
           case when k.known then q.default_at else clock_timestamp() + (q.default_at - q.requested_at) end,
           case when k.known then q.responded_at end, case when k.known then q.response end,
           case when k.known then q.responder end, case when k.known then q.responded_by else '' end,
           case when k.known then q.consumed_seq end
      from input_request q cross join lateral (select coalesce(q.consumed_seq <= %(at)s, false) as known) as k
     where q.run_id = %(origin)s and q.seq <= %(at)s
"""
"""An input request whose response is not among the copied steps is made again."""

COPY_FILES = """
    insert into run_file (run_id, sha256, name, tenant_id, media_type, body, created_at)
    select %(id)s, f.sha256, f.name, f.tenant_id, f.media_type, f.body, f.created_at
      from run_file f
     where f.run_id = %(origin)s
       and f.created_at <= (select at from step where run_id = %(origin)s and seq = %(at)s)
"""

COPY_CHECKPOINTS = """
    with until as (
      select case when kind = 'input_request' and superstep is null
                  then coalesce((select min(n.at) from step n
                                  where n.run_id = %(origin)s and n.seq > %(at)s
                                    and (n.kind <> 'input_request' or n.superstep is not null)), 'infinity')
                  else at end as at
        from step where run_id = %(origin)s and seq = %(at)s),
    mine as (
      select c.* from checkpoint c, until where c.thread_id = %(source)s and c.created_at <= until.at),
    copied_values as (
      insert into checkpoint_value (thread_id, ns, channel, version, tenant_id, base_version, type, item_count, body)
      select %(thread)s, v.ns, v.channel, v.version, v.tenant_id, v.base_version, v.type, v.item_count, v.body
        from checkpoint_value v where v.thread_id = %(source)s and exists (select from mine where mine.ns = v.ns)),
    copied_writes as (
      insert into checkpoint_write (thread_id, ns, checkpoint_id, task_id, idx, tenant_id, run_id, task_path, channel,
                                    type, body)
      select %(thread)s, w.ns, w.checkpoint_id, w.task_id, w.idx, w.tenant_id,
             case when w.run_id = %(origin)s then %(id)s else w.run_id end, w.task_path, w.channel, w.type, w.body
        from checkpoint_write w
       where w.thread_id = %(source)s
         and exists (select from mine where mine.ns = w.ns and mine.parent_id = w.checkpoint_id
                        and w.channel = any(mine.delta_channels)))
    insert into checkpoint (thread_id, ns, checkpoint_id, parent_id, tenant_id, run_id, fence, superstep, turn, body,
                            metadata, channels, versions, delta_channels, created_at)
    select %(thread)s, ns, checkpoint_id, parent_id, tenant_id,
           case when run_id = %(origin)s then %(id)s else run_id end, fence, superstep, turn, body, metadata, channels,
           versions, delta_channels, created_at
      from mine order by nth
"""
"""Checkpoints that were stored when the step was written, including those of earlier runs of the
thread. A graph's own interrupt is requested after its checkpoint, and a later step continues
that superstep. Task writes are copied if a channel is rebuilt from them; all other tasks run
again and get the results of their calls from the call journal.
"""


@dataclass(frozen=True, slots=True)
class ForkOrigin:
    """The run that is forked, locked until the transaction ends."""

    run: RunRow
    requested_tool_policy: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class NewFork:
    """The fields in which a fork differs from its origin, or which it keeps up to `at_seq`."""

    id: UUID
    thread_id: UUID
    at_seq: int
    graph_version: str
    engines: Mapping[str, EngineConfig]
    tool_policy: Mapping[str, Any]
    tool_policy_sha256: str
    budget: Budget
    copied_usage: RunUsage
    """Usage of the copied steps."""
    idempotency_key: str | None = None
    request_sha256: str | None = None
    traceparent: str | None = None


async def lock_origin(connection: Connection, run_id: UUID) -> ForkOrigin:
    """Lock the run that is forked and return it. Raises `NotFound` if it does not exist."""
    row = await (await connection.execute(LOCK_ORIGIN, (run_id,))).fetchone()
    if row is None:
        raise NotFound("run", str(run_id))
    return ForkOrigin(runs.run_from_row(row[:-1]), row[-1])


async def find_first_run_id(connection: Connection, fork: RunRow) -> UUID | None:
    """Return the run in which a fork's first steps were created, even if it has been deleted.

    `None` means that the run is not a fork.
    """
    if fork.forked_at is None:
        return None
    row = await (await connection.execute(FIND_FIRST_RUN, (fork.id,))).fetchone()
    return row[0] if row else None


async def get_last_copyable_seq(connection: Connection, origin: RunRow) -> int:
    """Return the last step that a fork can copy."""
    row = await (await connection.execute(GET_FIRST_ENDING_SEQ, {"run": origin.id})).fetchone()
    return origin.last_seq if row is None or row[0] is None else row[0] - 1


async def has_missing_state(connection: Connection, origin: RunRow, at_seq: int) -> bool:
    """Return whether the state is missing with which the origin began.

    Without it, supersteps would be numbered differently and recorded calls would not be found.
    """
    parameters = {"source": origin.thread_id, "created_at": origin.created_at, "origin": origin.id, "at": at_seq}
    row = await (await connection.execute(HAS_MISSING_STATE, parameters)).fetchone()
    return bool(row and row[0])


async def list_steps_of_kind(connection: Connection, run_id: UUID, after_seq: int, kind: str) -> list[Step]:
    """Return all steps of a kind after `after_seq`."""
    return [
        step_from_row(row)
        for row in await (await connection.execute(LIST_STEPS_OF_KIND, (run_id, after_seq, kind))).fetchall()
    ]


async def get_copied_usage(
    connection: Connection, origin: RunRow, at_seq: int, *, count_calls_as_turns: bool
) -> RunUsage:
    """Return the usage of the steps up to `at_seq`. It is never more than that of the run."""
    row = await (await connection.execute(GET_COPIED_USAGE, (origin.id, at_seq))).fetchone()
    assert row is not None
    numbered, calls, theirs, tokens, usd, seconds = row
    turns, whole = (calls if count_calls_as_turns else numbered) + theirs, origin.usage
    return RunUsage(
        min(turns, whole.turns), min(tokens, whole.tokens), min(usd, whole.cost_usd), min(seconds, whole.seconds)
    )


async def insert_fork(connection: Connection, origin: RunRow, new: NewFork) -> RunRow:
    """Store a fork with everything that it copies from its origin. Its thread must exist."""
    parameters = _fork_parameters(origin, new)
    row = await (await connection.execute(INSERT_RUN, parameters)).fetchone()
    for statement in (
        COPY_LANGGRAPH_RUN,
        COPY_STEPS,
        COPY_INTENTS,
        COPY_CHECKPOINTS,
        COPY_SEGMENTS,
        COPY_ROLE_CALLS,
        COPY_SPANS,
        COPY_REPORTS,
        COPY_CITATIONS,
        COPY_INPUT_REQUESTS,
        COPY_FILES,
    ):
        await connection.execute(statement, parameters)
    return runs.run_from_row(row)


def _fork_parameters(origin: RunRow, new: NewFork) -> dict[str, Any]:
    copied = new.copied_usage
    usage = {
        "turns": copied.turns,
        "tokens": copied.tokens,
        "cost_usd": str(copied.cost_usd),
        "seconds": copied.seconds,
    }
    return {
        "id": new.id,
        "origin": origin.id,
        "source": origin.thread_id,
        "thread": new.thread_id,
        "at": new.at_seq,
        "graph_version": new.graph_version,
        "engines": _jsonb({role: engine_to_json(choice) for role, choice in new.engines.items()}),
        "policy": _jsonb(new.tool_policy),
        "policy_sha256": new.tool_policy_sha256,
        "budget": _jsonb(runs.budget_to_json(new.budget)),
        **usage,
        "cost_usd": Decimal(copied.cost_usd),
        "usage": _jsonb(usage),
        "idempotency_key": new.idempotency_key,
        "request_sha256": new.request_sha256,
        "traceparent": new.traceparent,
    }


def _jsonb(value: object) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
