"""Erasure of a source, table by table. The caller decides which text is a copy of the source.

An erasure is one transaction without time limits: it is rare and must not stop halfway.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.storage.pool import Connection
from offing.storage.postings import delete_postings

TextCleaner = Callable[[str], str]
JsonCleaner = Callable[[Any], Any]

LIFT_TIMEOUTS = """
    select set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true),
           set_config('lock_timeout', '60000', true)
"""

GET_SOURCE_CONTENTS = """
    select title, name, array(select text_id from source_history p where p.source_id = s.id) || s.text_id
      from source s where tenant_id = %s and id = %s for update
"""

DELETE_SOURCE = "delete from source where tenant_id = %s and id = %s"

LIST_ORPHANED_TEXTS = """
    select a.id, a.snapshot_sha256, a.body, a.title from extracted_text a
     where a.tenant_id = %s and a.id = any(%s)
       and not exists (select from source s where s.text_id = a.id)
       and not exists (select from source_history p where p.text_id = a.id)
     order by a.id for update
"""
"""Texts that no source refers to now or in its history."""

AFFECTED_RUNS = """
    with recursive read as (
      select distinct run_id from step
       where tenant_id = %(tenant)s and kind in ('tool_result', 'report') and payload::text ~ %(ids)s
      union select run_id from citation where tenant_id = %(tenant)s and text_id = any(%(text_ids)s)),
    remembering as (
      select distinct run_id from step where tenant_id = %(tenant)s and kind = 'note' and label = 'store'),
    told as (
      select run_id from read union
      select run_id from remembering where exists (select from remembering join read using (run_id))),
    threads(thread_id) as (
      select thread_id from run where id in (select run_id from told) union
      select fork.thread_id from threads t join run origin on origin.thread_id = t.thread_id
             join run fork on fork.tenant_id = origin.tenant_id and fork.forked_from_id = origin.id)
"""

IS_AFFECTED = """
     where r.tenant_id = %(tenant)s
       and (r.thread_id in (select thread_id from threads)
            or r.id in (select parent_id from child_run where run_id in (select run_id from read)))
"""
"""Runs that retrieved one of the texts, the other runs of their threads, their forks and their
parents: all of them may contain the text. If one of them used LangGraph's store, all other runs
that used the store may contain it too.
"""

LIST_AFFECTED_RUNS = f"""
    {AFFECTED_RUNS}
    select r.id, r.status, r.id in (select run_id from read) as read_it from run r {IS_AFFECTED}
"""

LOCK_AFFECTED_RUNS = f"""
    {AFFECTED_RUNS}
    select 1 from run r {IS_AFFECTED}
       and r.status in ('done', 'failed', 'cancelled') order by r.id for update
"""
"""A fork locks the run that it copies from. So from here on, no fork can copy text that has not
been cleaned yet.
"""

LIST_QUOTES = "select distinct quote from citation where tenant_id = %s and text_id = any(%s)"

ERASE_QUOTES = """
    update citation set text_id = null, quote = %s, title = %s where tenant_id = %s and text_id = any(%s)
"""

LIST_STEPS = "select seq, title, detail, payload from step where run_id = %s and seq > %s order by seq limit 200"

UPDATE_STEP = "update step set title = %s, detail = %s, payload = %s where run_id = %s and seq = %s"

LIST_ROLE_CALLS = (
    "select seq, completion, failed_attempts, problem, prompt from role_call where run_id = %s order by seq"
)

UPDATE_ROLE_CALL = (
    "update role_call set completion = %s, failed_attempts = %s, problem = %s where run_id = %s and seq = %s"
)

CLEAR_TOKENS = """
    update role_call set prompt_offset = null, prompt_ids = null, completion_ids = null, logprobs = null,
    entropy = null,
                    loss_mask = null, trainable = 'none', trainable_reason = 'a source that the run had read was erased'
     where run_id = %s and completion_ids is not null
"""
"""Token ids are text that cannot be cleaned, and the ids of a role call include the earlier prompts
of its segment.
"""

DELETE_SPANS = "delete from completion_span where run_id = %s"

LIST_PROMPT_PARTS = "select sha256, body from text_part where tenant_id = %s and sha256 = any(%s)"

UPDATE_PROMPT_PART = "update text_part set body = %s where tenant_id = %s and sha256 = %s"
"""The hash is not changed: it identifies the original part, and role calls refer to it."""

LIST_REPORTS = "select version, body from report where run_id = %s"

UPDATE_REPORT = "update report set body = %s where run_id = %s and version = %s"

LIST_CORRECTIONS = "select id, correction from reward where run_id = %s and correction <> ''"

UPDATE_CORRECTION = "update reward set correction = %s where run_id = %s and id = %s"

LIST_ANSWERS = "select id, answer from answer_correction where run_id = %s"

UPDATE_ANSWER = "update answer_correction set answer = %s where run_id = %s and id = %s"

LIST_TASK_REFERENCES = """
    select f.task_id, f.answers, f.rubric from task_reference f join task_origin o using (task_id) where o.run_id = %s
