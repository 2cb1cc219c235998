"""The history of a thread for its later runs. All of it is read from runs, reports and steps."""

from uuid import UUID

from offing.storage.pool import Connection

LIST_EARLIER_RUNS = """
    select id, question
      from app.thread_lineage(%s) as line join run on run.thread_id = line.thread_id
      and run.created_at < line.visible_before
     where id <> %s and status = 'done'
     order by created_at desc, id desc limit %s
"""

FIND_QUESTION = "select question from run where id = %s"

LIST_NOTES = """
    select key, text, run_id from (
      select distinct on (s.payload->>'remember') s.payload->>'remember' as key, s.payload->>'text' as text, s.run_id,
             r.created_at
        from app.thread_lineage(%s) as line
             join run r on r.thread_id = line.thread_id and r.created_at < line.visible_before
             join step s on s.run_id = r.id
       where r.id <> %s and s.kind = 'note' and jsonb_exists(s.payload, 'remember')
       order by s.payload->>'remember', r.created_at desc, s.seq desc) as latest
     order by created_at desc, key limit %s
"""


async def find_question(connection: Connection, run_id: UUID) -> str | None:
    """Return the question of a run. `None` means that the run was deleted."""
    row = await (await connection.execute(FIND_QUESTION, (run_id,))).fetchone()
    return row[0] if row else None


async def list_earlier_runs(
    connection: Connection, thread_id: UUID, run_id: UUID, limit: int
) -> list[tuple[UUID, str]]:
    """Return the other completed runs of a thread with their questions, newest first."""
    return [
        (id_, question)
        for id_, question in await (await connection.execute(LIST_EARLIER_RUNS, (thread_id, run_id, limit))).fetchall()
    ]


async def list_notes(connection: Connection, thread_id: UUID, run_id: UUID, limit: int) -> list[tuple[str, str, UUID]]:
    """Return the latest note under each key that other runs of the thread saved, newest first."""
    rows = await (await connection.execute(LIST_NOTES, (thread_id, run_id, limit))).fetchall()
    return [(key, text, by) for key, text, by in rows]
