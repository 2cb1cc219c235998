"""Answering what runs ask: one transaction that stores the answer and lets the run go on, then a hint.

The only home of that. Knows nothing of how a run waits, nor of who may answer beyond the tenant.
"""

from dataclasses import dataclass
from uuid import UUID

from offing.core.errors import Conflict
from offing.core.question import Answer, Answerer, Question, check_answer
from offing.services.runs import Hints
from offing.storage import questions, runs, steps
from offing.storage.pool import Database


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and whether an answer would still be of use."""

    question: Question
    open: bool
    """False: it was answered, or its run has ended."""


async def asked(database: Database, tenant: UUID, run: UUID) -> list[Asked]:
    """What a run has asked so far, oldest first. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        row = await runs.by_id(connection, run)
        found = await questions.of_run(connection, run)
    return [Asked(question, question.open and not row.terminal) for question in found]


async def question(database: Database, tenant: UUID, run: UUID, number: int) -> Question:
    """Raises NotFound."""
    async with database.transaction(tenant) as connection:
        return await questions.one(connection, run, number)


async def answer(
    database: Database, hints: Hints, tenant: UUID, run: UUID, number: int, given: Answer, *, by: str
) -> Question:
    """Answer a question; the first answer stands, and the run goes on if it waits.

    Raises NotFound, InvalidInput when the answer does not fit, Conflict when there is an answer already or the run
    has ended.
    """
    async with database.transaction(tenant) as connection:
        row = await runs.locked(connection, run)
        found = await questions.one(connection, run, number)
        if not found.open:
            raise Conflict("This question has been answered.", "Read the run's questions again; its answer is there.")
        if row.terminal:
            raise Conflict(f"Run {run} has ended ({row.status}).", "Ask a follow-up question in its thread instead.")
        given = check_answer(found.asking, given)
        await questions.answer(connection, run, found, given, Answerer.PERSON, by)
        goes_on = await runs.queue_waiting(connection, run)
        answered = await questions.one(connection, run, number)
        told = await steps.by_seq(connection, run, [number])
    if goes_on:
        await hints.wake(run)
    await hints.steps(tenant, run, told)  # no news, but whoever watches looks at the run again
    return answered
