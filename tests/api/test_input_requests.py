"""What runs ask over HTTP: seen and answered by their tenant alone, once, and with what fits."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from offing.core.input_request import InputKind, InputPrompt, InputResponse, prompt_to_json
from offing.core.response_form import ResponseForm, ResponseShape, ToolReview, ToolReviewDecisionType
from offing.core.run import CancelMode, FencingToken, RunStatus
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.services.runs import cancel_run
from offing.storage import claims, input_requests, steps
from offing.storage.claims import Release
from offing.storage.input_requests import NewInputRequest
from tests.api.conftest import Api
from tests.api.simulated_worker import TERM
from tests.api.sse import Stream, following

YEAR = InputPrompt(InputKind.FREE_TEXT, "Which year?", choices=("1990", "1991"))
PLAN = InputPrompt(InputKind.PLAN_REVIEW, "Find it", steps=("look", "write"))
SURE = InputPrompt(InputKind.APPROVAL, "Delete it?", "All 3 pages.")
SEND = InputPrompt(
    InputKind.INTERRUPT,
    "May the run use send?",
    response_form=ResponseForm(
        ResponseShape.DECISIONS,
        (ToolReview("send", {"to": "Ada", "body": "Hi"}, "", tuple(ToolReviewDecisionType)[:3]),),
    ),
)
YEARS = InputPrompt(
    InputKind.INTERRUPT,
    "When?",
    response_form=ResponseForm(ResponseShape.VALUE, schema={"type": "array", "minItems": 1}),
)


async def append_request(api: Api, fence: FencingToken, prompt: InputPrompt) -> int:
    """As a worker asks: the step and the question in one transaction."""
    async with api.database.transaction(api.tenant) as connection:
        draft = StepDraft(StepKind.INPUT_REQUEST, prompt.prompt, prompt_to_json(prompt))
        (step,) = await steps.append_steps(connection, fence, TERM, [draft], UsageDelta())
        await input_requests.insert_input_request(connection, fence, NewInputRequest(step.seq, prompt))
    await api.hands.live.publish_steps(api.tenant, fence.run_id, [step])
    return step.seq


async def waiting(api: Api, *askings: InputPrompt) -> tuple[UUID, list[int]]:
    """A run that waits for the answers to these, and their numbers."""
    run = await api.submit()
    fence = await api.hands.claim(run)
    numbers = [await append_request(api, fence, prompt) for prompt in askings]
    async with api.database.transaction(api.tenant) as connection:
        release = Release(RunStatus.WAITING, waiting_for="a person's answer")
        await claims.release_run(connection, fence, release)
    return run, numbers


async def send(http: httpx.AsyncClient, run_id: UUID, number: int, **answer: Any) -> httpx.Response:
    return await http.post(f"/api/v1/runs/{run_id}/input-requests/{number}/response", json=answer)


async def get_detail(api: Api, run_id: UUID) -> dict[str, Any]:
    return (await api.http.get(f"/api/v1/runs/{run_id}")).json()


async def test_a_waiting_run_shows_its_questions_and_continues_with_an_answer(api: Api) -> None:
    run, (year,) = await waiting(api, YEAR)
    before = await get_detail(api, run)
    (request,) = (await api.http.get(f"/api/v1/runs/{run}/input-requests")).json()["items"]
    answered = await send(api.http, run, year, text="1991")
    after = await get_detail(api, run)
    assert (before["status"], before["pending_input_requests"]) == ("waiting", 1)
    assert (request["prompt"], request["choices"], request["pending"], request["response"]) == (
        "Which year?", ["1990", "1991"], True, None,
    )  # fmt: skip
    assert (answered.status_code, answered.json()["response"]["text"]) == (200, "1991")
    assert answered.json()["response"]["responded_by"].startswith("key:")
    assert (after["status"], after["pending_input_requests"]) == ("queued", 0)


async def test_the_first_answer_stands(api: Api) -> None:
    run, (sure,) = await waiting(api, SURE)
    assert (await send(api.http, run, sure, approved=False, comment="keep it")).status_code == 200
    second = await send(api.http, run, sure, approved=True)
    (request,) = (await api.http.get(f"/api/v1/runs/{run}/input-requests")).json()["items"]
    assert second.status_code == 409
    assert (request["response"]["approved"], request["response"]["comment"]) == (False, "keep it")


async def test_an_answer_to_one_of_two_questions_lets_the_run_continue(api: Api) -> None:
    run, (_, plan) = await waiting(api, YEAR, PLAN)
    edited = await send(api.http, run, plan, decision="edited", steps=["read", " ", "write"])
    assert edited.json()["response"]["steps"] == ["read", "write"]
    assert ((await get_detail(api, run))["status"], (await get_detail(api, run))["pending_input_requests"]) == (
        "queued",
        1,
    )


@pytest.mark.parametrize(
    ("prompt", "answer", "field"),
    [
        (YEAR, {"text": "1992"}, "text"),
        (YEAR, {}, "text"),
        (SURE, {"text": "yes"}, "approved"),
        (PLAN, {"steps": ["a"]}, "decision"),
        (PLAN, {"decision": "commented"}, "comment"),
        (PLAN, {"decision": "edited", "steps": [" "]}, "steps"),
        (PLAN, {"decision": "perhaps"}, "decision"),
        (SURE, {"approved": True, "comment": "x" * 20_001}, "comment"),
        (PLAN, {"decision": "edited", "steps": ["x" * 20_001]}, "answer"),
        (SURE, {"approved": True, "who": "me"}, "who"),
        (SURE, {"approved": True, "decisions": []}, "decisions"),
        (SEND, {}, "text"),
        (SEND, {"text": "do it"}, "text"),
        (SEND, {"decisions": [{"type": "respond", "message": "x"}]}, "decisions[0].type"),
        (SEND, {"decisions": [{"type": "approve"}, {"type": "approve"}]}, "decisions"),
        (SEND, {"decisions": [{"type": "perhaps"}]}, "decisions"),
        (SEND, {"decisions": [{"type": "approve"}], "text": "reject"}, "decisions"),
        (YEARS, {"text": "[]"}, "text"),
        (YEARS, {"decisions": [{"type": "approve"}]}, "decisions"),
    ],
)
async def test_an_answer_that_does_not_fit_is_rejected_by_its_field(
    api: Api, prompt: InputPrompt, answer: dict[str, Any], field: str
) -> None:
    run, (number,) = await waiting(api, prompt)
    rejected = await send(api.http, run, number, **answer)
    assert rejected.status_code == 422
    assert field in rejected.json()["field"]
    assert (await get_detail(api, run))["status"] == "waiting"


async def test_a_form_is_shown_and_its_answer_is_stored_as_the_graph_reads_it(api: Api) -> None:
    run, (send_it, years) = await waiting(api, SEND, YEARS)
    shown_send, shown_years = (await api.http.get(f"/api/v1/runs/{run}/input-requests")).json()["items"]
    (review,) = shown_send["response_form"]["reviews"]
    assert (review["name"], list(review["args"]), review["decisions"]) == (
        "send",
        ["to", "body"],
        ["approve", "edit", "reject"],
    )
    assert shown_years["response_form"] == {"reviews": [], "response_schema": {"type": "array", "minItems": 1}}
    rejected = await send(api.http, run, send_it, decisions=[{"type": "reject", "message": "no"}])
    assert (rejected.status_code, rejected.json()["pending"]) == (200, False)
    assert rejected.json()["response"]["text"] == '{"decisions": [{"type": "reject", "message": "no"}]}'
    assert (await send(api.http, run, years, text="[1990]")).json()["response"]["text"] == "[1990]"


async def test_another_tenant_neither_sees_nor_answers_a_question(api: Api) -> None:
    run, (year,) = await waiting(api, YEAR)
    assert (await api.other.get(f"/api/v1/runs/{run}/input-requests")).status_code == 404
    assert (await send(api.other, run, year, text="1991")).status_code == 404
    assert (await send(api.nobody, run, year, text="1991")).status_code == 401
    assert (await get_detail(api, run))["pending_input_requests"] == 1


async def test_a_question_that_is_not_there_is_not_found(api: Api) -> None:
    run, _ = await waiting(api, YEAR)
    assert (await send(api.http, run, 1, text="1991")).status_code == 404
    assert (await send(api.http, run, 999, text="1991")).status_code == 404


async def test_a_run_that_has_ended_takes_no_answer_and_waits_for_nobody(api: Api) -> None:
    run, (year,) = await waiting(api, YEAR)
    await cancel_run(api.database, api.app.state.dependencies.notifier, api.tenant, run, CancelMode.DISCARD)
    assert (await send(api.http, run, year, text="1991")).status_code == 409
    assert (await get_detail(api, run))["pending_input_requests"] == 0
    (request,) = (await api.http.get(f"/api/v1/runs/{run}/input-requests")).json()["items"]
    assert not request["pending"]


async def test_an_answer_that_comes_while_the_run_still_works_is_kept(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    year = await append_request(api, fence, YEAR)
    assert (await send(api.http, run, year, text="1990")).status_code == 200
    assert (await get_detail(api, run))["status"] == "running"
    async with api.database.transaction(api.tenant) as connection:
        assert (await input_requests.get_input_request(connection, run, year)).response == InputResponse(text="1990")


async def test_who_watches_a_run_is_told_that_it_asks_and_that_it_was_answered(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        year = await append_request(api, fence, YEAR)
        await stream.until(lambda message: _last(message) == 1)
        await send(api.http, run, year, text="1990")
        await stream.until(lambda message: _last(message) == 0)


def _last(message: Stream) -> int | None:
    """The open questions of the run as its watcher was told last."""
    seen = message.named("run")
    return seen[-1].data["pending_input_requests"] if seen else None
