"""A graph's own `interrupt(value)` as a question to a person, and the answer as what that call returns.

The only home of both translations. Knows nothing of questions that are asked through the run's context.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from langgraph.types import Interrupt

from offing.core.question import MOST_TEXT, Asking, Question, QuestionKind, answer_json, asking_json, said, value_of
from offing.core.run import Fence
from offing.core.step import Step, StepDraft, StepKind
from offing.storage import questions
from offing.storage.pool import Connection, Database
from offing.storage.questions import NewQuestion
from offing_workers.recorder import Recorder

CUT = "\n… (the value goes on)"


async def taken_up(database: Database, recorder: Recorder, pending: Sequence[Interrupt]) -> dict[str, Any]:
    """What to go on with: the value for each interrupt that was answered, by its id. What is new is put on record."""
    if not pending:
        return {}
    fence, ids = recorder.fence, [interrupt.id for interrupt in pending]
    async with database.transaction(fence.tenant) as connection:
        known = await questions.of_interrupts(connection, fence.run, ids)
        fresh = await questions.untaken(connection, fence.run, ids)
    answered = [question for question in known.values() if question.answer is not None]
    for question in answered:
        if question.number in fresh:
            await _take(recorder, question)
    return {q.interrupt: value_of(q.answer) for q in answered if q.interrupt is not None and q.answer is not None}


async def not_yet_asked(connection: Connection, fence: Fence, raised: Sequence[Interrupt]) -> list[Interrupt]:
    """Interrupts that no question stands for; one that is raised again meanwhile is not asked twice."""
    known = await questions.of_interrupts(connection, fence.run, [interrupt.id for interrupt in raised])
    return list({interrupt.id: interrupt for interrupt in raised if interrupt.id not in known}.values())


def question_steps(raised: Sequence[Interrupt]) -> list[StepDraft]:
    return [asked_step(asking_of_value(interrupt.value)) for interrupt in raised]


async def store(connection: Connection, fence: Fence, raised: Sequence[Interrupt], new: Sequence[Step]) -> None:
    """Write the questions behind their steps, in the transaction that appends them."""
    for interrupt, step in zip(raised, new, strict=True):
        asking = asking_of_value(interrupt.value)
        await questions.insert(connection, fence, NewQuestion(step.seq, asking, interrupt.id))


def asking_of_value(value: Any) -> Asking:
    """A value that a graph interrupted itself with, for people: text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()
    shown = text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + CUT
    if isinstance(value, str):
        return Asking(QuestionKind.INTERRUPT, shown or "The run asks to go on.")
    return Asking(QuestionKind.INTERRUPT, _question_in(value) or "The run asks to go on.", shown)


def asked_step(asking: Asking, **more: Any) -> StepDraft:
    """The step of a question."""
    return StepDraft(StepKind.QUESTION, asking.prompt, asking_json(asking), detail=asking.detail, **more)


def answered_step(question: Question, **more: Any) -> StepDraft:
    """The step with which a run takes an answer up."""
    assert question.answer is not None
    payload = {
        "question": question.number,
        "answer": answer_json(question.asking.kind, question.answer),
        "answerer": question.answerer,
        "by": question.answered_by,
    }
    return StepDraft(StepKind.ANSWER, said(question.asking, question.answer), payload, **more)


async def _take(recorder: Recorder, question: Question) -> None:
    async def taken(connection: Connection, new: list[Step]) -> None:
        await questions.take(connection, recorder.fence.run, question.number, new[0].seq)

    await recorder.append(answered_step(question), also=taken)


def _question_in(value: Any) -> str:
    """The words of a mapping that carries its question under one of the usual names. Empty: it has none."""
    if not isinstance(value, Mapping):
        return ""
    found: list[Any] = [value.get(name) for name in ("question", "prompt", "message", "query", "instruction")]  # pyright: ignore[reportUnknownMemberType]
    return next((word for word in found if isinstance(word, str) and word.strip()), "")
