"""What erasing a source touches, table by table. Which words are copies is decided by the caller.

All of it runs in one transaction, whose time limits are lifted: an erasure is rare and must not stop half-way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.storage.pool import Connection

Clean = Callable[[str], str]
CleanJson = Callable[[Any], Any]

PATIENT = """
    select set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true),
           set_config('lock_timeout', '60000', true)
"""

HELD = """
    select title, name, array(select artefact_id from source_past p where p.source_id = s.id) || s.artefact_id
      from source s where tenant_id = %s and id = %s for update
"""

DROP_SOURCE = "delete from source where tenant_id = %s and id = %s"

ORPHANS = """
    select a.id, a.snapshot, a.body, a.title from artefact a
     where a.tenant_id = %s and a.id = any(%s)
       and not exists (select from source s where s.artefact_id = a.id)
       and not exists (select from source_past p where p.artefact_id = a.id)
       for update
"""
"""Texts that no source holds, or held."""

TOLD = """
    with recursive read as (
      select distinct run_id from step
       where tenant_id = %(tenant)s and kind in ('tool', 'report') and payload::text ~ %(ids)s
      union select run_id from citation where tenant_id = %(tenant)s and artefact_id = any(%(artefacts)s)),
    remembering as (
      select distinct run_id from step where tenant_id = %(tenant)s and kind = 'note' and label = 'store'),
    told as (
      select run_id from read union
      select run_id from remembering where exists (select from remembering join read using (run_id))),
    threads(thread_id) as (
      select thread_id from run where id in (select run_id from told) union
      select fork.thread_id from threads t join run origin on origin.thread_id = t.thread_id
             join run fork on fork.tenant_id = origin.tenant_id and fork.forked_from = origin.id)
"""

IS_TOUCHED = """
     where r.tenant_id = %(tenant)s
       and (r.thread_id in (select thread_id from threads)
            or r.id in (select parent_id from child_run where run_id in (select run_id from read)))
"""
"""Runs that retrieved one of the texts, and the others of their threads, forks of those, and who started them: they may
have been told of it. Where one of them used LangGraph's store, so may all have been that used it, too."""

RUNS_TOUCHED = f"""
    {TOLD}
    select r.id, r.status, r.id in (select run_id from read) as read_it from run r {IS_TOUCHED}
"""

HOLD_TOUCHED = f"""
    {TOLD}
    select 1 from run r {IS_TOUCHED}
       and r.status in ('done', 'failed', 'cancelled', 'dead') order by r.id for update
"""
"""A fork holds the run that it copies from, so from here on none is made of what is not clean yet."""

QUOTES = "select distinct quote from citation where tenant_id = %s and artefact_id = any(%s)"

ERASE_QUOTES = """
    update citation set artefact_id = null, quote = %s, title = %s where tenant_id = %s and artefact_id = any(%s)
"""

STEPS = "select seq, title, detail, payload from step where run_id = %s and seq > %s order by seq limit 200"

SET_STEP = "update step set title = %s, detail = %s, payload = %s where run_id = %s and seq = %s"

TURNS = "select seq, completion, failed_attempts, problem, prompt from turn where run_id = %s order by seq"

SET_TURN = "update turn set completion = %s, failed_attempts = %s, problem = %s where run_id = %s and seq = %s"

FORGET_TOKENS = """
    update turn set prompt_offset = null, prompt_ids = null, completion_ids = null, logprobs = null, entropy = null,
                    mask = null, trainable = 'none', trainable_reason = 'a source that the run had read was erased'
     where run_id = %s and completion_ids is not null
"""
"""Ids are text that cannot be cleaned, and each turn's hold the prompts before it."""

FORGET_SPANS = "delete from span where run_id = %s"

PARTS = "select sha256, body from text_part where tenant_id = %s and sha256 = any(%s)"

SET_PART = "update text_part set body = %s where tenant_id = %s and sha256 = %s"
"""The hash stays: it names what the part was, and turns refer to it."""

REPORTS = "select version, body from report where run_id = %s"

SET_REPORT = "update report set body = %s where run_id = %s and version = %s"

