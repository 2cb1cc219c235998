"""A thread's earlier runs as a later one looks back at them. Everything here is in runs, reports and steps already."""

from uuid import UUID

from offing.storage.pool import Connection

EARLIER = """
    select id, question
      from app.thread_line(%s) as line join run on run.thread_id = line.thread_id and run.created_at < line.before
     where id <> %s and status = 'done'
     order by created_at desc, id desc limit %s
"""

NOTES = """
    select key, text, run_id from (
      select distinct on (s.payload->>'remember') s.payload->>'remember' as key, s.payload->>'text' as text, s.run_id,
             r.created_at
        from app.thread_line(%s) as line
             join run r on r.thread_id = line.thread_id and r.created_at < line.before
             join step s on s.run_id = r.id
       where r.id <> %s and s.kind = 'note' and jsonb_exists(s.payload, 'remember')
       order by s.payload->>'remember', r.created_at desc, s.seq desc) as latest
     order by created_at desc, key limit %s
"""


async def earlier(connection: Connection, thread: UUID, run: UUID, most: int) -> list[tuple[UUID, str]]:
    """The other runs of a thread that are done, with their questions, newest first."""
    return [(id_, asked) for id_, asked in await (await connection.execute(EARLIER, (thread, run, most))).fetchall()]


async def notes(connection: Connection, thread: UUID, run: UUID, most: int) -> list[tuple[str, str, UUID]]:
    """The latest note under each key that another run of the thread left, newest first."""
    rows = await (await connection.execute(NOTES, (thread, run, most))).fetchall()
    return [(key, text, by) for key, text, by in rows]