"""

UPDATE_TASK_REFERENCE = "update task_reference set answers = %s, rubric = %s where task_id = %s"

LIST_SCORES = "select id, failure, detail from reward where run_id = %s and target = 'run'"

UPDATE_SCORE = "update reward set failure = %s, detail = %s where run_id = %s and id = %s"
"""The reason of a judge may quote what it read."""

LIST_INTENTS = "select superstep, path, ordinal, digest, args from intent where run_id = %s"

UPDATE_INTENT = """
    update intent set args = %s where run_id = %s and superstep = %s and path = %s and ordinal = %s and digest = %s
"""

LIST_STORE_ITEMS = "select nth, value from store_item where tenant_id = %s and run_id = %s"

UPDATE_STORE_ITEM = (
    "update store_item set value = %s, vectors = null, embedder = null where tenant_id = %s and nth = %s"
)
"""Vectors are computed from words that have been erased."""

LIST_INPUT_RESPONSES = "select seq, response from input_request where run_id = %s and response is not null"

UPDATE_INPUT_RESPONSE = "update input_request set response = %s where run_id = %s and seq = %s"

DELETE_WRITES = """
    delete from checkpoint_write w
     where w.run_id = %s and not exists (
       select from checkpoint c
        where c.thread_id = w.thread_id and c.ns = w.ns and c.parent_id = w.checkpoint_id
        and w.channel = any(c.delta_channels))
"""
"""Writes of a superstep that had not ended when the run waited. An ended run needs only those from
which its state is rebuilt.
"""

COUNT_PASSAGES = "select count(*) from passage where tenant_id = %s and text_id = any(%s)"

DELETE_TEXTS = "delete from extracted_text where tenant_id = %s and id = any(%s)"

DELETE_SNAPSHOTS = """
    delete from snapshot n where tenant_id = %s and sha256 = any(%s)
       and not exists (select from extracted_text a where a.tenant_id = n.tenant_id and a.snapshot_sha256 = n.sha256)
"""


@dataclass(frozen=True, slots=True)
class SourceContents:
    """The texts of a source, present and past."""

    title: str
    name: str
    text_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class OrphanedText:
    """A text that no source refers to any more."""

    text_id: UUID
    snapshot_sha256: bytes
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class AffectedRun:
    """A run that may contain copies."""

    run_id: UUID
    status: str
    retrieved_text: bool
    """Whether the run itself retrieved the text. If false, another run of its thread did."""


async def lift_timeouts(connection: Connection) -> None:
    await connection.execute(LIFT_TIMEOUTS)


async def delete_source(connection: Connection, tenant_id: UUID, source_id: UUID) -> SourceContents | None:
    """Delete a source and return its contents. `None` means that there is no such source."""
    row = await (await connection.execute(GET_SOURCE_CONTENTS, (tenant_id, source_id))).fetchone()
    if row is None:
        return None
    await connection.execute(DELETE_SOURCE, (tenant_id, source_id))
    return SourceContents(row[0], row[1], tuple(row[2]))


async def list_orphaned_texts(connection: Connection, tenant_id: UUID, text_ids: Sequence[UUID]) -> list[OrphanedText]:
    return [
        OrphanedText(*row) async for row in await connection.execute(LIST_ORPHANED_TEXTS, (tenant_id, list(text_ids)))
    ]


async def lock_affected_runs(connection: Connection, tenant_id: UUID, text_ids: Sequence[UUID]) -> list[AffectedRun]:
    """Return the affected runs.

    Those that have ended are locked until the transaction ends, including forks that were
    created while it waited.
    """
    values = {"tenant": tenant_id, "text_ids": list(text_ids), "ids": "|".join(map(str, text_ids))}
    await connection.execute(LOCK_AFFECTED_RUNS, values)
    return [AffectedRun(*row) async for row in await connection.execute(LIST_AFFECTED_RUNS, values)]


async def list_quotes(connection: Connection, tenant_id: UUID, text_ids: Sequence[UUID]) -> list[str]:
    return [quote async for (quote,) in await connection.execute(LIST_QUOTES, (tenant_id, list(text_ids)))]


async def erase_quotes(connection: Connection, tenant_id: UUID, text_ids: Sequence[UUID], replacement: str) -> None:
    await connection.execute(ERASE_QUOTES, (replacement, replacement, tenant_id, list(text_ids)))


async def clean_steps(connection: Connection, run_id: UUID, clean: TextCleaner, clean_json: JsonCleaner) -> int:
    """Clean every step of a run and return how many changed."""
    changed, after = 0, 0
    while rows := await (await connection.execute(LIST_STEPS, (run_id, after))).fetchall():
        for seq, title, detail, payload in rows:
            new = clean(title), clean(detail), clean_json(payload)
            if new != (title, detail, payload):
                await connection.execute(UPDATE_STEP, (*new[:2], _jsonb(new[2]), run_id, seq))
                changed += 1
        after = rows[-1][0]
    return changed


async def clean_role_calls(
    connection: Connection, tenant_id: UUID, run_id: UUID, clean: TextCleaner, clean_json: JsonCleaner
) -> None:
    """Clean prompts and completions of a run's role calls, and delete their tokens."""
    parts: set[str] = set()
    for seq, completion, attempts, problem, prompt in await (
        await connection.execute(LIST_ROLE_CALLS, (run_id,))
    ).fetchall():
        new = clean(completion), clean_json(attempts), clean(problem)
        if new != (completion, attempts, problem):
            await connection.execute(UPDATE_ROLE_CALL, (new[0], _jsonb(new[1]), new[2], run_id, seq))
        parts.update(part for _, hashes in prompt for part in hashes)
    part_hashes = [bytes.fromhex(part) for part in parts]
    for sha256, body in await (await connection.execute(LIST_PROMPT_PARTS, (tenant_id, part_hashes))).fetchall():
        if (new_body := clean(body)) != body:
            await connection.execute(UPDATE_PROMPT_PART, (new_body, tenant_id, sha256))
    await connection.execute(CLEAR_TOKENS, (run_id,))
    await connection.execute(DELETE_SPANS, (run_id,))


