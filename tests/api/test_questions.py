"""What runs ask over HTTP: seen and answered by their tenant alone, once, and with what fits."""

from typing import Any
from uuid import UUID

import httpx
import pytest

from offing.core.question import Answer, Asking, QuestionKind, asking_json
from offing.core.response_form import DecisionType, ResponseForm, ResponseShape, ToolReview
from offing.core.run import CancelMode, Fence, RunStatus
from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.services.runs import cancel
from offing.storage import questions, runs, steps
from offing.storage.questions import NewQuestion
from offing.storage.runs import Release
from tests.api.conftest import Api
from tests.api.hands import TERM
from tests.api.sse import Stream, following

YEAR = Asking(QuestionKind.ASK, "Which year?", choices=("1990", "1991"))
PLAN = Asking(QuestionKind.REVIEW, "Find it", steps=("look", "write"))
SURE = Asking(QuestionKind.APPROVE, "Delete it?", "All 3 pages.")
SEND = Asking(
    QuestionKind.INTERRUPT,
    "May the run use send?",
    form=ResponseForm(
        ResponseShape.DECISIONS,
        (ToolReview("send", {"to": "Ada", "body": "Hi"}, "", tuple(DecisionType)[:3]),),
    ),
)
YEARS = Asking(
    QuestionKind.INTERRUPT, "When?", form=ResponseForm(ResponseShape.VALUE, schema={"type": "array", "minItems": 1})
)


async def asks(api: Api, fence: Fence, asking: Asking) -> int:
    """As a worker asks: the step and the question in one transaction."""
    async with api.database.transaction(api.tenant) as connection:
        draft = StepDraft(StepKind.QUESTION, asking.prompt, asking_json(asking))
        (step,) = await steps.append(connection, fence, TERM, [draft], UsageDelta())
        await questions.insert(connection, fence, NewQuestion(step.seq, asking))
    await api.hands.live.steps(api.tenant, fence.run, [step])
    return step.seq


async def waiting(api: Api, *askings: Asking) -> tuple[UUID, list[int]]:
    """A run that waits for the answers to these, and their numbers."""
    run = await api.submit()
    fence = await api.hands.claim(run)
    numbers = [await asks(api, fence, asking) for asking in askings]
    async with api.database.transaction(api.tenant) as connection:
        release = Release(RunStatus.WAITING, waiting_for="a person's answer")
        await runs.hand_back(connection, fence, release)
    return run, numbers


async def send(http: httpx.AsyncClient, run: UUID, number: int, **answer: Any) -> httpx.Response:
    return await http.post(f"/api/v1/runs/{run}/questions/{number}/answer", json=answer)


async def shown(api: Api, run: UUID) -> dict[str, Any]:
    return (await api.http.get(f"/api/v1/runs/{run}")).json()


async def test_a_waiting_run_shows_its_questions_and_goes_on_with_an_answer(api: Api) -> None:
    run, (year,) = await waiting(api, YEAR)
    before = await shown(api, run)
    (asked,) = (await api.http.get(f"/api/v1/runs/{run}/questions")).json()["items"]
    answered = await send(api.http, run, year, text="1991")
    after = await shown(api, run)
    assert (before["status"], before["questions"]) == ("waiting", 1)
    assert (asked["prompt"], asked["choices"], asked["open"], asked["answer"]) == (
        "Which year?", ["1990", "1991"], True, None,
    )  # fmt: skip
    assert (answered.status_code, answered.json()["answer"]["text"]) == (200, "1991")
    assert answered.json()["answer"]["by"].startswith("key:")
    assert (after["status"], after["questions"]) == ("queued", 0)


async def test_the_first_answer_stands(api: Api) -> None:
    run, (sure,) = await waiting(api, SURE)
    assert (await send(api.http, run, sure, approved=False, comment="keep it")).status_code == 200
    second = await send(api.http, run, sure, approved=True)
    (asked,) = (await api.http.get(f"/api/v1/runs/{run}/questions")).json()["items"]
    assert second.status_code == 409
    assert (asked["answer"]["approved"], asked["answer"]["comment"]) == (False, "keep it")


async def test_an_answer_to_one_of_two_questions_lets_the_run_go_on(api: Api) -> None:
    run, (_, plan) = await waiting(api, YEAR, PLAN)
    edited = await send(api.http, run, plan, verdict="edited", steps=["read", " ", "write"])
    assert edited.json()["answer"]["steps"] == ["read", "write"]
    assert ((await shown(api, run))["status"], (await shown(api, run))["questions"]) == ("queued", 1)