CORRECTIONS = "select id, correction from reward where run_id = %s and correction <> ''"

SET_CORRECTION = "update reward set correction = %s where run_id = %s and id = %s"

SCORES = "select id, failure, detail from reward where run_id = %s and target = 'run'"

SET_SCORE = "update reward set failure = %s, detail = %s where run_id = %s and id = %s"
"""A judge's reason may quote what it read."""

INTENTS = "select superstep, path, ordinal, digest, args from intent where run_id = %s"

SET_INTENT = """
    update intent set args = %s where run_id = %s and superstep = %s and path = %s and ordinal = %s and digest = %s
"""

ITEMS = "select nth, value from store_item where tenant_id = %s and run_id = %s"

SET_ITEM = "update store_item set value = %s, vectors = null, embedder = null where tenant_id = %s and nth = %s"
"""Vectors are made of words that are gone."""

ANSWERS = "select seq, answer from question where run_id = %s and answer is not null"

SET_ANSWER = "update question set answer = %s where run_id = %s and seq = %s"

FORGET_WRITES = """
    delete from checkpoint_write w
     where w.run_id = %s and not exists (
       select from checkpoint c
        where c.thread_id = w.thread_id and c.ns = w.ns and c.parent_id = w.checkpoint_id and w.channel = any(c.delta))
"""
"""What a superstep of a run had written when it waited. An ended run needs of it what its state is rebuilt from."""

COUNT_PASSAGES = "select count(*) from passage where tenant_id = %s and artefact_id = any(%s)"

DROP_TEXTS = "delete from artefact where tenant_id = %s and id = any(%s)"

DROP_SNAPSHOTS = """
    delete from snapshot n where tenant_id = %s and sha256 = any(%s)
       and not exists (select from artefact a where a.tenant_id = n.tenant_id and a.snapshot = n.sha256)
"""


@dataclass(frozen=True, slots=True)
class Held:
    """What a source holds and held."""

    title: str
    name: str
    artefacts: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Orphan:
    """A text that no source holds any more."""

    artefact: UUID
    snapshot: bytes
    text: str
    title: str


@dataclass(frozen=True, slots=True)
class Touched:
    """A run that may hold copies."""

    run: UUID
    status: str
    read_it: bool
    """It retrieved the text itself; else only its thread did."""


async def be_patient(connection: Connection) -> None:
    await connection.execute(PATIENT)


async def take_source(connection: Connection, tenant: UUID, source: UUID) -> Held | None:
    """Remove a source; what it held. None: there is no such source."""
    row = await (await connection.execute(HELD, (tenant, source))).fetchone()
    if row is None:
        return None
    await connection.execute(DROP_SOURCE, (tenant, source))
    return Held(row[0], row[1], tuple(row[2]))


async def orphans(connection: Connection, tenant: UUID, artefacts: Sequence[UUID]) -> list[Orphan]:
    return [Orphan(*row) async for row in await connection.execute(ORPHANS, (tenant, list(artefacts)))]


async def touched(connection: Connection, tenant: UUID, artefacts: Sequence[UUID]) -> list[Touched]:
    """Holds those that have ended until the transaction is over. A fork that was made while it waited is among them."""
    values = {"tenant": tenant, "artefacts": list(artefacts), "ids": "|".join(map(str, artefacts))}
    await connection.execute(HOLD_TOUCHED, values)
    return [Touched(*row) async for row in await connection.execute(RUNS_TOUCHED, values)]


async def quotes(connection: Connection, tenant: UUID, artefacts: Sequence[UUID]) -> list[str]:
    return [quote async for (quote,) in await connection.execute(QUOTES, (tenant, list(artefacts)))]


async def erase_quotes(connection: Connection, tenant: UUID, artefacts: Sequence[UUID], mark: str) -> None:
    await connection.execute(ERASE_QUOTES, (mark, mark, tenant, list(artefacts)))


