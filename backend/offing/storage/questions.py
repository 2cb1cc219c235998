"""Questions as rows: what is open, what was answered, and which answers a run has taken up.

The only home of statements on `question`. The words of a question are in its step. Knows nothing of waking runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.core.question import Answer, Answerer, Asking, Question, answer_json, answer_of, asking_of
from offing.core.run import Fence
from offing.storage.pool import Connection

COLUMNS = """
    q.seq, s.payload, q.asked_at, q.due_at, q.answered_at, q.answer, q.answerer, q.answered_by, q.interrupt_id
"""

FROM = f"select {COLUMNS} from question q join step s on s.run_id = q.run_id and s.seq = q.seq"

INSERT = """
    insert into question (run_id, seq, tenant_id, interrupt_id, kind, due_at)
    values (%(run)s, %(seq)s, %(tenant)s, %(interrupt)s, %(kind)s, clock_timestamp() + %(within)s::interval)
"""

OF_RUN = f"{FROM} where q.run_id = %s order by q.seq limit 500"

ONE = f"{FROM} where q.run_id = %s and q.seq = %s"

OF_INTERRUPTS = f"{FROM} where q.run_id = %s and q.interrupt_id = any(%s) order by q.seq"

OVERDUE = "select due_at <= clock_timestamp() from question where run_id = %s and seq = %s"

ANSWER = """
    update question set answered_at = clock_timestamp(), answer = %(answer)s, answerer = %(answerer)s,
                        answered_by = %(by)s
     where run_id = %(run)s and seq = %(seq)s and answered_at is null
    returning 1
"""

TAKE = "update question set taken_seq = %s where run_id = %s and seq = %s"

UNTAKEN = """
    select q.seq from question q
     where run_id = %s and interrupt_id = any(%s) and answered_at is not null and taken_seq is null order by seq
"""

SOME_ANSWERED = """
    select exists (select from question where run_id = %s and (seq = any(%s) or interrupt_id = any(%s))
                      and answered_at is not null)
"""

UNTIL_DUE = """
    select extract(epoch from min(due_at) - clock_timestamp())::float8 from question
     where run_id = %s and answered_at is null
"""


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """What is stored when a run asks. `seq`: of the step that asks."""

    seq: int
    asking: Asking
    interrupt: str | None = None


async def insert(connection: Connection, fence: Fence, new: NewQuestion) -> None:
    """Store a question in the transaction of its step, which has proved the fence."""
    within = None if new.asking.within is None else f"{new.asking.within} seconds"
    parameters = {
        "run": fence.run,
        "seq": new.seq,
        "tenant": fence.tenant,
        "interrupt": new.interrupt,
        "kind": new.asking.kind,
        "within": within,
    }
    await connection.execute(INSERT, parameters)


async def of_run(connection: Connection, run: UUID) -> list[Question]:
    """A run's questions in the order in which they were asked, 500 at most."""
    return [_question(row) for row in await (await connection.execute(OF_RUN, (run,))).fetchall()]


async def of_interrupts(connection: Connection, run: UUID, interrupts: Sequence[str]) -> dict[str, Question]:
    """The questions that these interrupts of a run have become, by the interrupt's id."""
    rows = await (await connection.execute(OF_INTERRUPTS, (run, list(interrupts)))).fetchall()
    return {q.interrupt: q for q in map(_question, rows) if q.interrupt is not None}


async def find(connection: Connection, run: UUID, number: int) -> Question | None:
    """None: the run has put no such question to people."""
    row = await (await connection.execute(ONE, (run, number))).fetchone()
    return None if row is None else _question(row)


async def one(connection: Connection, run: UUID, number: int) -> Question:
    """Raises NotFound."""
    if (found := await find(connection, run, number)) is None:
        raise NotFound("question", f"{run}/{number}")
    return found


async def overdue(connection: Connection, run: UUID, number: int) -> bool:
    """Its time is over, by the database's clock."""
    row = await (await connection.execute(OVERDUE, (run, number))).fetchone()
    return bool(row and row[0])


async def answer(
    connection: Connection, run: UUID, question: Question, given: Answer, answerer: Answerer, by: str = ""
) -> bool:
    """Store the answer; the first one stands. False: there is one already."""
    parameters = {
        "run": run,
        "seq": question.number,
        "answer": Jsonb(answer_json(question.asking.kind, given), dumps=orjson.dumps),
        "answerer": answerer,
        "by": by,
    }
    return await (await connection.execute(ANSWER, parameters)).fetchone() is not None


async def take(connection: Connection, run: UUID, number: int, seq: int) -> None:
    """Note that the run took the answer up with step `seq`."""
    await connection.execute(TAKE, (seq, run, number))


async def untaken(connection: Connection, run: UUID, interrupts: Sequence[str]) -> list[int]:
    """Numbers of answered questions of these interrupts that no step has taken up."""
    return [seq for (seq,) in await (await connection.execute(UNTAKEN, (run, list(interrupts)))).fetchall()]


async def some_answered(connection: Connection, run: UUID, numbers: Sequence[int], interrupts: Sequence[str]) -> bool:
    """Whether one of these has an answer."""
    row = await (await connection.execute(SOME_ANSWERED, (run, list(numbers), list(interrupts)))).fetchone()
    return bool(row and row[0])


async def until_due(connection: Connection, run: UUID) -> float | None:
    """Seconds until the first open question of a run takes its default. None: none does."""
    row = await (await connection.execute(UNTIL_DUE, (run,))).fetchone()
    return None if row is None else row[0]


def _question(row: Sequence[Any]) -> Question:
    """A row of `COLUMNS`."""
    seq, payload, asked_at, due_at, answered_at, answered, answerer, by, interrupt = row
    return Question(
        seq,
        asking_of(payload),
        asked_at,
        due_at,
        answered_at,
        None if answered is None else answer_of(answered),
        Answerer(answerer) if answerer else None,
        by,
        interrupt,
    )
