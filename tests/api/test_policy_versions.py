"""Policy versions over HTTP: how they were evaluated, and which of them new runs get."""

from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.clock import new_id
from offing.models.policy_folder import PolicyHashes
from offing.services import policies
from offing.services.policies import PolicyRegistration
from tests.api.conftest import Api

POLICIES = "/api/v1/policy-versions"


@pytest.fixture
async def versions(api: Api) -> list[str]:
    """Ids of planner@1 and planner@2."""
    rows = [
        await policies.register_version(
            api.database,
            api.tenant,
            PolicyRegistration(name="planner", kind="full", uri=f"/p/{nth}", hashes=PolicyHashes(f"s{nth}", "t", "p")),
        )
        for nth in (1, 2)
    ]
    return [str(row.id) for row, _ in rows]


def evaluated(owner_url: str, tenant_id: UUID, version: str, rewards: dict[UUID, float | None]) -> None:
    """As an evaluation on these tasks would have been stored: two rollouts each. None: the platform failed."""
    evaluation = new_id()
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(
            "insert into app.evaluation (id, tenant_id, policy_version_id, dataset, mode, graph, seed) "
            "values (%s, %s, %s, 'held-out', 'greedy', 'quiet', 7)",
            (evaluation, tenant_id, version),
        )
        for task, reward in rewards.items():
            owner.execute(
                "insert into app.task (id, tenant_id, dataset, question, content_sha256) "
                "values (%s, %s, 'held-out', 'Who?', %s) on conflict do nothing",
                (task, tenant_id, task.hex),
            )
            outcome = "infra_error" if reward is None else "answered" if reward else "violated"
            for member in (0, 1):
                owner.execute(
                    "insert into app.evaluation_result (evaluation_id, task_id, member, tenant_id, reward, outcome, "
                    "turns, tokens) values (%s, %s, %s, %s, %s, %s, 2, 10)",
                    (evaluation, task, member, tenant_id, reward, outcome),
                )


async def post(api: Api, version: str, verb: str, body: dict[str, Any] | None = None) -> Any:
    return await api.http.post(f"{POLICIES}/{version}/{verb}", json=body)


async def states(api: Api) -> dict[int, str]:
    return {p["version"]: p["state"] for p in (await api.http.get(f"{POLICIES}?name=planner")).json()["items"]}


async def test_an_evaluation_shows_its_mean_with_an_interval_over_tasks(
    api: Api, versions: list[str], owner_url: str
) -> None:
    tasks = [new_id() for _ in range(5)]
    evaluated(owner_url, api.tenant, versions[1], dict(zip(tasks, (1.0, 1.0, 0.0, 0.0, None), strict=True)))
    for query in ("", "?name=planner", f"?policy_id={versions[1]}"):
        (result,) = (await api.http.get(f"/api/v1/evaluations{query}")).json()["items"]
        assert (result["policy_version"], result["tasks"], result["rollouts"], result["scored"]) == (
            "planner@2",
            4,
            10,
            8,
        )
        assert (result["reward"], result["violated_fraction"], result["turns"], result["tokens"]) == (
            0.5,
            0.5,
            2.0,
            10.0,
        )
        # Two ones and two zeros do not exclude any mean.
        assert (result["low"], result["high"]) == (0.0, 1.0)
    for query in ("?name=writer", f"?policy_id={versions[0]}"):
        assert (await api.http.get(f"/api/v1/evaluations{query}")).json() == {"items": [], "next": None}
    assert (await api.other.get("/api/v1/evaluations")).json()["items"] == []


async def test_an_interval_is_student_s_over_tasks_with_a_0_and_a_1_added(
    api: Api, versions: list[str], owner_url: str
) -> None:
    evaluated(owner_url, api.tenant, versions[1], {new_id(): float(n % 2) for n in range(38)})
    (result,) = (await api.http.get("/api/v1/evaluations")).json()["items"]
    # Twenty ones and twenty zeros: standard deviation 0.5, quantile of 39 degrees of freedom 2.0227.
    assert result["low"] == pytest.approx(0.5 - 2.0227 * 0.5 / 40**0.5, abs=1e-4)
    assert result["high"] == pytest.approx(0.5 + 2.0227 * 0.5 / 40**0.5, abs=1e-4)