@pytest.mark.parametrize(
    ("asking", "answer", "field"),
    [
        (YEAR, {"text": "1992"}, "text"),
        (YEAR, {}, "text"),
        (SURE, {"text": "yes"}, "approved"),
        (PLAN, {"steps": ["a"]}, "verdict"),
        (PLAN, {"verdict": "commented"}, "comment"),
        (PLAN, {"verdict": "edited", "steps": [" "]}, "steps"),
        (PLAN, {"verdict": "perhaps"}, "verdict"),
        (SURE, {"approved": True, "comment": "x" * 20_001}, "comment"),
        (PLAN, {"verdict": "edited", "steps": ["x" * 20_001]}, "answer"),
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
async def test_an_answer_that_does_not_fit_is_refused_by_its_field(
    api: Api, asking: Asking, answer: dict[str, Any], field: str
) -> None:
    run, (number,) = await waiting(api, asking)
    refused = await send(api.http, run, number, **answer)
    assert refused.status_code == 422
    assert field in refused.json()["field"]
    assert (await shown(api, run))["status"] == "waiting"


async def test_a_form_is_shown_and_its_answer_is_stored_as_the_graph_reads_it(api: Api) -> None:
    run, (send_it, years) = await waiting(api, SEND, YEARS)
    shown_send, shown_years = (await api.http.get(f"/api/v1/runs/{run}/questions")).json()["items"]
    (review,) = shown_send["form"]["reviews"]
    assert (review["name"], list(review["args"]), review["decisions"]) == (
        "send",
        ["to", "body"],
        ["approve", "edit", "reject"],
    )
    assert shown_years["form"] == {"reviews": [], "response_schema": {"type": "array", "minItems": 1}}
    rejected = await send(api.http, run, send_it, decisions=[{"type": "reject", "message": "no"}])
    assert (rejected.status_code, rejected.json()["open"]) == (200, False)
    assert rejected.json()["answer"]["text"] == '{"decisions": [{"type": "reject", "message": "no"}]}'
    assert (await send(api.http, run, years, text="[1990]")).json()["answer"]["text"] == "[1990]"


async def test_another_tenant_neither_sees_nor_answers_a_question(api: Api) -> None:
    run, (year,) = await waiting(api, YEAR)
    assert (await api.other.get(f"/api/v1/runs/{run}/questions")).status_code == 404
    assert (await send(api.other, run, year, text="1991")).status_code == 404
    assert (await send(api.nobody, run, year, text="1991")).status_code == 401
    assert (await shown(api, run))["questions"] == 1


async def test_a_question_that_is_not_there_is_not_found(api: Api) -> None:
    run, _ = await waiting(api, YEAR)
    assert (await send(api.http, run, 1, text="1991")).status_code == 404
    assert (await send(api.http, run, 999, text="1991")).status_code == 404


async def test_a_run_that_has_ended_takes_no_answer_and_waits_for_nobody(api: Api) -> None:
    run, (year,) = await waiting(api, YEAR)
    await cancel(api.database, api.app.state.parts.hints, api.tenant, run, CancelMode.DISCARD)
    assert (await send(api.http, run, year, text="1991")).status_code == 409
    assert (await shown(api, run))["questions"] == 0
    (asked,) = (await api.http.get(f"/api/v1/runs/{run}/questions")).json()["items"]
    assert not asked["open"]


async def test_an_answer_that_comes_while_the_run_still_works_is_kept(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    year = await asks(api, fence, YEAR)
    assert (await send(api.http, run, year, text="1990")).status_code == 200
    assert (await shown(api, run))["status"] == "running"
    async with api.database.transaction(api.tenant) as connection:
        assert (await questions.one(connection, run, year)).answer == Answer(text="1990")


async def test_who_watches_a_run_is_told_that_it_asks_and_that_it_was_answered(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        year = await asks(api, fence, YEAR)
        await stream.until(lambda told: _last(told) == 1)
        await send(api.http, run, year, text="1990")
        await stream.until(lambda told: _last(told) == 0)


def _last(told: Stream) -> int | None:
    """The open questions of the run as its watcher was told last."""
    seen = told.named("run")
    return seen[-1].data["questions"] if seen else None
