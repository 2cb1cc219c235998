"""Questions as rows: the first answer stands, tenants are apart, and nothing of an erased source stays in an answer."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg.errors import CheckViolation

from offing.core.question import Answer, Answerer, Asking, Question, QuestionKind, asking_json
from offing.core.response_form import DecisionType, ResponseForm, ResponseShape, ToolReview
from offing.core.run import Fence
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.library.readers import Readers
from offing.services.erasure import erase_source
from offing.storage import questions, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.questions import NewQuestion
from tests.storage.builders import TERM, claimed
from tests.storage.test_library_erasure import LEDGER, SECRET, a_run_that_read, uploaded, where_found

YEAR = Asking(QuestionKind.ASK, "Which year?")


def letter(args: dict[str, Any]) -> Asking:
    """A letter that a person decides about."""
    review = ToolReview("send", args, "A letter.", (DecisionType.APPROVE, DecisionType.EDIT))
    schema: dict[str, Any] = {"type": "object", "properties": {}, "if": {}}
    form = ResponseForm(ResponseShape.DECISIONS, (review,), schema)
    return Asking(QuestionKind.INTERRUPT, "May the run use send?", form=form)


@pytest.fixture
async def readers() -> AsyncIterator[Readers]:
    async with Readers(1) as found:
        yield found


async def asks(pool: Database, fence: Fence, asking: Asking = YEAR) -> Question:
    async with pool.transaction(LOCAL_TENANT) as connection:
        draft = StepDraft(StepKind.QUESTION, asking.prompt, asking_json(asking))
        (step,) = await steps.append(connection, fence, TERM, [draft], UsageDelta())
        await questions.insert(connection, fence, NewQuestion(step.seq, asking))
        return await questions.one(connection, fence.run, step.seq)


async def test_a_question_comes_back_as_it_was_asked(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    asking = Asking(QuestionKind.REVIEW, "Plan", "why", steps=("a", "b"), default=Answer(comment="so"), within=60)
    question = await asks(pool, fence, asking)
    assert question.asking == asking
    assert question.due_at is not None
    assert question.open


async def test_a_form_comes_back_with_the_order_of_its_keys(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    asking = letter({"to": "Ada", "body": "Hello", "at": [{"b": 1, "a": None}]})
    question = await asks(pool, fence, asking)
    assert question.asking == asking
    assert question.asking.form is not None
    assert list(question.asking.form.reviews[0].args or ()) == ["to", "body", "at"]
    assert list(question.asking.form.schema or ()) == ["type", "properties", "if"]


async def test_the_first_answer_stands(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    question = await asks(pool, fence)
    async with pool.transaction(LOCAL_TENANT) as connection:
        first = await questions.answer(connection, fence.run, question, Answer(text="1990"), Answerer.PERSON, "me")
        second = await questions.answer(connection, fence.run, question, Answer(text="1991"), Answerer.DEFAULT)
        found = await questions.one(connection, fence.run, question.number)
    assert (first, second) == (True, False)
    assert (found.answer, found.answerer, found.answered_by) == (Answer(text="1990"), Answerer.PERSON, "me")


async def test_an_answer_is_never_taken_back(pool: Database, owner_url: str) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    question = await asks(pool, fence)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await questions.answer(connection, fence.run, question, Answer(text="1990"), Answerer.PERSON)
    with psycopg.connect(owner_url) as owner, pytest.raises(CheckViolation):
        owner.execute("update app.question set answered_at = null, answer = null, answerer = null")


async def test_what_people_answered_and_what_a_waiting_run_held_is_erased_with_a_source(
    pool: Database, owner_url: str, readers: Readers
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    fence = await a_run_that_read(pool, "mill", ended=False)
    question = await asks(pool, fence, Asking(QuestionKind.ASK, f"Is this so: {SECRET}"))
    async with pool.transaction(LOCAL_TENANT) as connection:
        await questions.answer(connection, fence.run, question, Answer(text=f"Yes: {SECRET}"), Answerer.PERSON)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(
            """insert into app.checkpoint_write (thread_id, checkpoint_id, task_id, idx, tenant_id, run_id, channel,
                                                 type, body)
               select thread_id, 'c', 't', 0, tenant_id, id, 'heard', 'msgpack', %s from app.run where id = %s""",
            (SECRET.encode(), fence.run),
        )
        owner.execute("update app.run set status = 'done' where id = %s", (fence.run,))
    assert where_found(owner_url, "Ina Brook") >= {"question", "step", "checkpoint_write"}
    await erase_source(pool, LOCAL_TENANT, source)
    assert where_found(owner_url, "Ina Brook") == set()


async def test_a_form_loses_what_was_copied_from_an_erased_source_and_is_a_form_still(
    pool: Database, owner_url: str, readers: Readers
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    fence = await a_run_that_read(pool, "mill", ended=False)
    half = len(SECRET.split()) // 2
    words = SECRET.split()
    args = {"body": f'"Zoé": {SECRET}\n', "lines": [" ".join(words[:half]), " ".join(words[half:])]}
    question = await asks(pool, fence, letter(args))
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.run set status = 'done' where id = %s", (fence.run,))
    await erase_source(pool, LOCAL_TENANT, source)
    async with pool.transaction(LOCAL_TENANT) as connection:
        found = await questions.one(connection, fence.run, question.number)
    assert found.asking.form is not None
    assert (found.asking.form.reviews[0].args or {})["body"] == '"Zoé": [erased].\n'
    assert list(found.asking.form.reviews[0].args or ()) == ["body", "lines"]