async def test_one_task_says_nothing_of_the_mean_and_none_has_no_interval(
    api: Api, versions: list[str], owner_url: str
) -> None:
    evaluated(owner_url, api.tenant, versions[0], {new_id(): 1.0})
    evaluated(owner_url, api.tenant, versions[1], {})
    listed = (await api.http.get("/api/v1/evaluations")).json()["items"]
    assert [(e["policy_version"], e["tasks"], e["reward"], e["low"]) for e in listed] == [
        ("planner@2", 0, None, None),
        ("planner@1", 1, 1.0, 0.0),
    ]
    page = (await api.http.get("/api/v1/evaluations?limit=1")).json()
    rest = (await api.http.get(f"/api/v1/evaluations?limit=1&cursor={page['next']}")).json()
    assert [e["policy_version"] for e in page["items"] + rest["items"]] == ["planner@2", "planner@1"]


async def test_a_version_becomes_active_only_past_the_gate_unless_it_is_forced(
    api: Api, versions: list[str], owner_url: str
) -> None:
    first = (await post(api, versions[0], "promote", {})).json()
    assert (first["policy_version"]["state"], first["gate_result"]) == ("active", None)
    missing = await post(api, versions[1], "promote", {})
    assert missing.status_code == 422
    assert "not evaluated on the same tasks" in missing.text
    tasks = [new_id() for _ in range(8)]
    evaluated(owner_url, api.tenant, versions[0], dict.fromkeys(tasks, 1.0))
    evaluated(owner_url, api.tenant, versions[1], dict.fromkeys(tasks, 0.5))
    rejected = await post(api, versions[1], "promote", {})
    assert rejected.status_code == 409
    assert "the difference to the active version is -0.500" in rejected.text
    assert await states(api) == {1: "active", 2: "candidate"}
    forced = (await post(api, versions[1], "promote", {"force": True})).json()
    assert (forced["policy_version"]["state"], forced["gate_result"]) == ("active", None)
    events = (await api.http.get(f"{POLICIES}/{versions[1]}/events")).json()
    assert [e["kind"] for e in events["items"]] == ["gate", "promoted"]
    assert (await api.http.get(f"{POLICIES}/{versions[1]}/events?after={events['next']}")).json()["items"] == []


async def test_a_version_that_is_better_passes_and_says_by_how_much(
    api: Api, versions: list[str], owner_url: str
) -> None:
    await post(api, versions[0], "promote", {})
    tasks = [new_id() for _ in range(8)]
    evaluated(owner_url, api.tenant, versions[0], dict.fromkeys(tasks, 0.25))
    evaluated(owner_url, api.tenant, versions[1], dict.fromkeys(tasks, 1.0))
    passed = (await post(api, versions[1], "promote", {})).json()
    result = passed["gate_result"]
    assert (passed["policy_version"]["state"], result["pair_count"], result["difference"]) == ("active", 16, 0.75)


async def test_a_canary_gets_its_share_and_each_version_is_withdrawn_on_its_own(api: Api, versions: list[str]) -> None:
    await post(api, versions[0], "promote", {})
    tried = (await post(api, versions[1], "canary", {"fraction": 0.25})).json()
    assert (tried["state"], tried["canary_fraction"]) == ("canary", 0.25)
    alone = await post(api, versions[0], "rollback")
    assert alone.status_code == 409
    assert (await post(api, versions[1], "rollback")).json() == {"message": "planner@2 is no longer a canary"}
    assert (await post(api, versions[1], "rollback")).status_code == 409
    await post(api, versions[1], "promote", {"force": True})
    text = (await post(api, versions[1], "rollback")).json()["message"]
    assert text == "planner@1 is active again and replaces planner@2"
    assert await states(api) == {1: "active", 2: "retired"}
    for share in (0, 1.5):
        assert (await post(api, versions[1], "canary", {"fraction": share})).status_code == 422