async def clean_steps(connection: Connection, run: UUID, clean: Clean, clean_json: CleanJson) -> int:
    """Clean every step of a run; how many changed."""
    changed, after = 0, 0
    while rows := await (await connection.execute(STEPS, (run, after))).fetchall():
        for seq, title, detail, payload in rows:
            new = clean(title), clean(detail), clean_json(payload)
            if new != (title, detail, payload):
                await connection.execute(SET_STEP, (*new[:2], _jsonb(new[2]), run, seq))
                changed += 1
        after = rows[-1][0]
    return changed


async def clean_turns(connection: Connection, tenant: UUID, run: UUID, clean: Clean, clean_json: CleanJson) -> None:
    """Clean what a run's role calls were told and answered, and forget it as tokens."""
    parts: set[str] = set()
    for seq, completion, attempts, problem, prompt in await (await connection.execute(TURNS, (run,))).fetchall():
        new = clean(completion), clean_json(attempts), clean(problem)
        if new != (completion, attempts, problem):
            await connection.execute(SET_TURN, (new[0], _jsonb(new[1]), new[2], run, seq))
        parts.update(part for _, hashes in prompt for part in hashes)
    wanted = [bytes.fromhex(part) for part in parts]
    for sha256, body in await (await connection.execute(PARTS, (tenant, wanted))).fetchall():
        if (new_body := clean(body)) != body:
            await connection.execute(SET_PART, (new_body, tenant, sha256))
    await connection.execute(FORGET_TOKENS, (run,))
    await connection.execute(FORGET_SPANS, (run,))


async def clean_reports(connection: Connection, run: UUID, clean: Clean, clean_json: CleanJson) -> None:
    """Clean every version of a run's report, and what people and judges wrote about it."""
    for version, body in await (await connection.execute(REPORTS, (run,))).fetchall():
        if (new := clean_json(body)) != body:
            await connection.execute(SET_REPORT, (_jsonb(new), run, version))
    for id, correction in await (await connection.execute(CORRECTIONS, (run,))).fetchall():
        if (new := clean(correction)) != correction:
            await connection.execute(SET_CORRECTION, (new, run, id))
    for id, failure, detail in await (await connection.execute(SCORES, (run,))).fetchall():
        if (said := (clean(failure), clean_json(detail))) != (failure, detail):
            await connection.execute(SET_SCORE, (said[0], _jsonb(said[1]), run, id))


async def clean_intents(connection: Connection, run: UUID, clean_json: CleanJson) -> None:
    for superstep, path, ordinal, digest, args in await (await connection.execute(INTENTS, (run,))).fetchall():
        if (new := clean_json(args)) != args:
            await connection.execute(SET_INTENT, (_jsonb(new), run, superstep, path, ordinal, digest))


async def clean_items(connection: Connection, tenant: UUID, run: UUID, clean_json: CleanJson) -> None:
    """Clean what a run has put into LangGraph's store."""
    for nth, value in await (await connection.execute(ITEMS, (tenant, run))).fetchall():
        if (new := clean_json(value)) != value:
            await connection.execute(SET_ITEM, (_jsonb(new), tenant, nth))


async def clean_answers(connection: Connection, run: UUID, clean_json: CleanJson) -> None:
    """Clean what people answered to a run's questions, and forget what it held while it waited."""
    for seq, answer in await (await connection.execute(ANSWERS, (run,))).fetchall():
        if (new := clean_json(answer)) != answer:
            await connection.execute(SET_ANSWER, (_jsonb(new), run, seq))
    await connection.execute(FORGET_WRITES, (run,))


async def drop_texts(connection: Connection, tenant: UUID, gone: Sequence[Orphan]) -> tuple[int, int]:
    """Remove texts with passages and postings, and bytes that no text is left of; how many snapshots and passages."""
    ids = [orphan.artefact for orphan in gone]
    counted = await (await connection.execute(COUNT_PASSAGES, (tenant, ids))).fetchone()
    await connection.execute(DROP_TEXTS, (tenant, ids))
    dropped = await connection.execute(DROP_SNAPSHOTS, (tenant, [orphan.snapshot for orphan in gone]))
    return dropped.rowcount, counted[0] if counted else 0


def _jsonb(value: Any) -> Jsonb:
    return Jsonb(value, dumps=orjson.dumps)
