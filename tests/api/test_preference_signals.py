"""Preference pairs from what people said about runs: with its provenance, only with consent, and never held out."""

from typing import Any
from uuid import UUID

import orjson
import psycopg
import pytest

from offing.clock import new_id
from tests.api.conftest import Api
from tests.api.test_training_signals import QUESTIONS, allow, answered, correct, decide, make, rate
from tests.storage.rollouts import A, Collected


@pytest.fixture
def collected(api: Api, owner_url: str) -> Collected:
    return Collected(api.database, api.tenant, owner_url)


async def export(api: Api, **params: str) -> list[dict[str, Any]]:
    response = await api.http.get("/api/v1/trajectories", params={"format": "pairs", "kind": "interactive", **params})
    assert response.status_code == 200, response.text
    *lines, _ = response.text.splitlines()
    return [orjson.loads(line)["record"] for line in lines]


def rate_run(collected: Collected, run: UUID, value: float, person: str = "ada", version: int = 1) -> None:
    with psycopg.connect(collected.owner_url, autocommit=True) as owner:
        owner.execute(
            "insert into app.reward (id, tenant_id, run_id, target, scorer, version, value) "
            "values (%s, %s, %s, 'report', %s, %s, %s)",
            (new_id(), collected.tenant, run, f"person:{person}", version, value),
        )


async def test_a_corrected_answer_is_preferred_to_that_of_the_run_and_says_who_corrected_it(api: Api) -> None:
    await allow(api)
    run, other = await answered(api), await answered(api, QUESTIONS[1])
    await correct(api, run, "Rocks")
    right = await correct(api, run, "Rain and rocks")
    await rate(api, other, 1)
    (pair,) = await export(api, preference="correction")
    assert pair["prompt"] == [{"role": "user", "content": QUESTIONS[0]}]
    assert [pair[side][0]["content"] for side in ("chosen", "rejected")] == [
        "Rain and rocks",
        "Rivers carry dissolved salt into the sea.",
    ]
    assert (pair["preference"], pair["rejected_run_id"], pair["chosen_run_id"]) == ("correction", str(run), None)
    (signal,) = pair["signals"]
    assert (signal["kind"], signal["id"], signal["run_id"]) == ("answer_correction", right["id"], str(run))
    assert (signal["text_origin"], signal["given_by"]) == ("person", right["given_by"])
    assert await export(api) == [], "only if it is named"


async def test_runs_that_may_not_be_learned_from_are_in_no_pair(api: Api) -> None:
    await allow(api)
    run = await answered(api)
    await correct(api, run, "Rain and rocks")
    await decide(api, run, False)
    assert await export(api, preference="correction") == []
    await allow(api, False)
    params = {"format": "pairs", "kind": "interactive", "preference": "correction"}
    response = await api.http.get("/api/v1/trajectories", params=params)
    assert (response.status_code, response.json()["field"]) == (422, "kind")


async def test_questions_of_held_out_tasks_are_in_no_pair(api: Api) -> None:
    await allow(api)
    for question in QUESTIONS:
        await correct(api, await answered(api, question), "Rain and rocks")
    same = await answered(api, QUESTIONS[0])
    await correct(api, same, "Rocks")
    assert len(await export(api, preference="correction")) == 5
    task_set = await make(api, held_out_fraction=0.99)
    held_out = {task["question"] for task in task_set["tasks"] if task["split"] == "held_out"}
    assert QUESTIONS[0] in held_out
    assert {pair["prompt"][0]["content"] for pair in await export(api, preference="correction")}.isdisjoint(held_out)


async def test_a_question_that_continues_a_thread_is_in_no_pair(api: Api) -> None:
    await allow(api)
    first = await answered(api)
    thread = (await api.http.get(f"/api/v1/runs/{first}")).json()["thread_id"]
    await correct(api, await answered(api, "And why?", thread_id=thread), "Rain")
    assert await export(api, preference="correction") == []


async def test_runs_that_share_a_prompt_are_compared_by_their_ratings(api: Api, collected: Collected) -> None:
    await allow(api)
    good, bad = [await collected.rollout(A(text), kind="interactive") for text in ("good", "bad")]
    rate_run(collected, good, 1.0)
    rate_run(collected, good, 0.0, person="bob")
    rate_run(collected, bad, 1.0)
    assert [pair["chosen"][0]["content"] for pair in await export(api, preference="rating")] == ["bad"]
    rate_run(collected, bad, -1.0, version=2)
    (pair,) = await export(api, preference="rating")
    assert [pair[side][0]["content"] for side in ("chosen", "rejected")] == ["good", "bad"]
    assert (pair["chosen_reward"], pair["rejected_reward"], pair["role"]) == (0.5, -1.0, "planner")
    assert (pair["chosen_run_id"], pair["rejected_run_id"]) == (str(good), str(bad))
    assert pair["prompt"][-1]["content"] == "observation 0"
    assert sorted((one["run_id"], one["given_by"], one["value"]) for one in pair["signals"]) == sorted(
        [(str(good), "ada", 1.0), (str(good), "bob", 0.0), (str(bad), "ada", -1.0)]
    )
    await decide(api, bad, False)
    assert await export(api, preference="rating") == []


async def test_rated_rollouts_of_a_task_are_compared_by_their_ratings_instead_of_their_rewards(
    api: Api, collected: Collected
) -> None:
    group = collected.group()
    first = await collected.rollout(A("first"), group_id=group, reward=1.0)
    second = await collected.rollout(A("second"), group_id=group, member=1, reward=0.0)
    rate_run(collected, first, -1.0)
    rate_run(collected, second, 1.0)
    (by_reward,) = await export(api, kind="rollout")
    assert (by_reward["preference"], by_reward["chosen_run_id"]) == ("reward", str(first))
    assert await export(api, kind="rollout", preference="rating") == [], "the tenant has not agreed"
    await allow(api)
    (by_rating,) = await export(api, kind="rollout", preference="rating")
    assert (by_rating["preference"], by_rating["chosen_run_id"]) == ("rating", str(second))


@pytest.mark.parametrize(
    ("params", "remedy"),
    [
        ({"format": "rows", "preference": "rating"}, "Use the format pairs"),
        ({"format": "pairs", "preference": "correction"}, "Use the kind interactive"),
    ],
)
async def test_a_source_that_the_records_cannot_have_is_rejected(api: Api, params: dict[str, str], remedy: str) -> None:
    response = await api.http.get("/api/v1/trajectories", params=params)
    assert (response.status_code, response.json()["field"]) == (422, "preference")
    assert remedy in response.json()["remedy"]
