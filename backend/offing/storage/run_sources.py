"""The tool results of a run as the passages and links that they returned, without their texts."""

from uuid import UUID

from offing.core.run_sources import READ_LABEL, FailedRead, Passage
from offing.core.step import Step
from offing.core.tool import SourceSpan, ToolStatus
from offing.core.tool_batch import order_tool_results
from offing.storage.pool import Connection
from offing.storage.steps import COLUMNS, step_from_row

LATEST_RESULTS = """
    results as (
      select seq, label, ok, payload from step
       where run_id = %(run)s and kind = 'tool_result' order by seq desc limit %(limit)s)
"""

LIST_PASSAGES = f"""
    with {LATEST_RESULTS},
    returned as (
      select seq, label, case when payload->'content' ? 'text_id'
                                then jsonb_build_array((payload->'content') - 'text'::text)
                              when jsonb_typeof(payload->'content'->'passages') = 'array'
                                then payload->'content'->'passages'
                              when jsonb_typeof(payload->'content'->'results') = 'array'
                                then payload->'content'->'results'
                              else '[]' end as found
        from results where ok)
    select seq, label, p->>'source', coalesce(p->>'title', ''), coalesce(p->>'name', p->>'url', ''), p->>'text_id',
           p->>'start', p->>'end'
      from returned, jsonb_array_elements(found) with ordinality as given(p, nth)
     where jsonb_typeof(p) = 'object' and (p ? 'text_id' or p ? 'url') order by seq, nth
"""
"""Passages of the library and links of a web search. Other results name no source."""

LIST_FAILURES = f"""
    with {LATEST_RESULTS}
    select seq, coalesce(payload->'args'->>'url', payload->'args'->>'source'), payload->>'status',
           coalesce(payload->>'message', '')
      from results
     where not ok and coalesce(payload->'args'->>'url', payload->'args'->>'source') is not null order by seq
"""

LIST_JUDGMENTS = f"""
    select {COLUMNS} from step
     where run_id = %(run)s and kind = 'role_call' and label = 'judge' order by seq desc limit %(limit)s
"""

LIST_CITED = """
    select distinct source_id from citation
     where run_id = %(run)s and report_version = (select max(version) from report where run_id = %(run)s)
"""

COUNT_TOOL_RESULTS = "select count(*) from step where run_id = %s and kind = 'tool_result'"

LIST_BATCH_POSITIONS = f"""
    with {LATEST_RESULTS}
    select {COLUMNS.replace(" payload,", " payload - array['content', 'args', 'spans', 'message'],")}
      from step where run_id = %(run)s and seq in (select seq from results) order by seq
"""
"""The results without their content: their order is that of their calls in a batch."""


async def list_passages(connection: Connection, run_id: UUID, limit: int) -> list[Passage]:
    """Return the passages and links of the latest `limit` tool results, in order."""
    rows = await (await connection.execute(LIST_PASSAGES, {"run": run_id, "limit": limit})).fetchall()
    return [passage for row in rows if (passage := _parse_passage(*row)) is not None]


async def list_failures(connection: Connection, run_id: UUID, limit: int) -> list[FailedRead]:
    """Return the calls among the latest `limit` tool results that did not return the source that they name."""
    rows = await (await connection.execute(LIST_FAILURES, {"run": run_id, "limit": limit})).fetchall()
    return [FailedRead(seq, reference, ToolStatus(status), message) for seq, reference, status, message in rows]


async def list_judgments(connection: Connection, run_id: UUID, limit: int) -> list[Step]:
    """Return the latest answers of a judge role, oldest first."""
    rows = await (await connection.execute(LIST_JUDGMENTS, {"run": run_id, "limit": limit})).fetchall()
    return [step_from_row(row) for row in reversed(rows)]


async def list_cited(connection: Connection, run_id: UUID) -> list[UUID]:
    """Return the sources that the latest report cites."""
    rows = await (await connection.execute(LIST_CITED, {"run": run_id})).fetchall()
    return [source_id for (source_id,) in rows]


async def count_tool_results(connection: Connection, run_id: UUID) -> int:
    row = await (await connection.execute(COUNT_TOOL_RESULTS, (run_id,))).fetchone()
    return row[0] if row else 0


async def list_evidence_order(connection: Connection, run_id: UUID, limit: int) -> list[int]:
    """Return the latest tool results in the order in which their passages became evidence."""
    rows = await (await connection.execute(LIST_BATCH_POSITIONS, {"run": run_id, "limit": limit})).fetchall()
    return [step.seq for step in order_tool_results(map(step_from_row, rows))]


def _parse_passage(
    seq: int,
    label: str,
    source: str | None,
    title: str,
    name: str,
    text_id: str | None,
    start: str | None,
    end: str | None,
) -> Passage | None:
    """Return a passage or a link. `None` means that a third-party tool returned something else under these names."""
    if text_id is None:
        return Passage(seq, False, None, title, name, None) if name else None
    try:
        span = SourceSpan(UUID(text_id), int(start or ""), int(end or ""))
        return Passage(seq, label == READ_LABEL, UUID(source or ""), title, name, span)
    except ValueError:
        return None
