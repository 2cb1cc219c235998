"""Training jobs over HTTP: queued, watched, told what to do, and nobody else's."""

from typing import Any
from uuid import UUID

import psycopg

from offing.clock import new_id
from offing.models.policy_folder import PolicyHashes
from offing.services import policies
from offing.services.policies import PolicyRegistration
from offing.storage import training_jobs
from offing.storage.training_jobs import CommittedStep
from tests.api.conftest import Api

CONFIG: dict[str, Any] = {"algorithm": "flow-grpo", "policy": "planner@1"}

JOBS = "/api/v1/training-jobs"


async def a_policy(api: Api) -> None:
    await policies.register_version(
        api.database,
        api.tenant,
        PolicyRegistration(name="planner", kind="full", uri="/p", hashes=PolicyHashes("s", "t", "p")),
    )


async def a_job(api: Api) -> dict[str, Any]:
    created = await api.http.post(JOBS, json={"config": CONFIG})
    assert created.status_code == 201, created.text
    assert created.headers["Location"] == f"{JOBS}/{created.json()['id']}"
    return created.json()


async def test_a_job_is_queued_watched_and_told_what_to_do(api: Api) -> None:
    await a_policy(api)
    job = await a_job(api)
    path = f"{JOBS}/{job['id']}"
    assert (job["state"], job["name"], job["config"], job["step"]) == ("queued", "planner", CONFIG, 0)
    assert [j["id"] for j in (await api.http.get(f"{JOBS}?state=queued")).json()["items"]] == [job["id"]]
    assert [j["reward"] for j in (await api.http.get(JOBS)).json()["items"]] == [None]
    held = await training_jobs.claim_job(api.database, UUID(job["id"]), "trainer", 60)
    assert held is not None
    for step in (1, 2):
        async with api.database.transaction(api.tenant) as connection:
            done = CommittedStep(step, step, f"s{step}", {}, metrics={"reward": step / 4, "kl": float("inf")})
            await training_jobs.commit_step(connection, held, 60, done)
    assert [j["reward"] for j in (await api.http.get(JOBS)).json()["items"]] == [0.5]
    body = (await api.http.get(f"{path}/metrics?after=1")).json()
    assert [(m["step"], m["name"], m["value"]) for m in body["items"]] == [(2, "kl", None), (2, "reward", 0.5)]
    assert body["next"] == 2
    assert len((await api.http.get(f"{path}/metrics?name=reward&limit=1")).json()["items"]) == 1
    assert (await api.http.post(f"{path}/pause")).json()["requested_action"] == "pause"
    assert (await api.http.post(f"{path}/resume")).json()["requested_action"] is None
    assert (await api.http.post(f"{path}/cancel")).json()["requested_action"] == "cancel"
    async with api.database.transaction(api.tenant) as connection:
        await training_jobs.release_job(connection, held, "cancelled")
    assert (await api.http.post(f"{path}/resume")).status_code == 409
    assert (await api.http.get(path)).json()["state"] == "cancelled"
    events = (await api.http.get(f"{path}/events")).json()
    assert [e["kind"] for e in events["items"]] == ["created", "pause_requested", "resumed", "cancel_requested"]
    assert (await api.http.get(f"{path}/events?after={events['next']}")).json() == {"items": [], "next": None}


async def test_a_job_without_a_policy_that_there_is_names_the_field(api: Api) -> None:
    for config, field in (({}, "config.policy"), ({"policy": "planner@9"}, "config.policy")):
        rejected = await api.http.post(JOBS, json={"config": config})
        assert rejected.status_code == 422
        assert field in rejected.text
    await a_policy(api)
    rejected = await api.http.post(JOBS, json={"config": {"policy": "planner@1", "name": "../up"}})
    assert "config.name" in rejected.text


async def test_a_job_is_its_tenant_s_alone(api: Api) -> None:
    await a_policy(api)
    job = await a_job(api)
    for path in ("", "/metrics", "/events"):
        assert (await api.other.get(f"{JOBS}/{job['id']}{path}")).status_code == 404
    for verb in ("pause", "resume", "cancel"):
        assert (await api.other.post(f"{JOBS}/{job['id']}/{verb}")).status_code == 404
    assert (await api.other.get(JOBS)).json()["items"] == []


async def test_a_job_shows_what_the_judges_of_its_batches_have_used_and_their_budget(api: Api, owner_url: str) -> None:
    await a_policy(api)
    config = {**CONFIG, "collect": {"judge_budget": {"max_calls": 50, "max_cost_usd": 2.5}}}
    job = (await api.http.post(JOBS, json={"config": config})).json()["id"]
    with psycopg.connect(owner_url) as owner:
        for key, calls in ((f"{job}/0/0", 4), (f"{job}/1/0", 3), ("of another job", 7), (None, 9)):
            owner.execute(
                "insert into app.rollout_batch (id, tenant_id, request, idempotency_key, judge_calls, judge_cost_usd) "
                "values (%s, %s, '{}', %s, %s, 0.25)",
                (new_id(), api.tenant, key, calls),
            )
    judges = (await api.http.get(f"{JOBS}/{job}")).json()["judges"]
    assert (judges["calls"], judges["max_calls"]) == (7, 50)
    assert (float(judges["cost_usd"]), float(judges["max_cost_usd"])) == (0.5, 2.5)
    nothing = (await api.http.get(f"{JOBS}/{(await a_job(api))['id']}")).json()["judges"]
    assert nothing == {"calls": 0, "cost_usd": "0", "max_calls": None, "max_cost_usd": None}
