"""A person answers real packages' interrupts over the API: the form is shown, a wrong answer leaves the question open,
and the graph gets exactly what its package reads.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import pytest

from offing.api.app import create_app
from offing.core.run import RunStatus
from offing.core.step import StepKind
from offing.services import access
from offing.services.graphs import open_registry
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing_workers.replay import replay_run
from tests.api.conftest import bearer, serving, settings
from tests.peers import human_input
from tests.peers.peer_runs import PeerRuns, by_name, open_peer_runs
from tests.workers.interrupted_runs import Bench, bench

__all__ = ["bench", "settings"]

BY_NAME = by_name(*human_input.PEOPLE)


@dataclass
class Person:
    """Sees and answers what a run asks, as any client does."""

    http: httpx.AsyncClient
    runs: PeerRuns

    async def list_requests(self, run_id: UUID) -> list[dict[str, Any]]:
        result = (await self.http.get(f"/api/v1/runs/{run_id}/input-requests")).json()["items"]
        return [question for question in result if question["pending"]]

    async def answers(self, run_id: UUID, question: Mapping[str, Any], **answer: Any) -> httpx.Response:
        return await self.http.post(f"/api/v1/runs/{run_id}/input-requests/{question['number']}/response", json=answer)

    async def until_it_asks(self) -> tuple[UUID, list[dict[str, Any]]]:
        run = await self.runs.begin()
        await self.goes_on(run)
        return run, await self.list_requests(run)

    async def goes_on(self, run_id: UUID) -> None:
        while (await self.runs.row(run_id)).status is RunStatus.QUEUED:
            await self.runs.bench.advance(self.runs.bench.database, run_id)

    async def the_end(self, run_id: UUID) -> str:
        await self.goes_on(run_id)
        row = await self.runs.row(run_id)
        assert row.status is RunStatus.DONE, row.error
        return await self.runs.read_answer(run_id)


@pytest.fixture
async def person(request: pytest.FixtureRequest, bench: Bench, settings: Settings) -> AsyncIterator[Person]:
    peer = BY_NAME[request.param]
    key = await access.create_key(bench.database, LOCAL_TENANT, "person")
    async with open_peer_runs(bench, peer) as role_call:
        served = settings.model_copy(update={"extra_graphs": peer.place})
        async with (
            serving(create_app(served), served) as base,
            httpx.AsyncClient(base_url=base, headers=bearer(key.key), timeout=30) as http,
        ):
            yield Person(http, role_call)


def to(name: str) -> Any:
    return pytest.mark.parametrize("person", [name], indirect=True)


@to("batched")
async def test_the_form_shows_the_call_and_what_may_be_decided(person: Person) -> None:
    _, (question,) = await person.until_it_asks()
    (review,) = question["response_form"]["reviews"]
    assert question["prompt"] == "May the run use send?"
    assert (review["name"], review["args"]) == ("send", {"to": "Ada"})
    assert review["description"] == "Tool execution requires approval"
    assert review["decisions"] == ["approve", "edit", "reject", "respond"]


@pytest.mark.parametrize(
    ("decision", "end"),
    [
        ({"type": "approve"}, "Sent to Ada."),
        ({"type": "edit", "edited_action": {"args": {"to": "Bo"}}}, "Sent to Bo."),
        ({"type": "reject", "message": "not now"}, "with reason: not now"),
        ({"type": "respond", "message": "It went by post."}, "It went by post."),
    ],
)
@pytest.mark.parametrize("person", ["batched", "per_call"], indirect=True)
async def test_each_decision_reaches_the_middleware(person: Person, decision: dict[str, Any], end: str) -> None:
    run, (question,) = await person.until_it_asks()
    answered = await person.answers(run, question, decisions=[decision])
    assert answered.status_code == 200, answered.text
    assert end in await person.the_end(run)


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ({"text": "sure, why not"}, "text"),
        ({"decisions": []}, "decisions"),
        ({"decisions": [{"type": "ignore"}]}, "decisions[0].type"),
        ({"decisions": [{"type": "respond"}]}, "decisions[0].message"),
        ({"decisions": [{"type": "edit"}]}, "decisions[0].edited_action"),
        ({"decisions": [{"type": "approve"}], "text": "approve"}, "decisions"),
    ],
)
@pytest.mark.parametrize("person", ["batched", "per_call"], indirect=True)
async def test_a_wrong_answer_leaves_the_question_open_for_the_right_one(
    person: Person, answer: dict[str, Any], field: str
) -> None:
    run, (question,) = await person.until_it_asks()
    rejected = await person.answers(run, question, **answer)
    assert (rejected.status_code, rejected.json()["field"]) == (422, field)
    assert rejected.json()["remedy"]
    assert (await person.runs.row(run)).status is RunStatus.WAITING
    assert await person.list_requests(run) == [question]
    assert (await person.answers(run, question, text="approve")).status_code == 200
    assert await person.the_end(run) == "Sent to Ada."


@to("per_call")
async def test_edited_arguments_that_the_tool_would_reject_are_asked_for_again(person: Person) -> None:
    run, (question,) = await person.until_it_asks()
    wrong = {"type": "edit", "edited_action": {"args": {"to": 3}}}
    rejected = await person.answers(run, question, decisions=[wrong])
    assert rejected.json()["field"] == "decisions[0].edited_action.args.to"
    assert (await person.answers(run, question, text='edit: {"to": "Bo"}')).status_code == 200
    assert "Sent to Bo." in await person.the_end(run)


@to("two_batched")
async def test_two_calls_of_one_turn_are_decided_together_each_as_it_allows(person: Person) -> None:
    run, (question,) = await person.until_it_asks()
    assert [review["decisions"] for review in question["response_form"]["reviews"]][1] == ["approve", "reject"]
    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "Bo"}}}
    for wrong in ([edit], [edit, edit]):
        assert (await person.answers(run, question, decisions=wrong)).status_code == 422
    right = [edit, {"type": "reject", "message": "keep it"}]
    assert (await person.answers(run, question, decisions=right)).status_code == 200
    end = await person.the_end(run)
    assert "Sent to Bo." in end
    assert "keep it" in end
    answered = next(step for step in await person.runs.steps(run) if step.kind is StepKind.INPUT_RESPONSE)
    assert answered.title == "send: edit; drop: reject: keep it"


@to("two_per_call")
async def test_two_interrupts_that_are_open_at_once_have_their_own_forms(person: Person) -> None:
    run, questions = await person.until_it_asks()
    send, drop = sorted(questions, key=lambda question: question["response_form"]["reviews"][0]["name"], reverse=True)
    assert (await person.answers(run, drop, text="respond: no")).status_code == 422
    assert (await person.answers(run, drop, text="reject: keep it")).status_code == 200
    await person.goes_on(run)
    assert [question["number"] for question in await person.list_requests(run)] == [send["number"]]
    assert (await person.answers(run, send, text="respond: by post")).status_code == 200
    end = await person.the_end(run)
    assert "keep it" in end
    assert "by post" in end


@to("formed")
async def test_a_schema_is_shown_and_what_fits_it_reaches_the_node(person: Person) -> None:
    run, (question,) = await person.until_it_asks()
    schema = question["response_form"]["response_schema"]
    assert (question["response_form"]["reviews"], list(schema["properties"])) == ([], ["decision", "reason"])
    rejected = await person.answers(run, question, text='{"decision": "maybe"}')
    assert (rejected.status_code, rejected.json()["field"]) == (422, "text.decision")
    assert (await person.answers(run, question, decisions=[{"type": "approve"}])).json()["field"] == "decisions"
    assert (await person.answers(run, question, text='{"decision": "no", "reason": "late"}')).status_code == 200
    assert await person.the_end(run) == "no, since late"


@to("inbox")
async def test_a_human_interrupt_is_answered_with_human_responses(person: Person) -> None:
    run, (question,) = await person.until_it_asks()
    (review,) = question["response_form"]["reviews"]
    assert (review["description"], review["decisions"]) == ("A letter to **Ada**.", ["approve", "edit", "respond"])
    assert (await person.answers(run, question, text="ignore")).status_code == 422
    assert (await person.answers(run, question, decisions=[{"type": "approve"}])).status_code == 200
    assert await person.the_end(run) == "accept None"


@to("booker")
async def test_an_interrupt_of_no_known_form_takes_any_words(person: Person) -> None:
    run, (question,) = await person.until_it_asks()
    assert question["response_form"] is None
    assert (await person.answers(run, question, decisions=[{"type": "approve"}])).json()["field"] == "decisions"
    assert (await person.answers(run, question, text="perhaps")).status_code == 200
    assert await person.the_end(run) == "Done, a bed: perhaps."


@pytest.mark.parametrize("person", ["batched", "two_per_call", "formed", "inbox"], indirect=True)
async def test_a_run_with_a_form_is_the_same_again_from_its_record(person: Person) -> None:
    row = await person.runs.ask()
    assert row.status is RunStatus.DONE, row.error
    again = await replay_run(person.runs.bench.database, LOCAL_TENANT, row.id, open_registry(person.runs.bench.graphs))
    assert again.is_same, again.detail
