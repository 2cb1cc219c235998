"""Questions as rows: the first answer stands, tenants are apart, and nothing of an erased source stays in an answer."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg.errors import CheckViolation

from offing.core.input_request import InputKind, InputPrompt, InputRequest, InputResponse, Responder, prompt_to_json
from offing.core.response_form import ResponseForm, ResponseShape, ToolReview, ToolReviewDecisionType
from offing.core.run import FencingToken
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.library.readers import DocumentReaderPool
from offing.services.erasure import erase_source
from offing.storage import input_requests, steps
from offing.storage.input_requests import NewInputRequest
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.storage.builders import TERM, claimed
from tests.storage.test_library_erasure import LEDGER, SECRET, a_run_that_read, find_tables, uploaded

YEAR = InputPrompt(InputKind.FREE_TEXT, "Which year?")


def letter(args: dict[str, Any]) -> InputPrompt:
    """A letter that a person decides about."""
    review = ToolReview("send", args, "A letter.", (ToolReviewDecisionType.APPROVE, ToolReviewDecisionType.EDIT))
    schema: dict[str, Any] = {"type": "object", "properties": {}, "if": {}}
    form = ResponseForm(ResponseShape.DECISIONS, (review,), schema)
    return InputPrompt(InputKind.INTERRUPT, "May the run use send?", response_form=form)


@pytest.fixture
async def readers() -> AsyncIterator[DocumentReaderPool]:
    async with DocumentReaderPool(1) as result:
        yield result


async def create_request(pool: Database, fence: FencingToken, prompt: InputPrompt = YEAR) -> InputRequest:
    async with pool.transaction(LOCAL_TENANT) as connection:
        draft = StepDraft(StepKind.INPUT_REQUEST, prompt.prompt, prompt_to_json(prompt))
        (step,) = await steps.append_steps(connection, fence, TERM, [draft], UsageDelta())
        await input_requests.insert_input_request(connection, fence, NewInputRequest(step.seq, prompt))
        return await input_requests.get_input_request(connection, fence.run_id, step.seq)


async def test_a_question_comes_back_as_it_was_asked(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    prompt = InputPrompt(
        InputKind.PLAN_REVIEW, "Plan", "why", steps=("a", "b"), default=InputResponse(comment="so"), timeout_seconds=60
    )
    question = await create_request(pool, fence, prompt)
    assert question.input_prompt == prompt
    assert question.default_at is not None
    assert question.is_pending


async def test_a_form_comes_back_with_the_order_of_its_keys(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    prompt = letter({"to": "Ada", "body": "Hello", "at": [{"b": 1, "a": None}]})
    question = await create_request(pool, fence, prompt)
    assert question.input_prompt == prompt
    assert question.input_prompt.response_form is not None
    assert list(question.input_prompt.response_form.reviews[0].args or ()) == ["to", "body", "at"]
    assert list(question.input_prompt.response_form.schema or ()) == ["type", "properties", "if"]


async def test_the_first_answer_stands(pool: Database) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    question = await create_request(pool, fence)
    async with pool.transaction(LOCAL_TENANT) as connection:
        first = await input_requests.store_response(
            connection, fence.run_id, question, InputResponse(text="1990"), Responder.PERSON, "me"
        )
        second = await input_requests.store_response(
            connection, fence.run_id, question, InputResponse(text="1991"), Responder.DEFAULT
        )
        input_request = await input_requests.get_input_request(connection, fence.run_id, question.seq)
    assert (first, second) == (True, False)
    assert (input_request.response, input_request.responder, input_request.responded_by) == (
        InputResponse(text="1990"),
        Responder.PERSON,
        "me",
    )


async def test_an_answer_is_never_taken_back(pool: Database, owner_url: str) -> None:
    fence = (await claimed(pool, LOCAL_TENANT)).fence
    question = await create_request(pool, fence)
    async with pool.transaction(LOCAL_TENANT) as connection:
        await input_requests.store_response(
            connection, fence.run_id, question, InputResponse(text="1990"), Responder.PERSON
        )
    with psycopg.connect(owner_url) as owner, pytest.raises(CheckViolation):
        owner.execute("update app.input_request set responded_at = null, response = null, responder = null")


async def test_what_people_answered_and_what_a_waiting_run_held_is_erased_with_a_source(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    fence = await a_run_that_read(pool, "mill", ended=False)
    question = await create_request(pool, fence, InputPrompt(InputKind.FREE_TEXT, f"Is this so: {SECRET}"))
    async with pool.transaction(LOCAL_TENANT) as connection:
        await input_requests.store_response(
            connection, fence.run_id, question, InputResponse(text=f"Yes: {SECRET}"), Responder.PERSON
        )
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(
            """insert into app.checkpoint_write (thread_id, checkpoint_id, task_id, idx, tenant_id, run_id, channel,
                                                 type, body)
               select thread_id, 'c', 't', 0, tenant_id, id, 'heard', 'msgpack', %s from app.run where id = %s""",
            (SECRET.encode(), fence.run_id),
        )
        owner.execute("update app.run set status = 'done' where id = %s", (fence.run_id,))
    assert find_tables(owner_url, "Ina Brook") >= {"input_request", "step", "checkpoint_write"}
    await erase_source(pool, LOCAL_TENANT, source)
    assert find_tables(owner_url, "Ina Brook") == set()


async def test_a_form_loses_what_was_copied_from_an_erased_source_and_is_a_form_still(
    pool: Database, owner_url: str, readers: DocumentReaderPool
) -> None:
    source = await uploaded(pool, readers, "ledger.md", LEDGER)
    fence = await a_run_that_read(pool, "mill", ended=False)
    half = len(SECRET.split()) // 2
    words = SECRET.split()
    args = {"body": f'"Zoé": {SECRET}\n', "lines": [" ".join(words[:half]), " ".join(words[half:])]}
    question = await create_request(pool, fence, letter(args))
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.run set status = 'done' where id = %s", (fence.run_id,))
    await erase_source(pool, LOCAL_TENANT, source)
    async with pool.transaction(LOCAL_TENANT) as connection:
        input_request = await input_requests.get_input_request(connection, fence.run_id, question.seq)
    assert input_request.input_prompt.response_form is not None
    assert (input_request.input_prompt.response_form.reviews[0].args or {})["body"] == '"Zoé": [erased].\n'
    assert list(input_request.input_prompt.response_form.reviews[0].args or ()) == ["body", "lines"]