async def clean_reports(connection: Connection, run_id: UUID, clean: TextCleaner, clean_json: JsonCleaner) -> None:
    """Clean all versions of a run's report, and what people and judges wrote about it."""
    for version, body in await (await connection.execute(LIST_REPORTS, (run_id,))).fetchall():
        if (new := clean_json(body)) != body:
            await connection.execute(UPDATE_REPORT, (_jsonb(new), run_id, version))
    for id, correction in await (await connection.execute(LIST_CORRECTIONS, (run_id,))).fetchall():
        if (new := clean(correction)) != correction:
            await connection.execute(UPDATE_CORRECTION, (new, run_id, id))
    for id, failure, detail in await (await connection.execute(LIST_SCORES, (run_id,))).fetchall():
        if (cleaned := (clean(failure), clean_json(detail))) != (failure, detail):
            await connection.execute(UPDATE_SCORE, (cleaned[0], _jsonb(cleaned[1]), run_id, id))


async def clean_training_signals(
    connection: Connection, run_id: UUID, clean: TextCleaner, clean_json: JsonCleaner
) -> None:
    """Clean the corrected answers of a run, and the references of tasks that were made from it."""
    for id, answer in await (await connection.execute(LIST_ANSWERS, (run_id,))).fetchall():
        if (new := clean(answer)) != answer:
            await connection.execute(UPDATE_ANSWER, (new, run_id, id))
    for task_id, answers, rubric in await (await connection.execute(LIST_TASK_REFERENCES, (run_id,))).fetchall():
        if (cleaned := (clean_json(answers), clean_json(rubric))) != (answers, rubric):
            values = None if cleaned[0] is None else _jsonb(cleaned[0])
            await connection.execute(UPDATE_TASK_REFERENCE, (values, _jsonb(cleaned[1]), task_id))


async def clean_intents(connection: Connection, run_id: UUID, clean_json: JsonCleaner) -> None:
    for superstep, path, ordinal, digest, args in await (await connection.execute(LIST_INTENTS, (run_id,))).fetchall():
        if (new := clean_json(args)) != args:
            await connection.execute(UPDATE_INTENT, (_jsonb(new), run_id, superstep, path, ordinal, digest))


async def clean_store_items(connection: Connection, tenant_id: UUID, run_id: UUID, clean_json: JsonCleaner) -> None:
    """Clean what a run has written to LangGraph's store."""
    for nth, value in await (await connection.execute(LIST_STORE_ITEMS, (tenant_id, run_id))).fetchall():
        if (new := clean_json(value)) != value:
            await connection.execute(UPDATE_STORE_ITEM, (_jsonb(new), tenant_id, nth))


async def clean_input_responses(connection: Connection, run_id: UUID, clean_json: JsonCleaner) -> None:
    """Clean the responses to a run's input requests.

    Delete the writes that the run stored while it waited.
    """
    for seq, answer in await (await connection.execute(LIST_INPUT_RESPONSES, (run_id,))).fetchall():
        if (new := clean_json(answer)) != answer:
            await connection.execute(UPDATE_INPUT_RESPONSE, (_jsonb(new), run_id, seq))
    await connection.execute(DELETE_WRITES, (run_id,))


async def delete_texts(connection: Connection, tenant_id: UUID, orphaned: Sequence[OrphanedText]) -> tuple[int, int]:
    """Delete texts with their passages and postings, and snapshots without any text.

    Return the number of deleted snapshots and passages.
    """
    ids = [orphan.text_id for orphan in orphaned]
    counted = await (await connection.execute(COUNT_PASSAGES, (tenant_id, ids))).fetchone()
    await delete_postings(connection, tenant_id, ids)
    await connection.execute(DELETE_TEXTS, (tenant_id, ids))
    dropped = await connection.execute(DELETE_SNAPSHOTS, (tenant_id, [orphan.snapshot_sha256 for orphan in orphaned]))
    return dropped.rowcount, counted[0] if counted else 0


def _jsonb(value: Any) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
