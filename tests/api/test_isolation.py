"""Another tenant's ids lead nowhere: every route that takes one answers as if the record did not exist."""

from dataclasses import dataclass
from uuid import UUID

import pytest

from offing.core.run import RunStatus
from offing.models.policy_folder import PolicyHashes
from offing.services import policies
from offing.services.policies import PolicyRegistration
from tests.api.conftest import Api

BATCH = {
    "graph": "quiet",
    "group_size": 1,
    "tasks": {"items": [{"question": "Why is the sea salt?", "answers": ["Rivers"]}]},
}


@dataclass(frozen=True)
class Mine:
    """What the local tenant has, for the other one to try."""

    run: UUID
    thread: str
    source: UUID
    text_id: str
    task: str
    batch: str
    group: str
    rollout: str
    policy: UUID
    share: str
    preset: str


@pytest.fixture
async def mine(api: Api) -> Mine:
    source = await api.hands.document()
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.report(fence, source)
    await api.http.patch(f"/api/v1/runs/{run}", json={"title": "Ours", "tags": ["ours"]})
    thread = (await api.http.get(f"/api/v1/runs/{run}")).json()["thread_id"]
    text_id = (await api.http.get(f"/api/v1/library/sources/{source}")).json()["text_id"]
    batch = (await api.http.post("/api/v1/rollout-batches", json=BATCH)).json()["id"]
    (rollout,) = (await api.http.get("/api/v1/rollouts")).json()["items"]
    policy, _ = await policies.register_version(
        api.database,
        api.tenant,
        PolicyRegistration(name="planner", kind="full", uri="/nowhere", hashes=PolicyHashes("a" * 64, "", "")),
    )
    share = (await api.http.post(f"/api/v1/runs/{run}/shares", json={})).json()["share"]["id"]
    await api.http.put("/api/v1/providers/groq", json={"key": "key-of-the-local-tenant"})
    await api.http.put("/api/v1/presets/ours", json={"engines": {"all": {"engine": "extractive"}}})
    await api.http.put("/api/v1/tool-policies/ours", json={"policy": {"rules": []}})
    saved = await api.http.post("/api/v1/question-presets", json={"name": "Ours", "settings": {}})
    preset = saved.json()["id"]
    return Mine(
        run,
        thread,
        source,
        text_id,
        rollout["task_id"],
        batch,
        rollout["group_id"],
        rollout["run_id"],
        policy.id,
        share,
        preset,
    )


def attempts(mine: Mine) -> list[tuple[str, str, object]]:
    at = f"/api/v1/runs/{mine.run}"
    return [
        ("GET", at, None),
        ("GET", f"{at}/wait?timeout=0.1", None),
        ("GET", f"{at}/steps", None),
        ("GET", f"{at}/steps/1", None),
        ("GET", f"{at}/whole-steps?kind=tool_result", None),
        ("GET", f"{at}/events", None),
        ("GET", f"/api/v1/events?cursor={mine.run}:0", None),
        ("GET", f"{at}/input-requests", None),
        ("POST", f"{at}/input-requests/1/response", {"text": "Rivers"}),
        ("GET", f"{at}/langgraph", None),
        ("POST", f"{at}/interrupts/x/response", {"text": "Rivers"}),
        ("GET", f"{at}/report", None),
        ("GET", f"{at}/report?version=1", None),
        ("GET", f"{at}/report/versions", None),
        ("POST", f"{at}/report/versions", {"base_version": 1, "title": "Theirs", "sections": []}),
        ("POST", f"{at}/report/versions/1/restore", {"latest_version": 1}),
        ("GET", f"{at}/report/changes?old=1&new=1", None),
        ("GET", f"{at}/evidence", None),
        ("GET", f"{at}/files", None),
        ("GET", f"{at}/export?format=md", None),
        ("GET", f"{at}/export?format=json", None),
        ("GET", f"{at}/shares", None),
        ("POST", f"{at}/shares", {}),
        ("DELETE", f"/api/v1/shares/{mine.share}", None),
        ("GET", f"{at}/ratings", None),
        ("POST", f"{at}/ratings", {"value": 1}),
        ("GET", f"{at}/training-signals", None),
        ("POST", f"{at}/answer-corrections", {"answer": "Theirs"}),
        ("PUT", f"{at}/training-consent", {"is_allowed": True}),
        ("PATCH", at, {"title": "Theirs", "tags": ["theirs"], "pinned": True, "archived": True}),
        ("DELETE", at, None),
        ("DELETE", f"{at}?later_runs=true", None),
        ("POST", f"{at}/cancel", {"mode": "discard"}),
        ("POST", f"{at}/pause", None),
        ("POST", f"{at}/resume", None),
        ("POST", f"{at}/messages", {"text": "Hello"}),
        ("GET", f"{at}/plan", None),
        ("PUT", f"{at}/plan", {"items": [{"text": "Rivers"}], "version": 0}),
        ("GET", f"{at}/step-matches?q=salt", None),
        ("GET", f"{at}/nodes", None),
        ("GET", f"{at}/usage", None),
        ("GET", f"{at}/sources", None),
        ("GET", f"/api/v1/threads/{mine.thread}", None),
        ("POST", "/api/v1/runs", {"question": "Why is that?", "graph": "quiet", "thread_id": mine.thread}),
        ("GET", f"/api/v1/library/sources/{mine.source}", None),
        ("DELETE", f"/api/v1/library/sources/{mine.source}", None),
        ("POST", "/api/v1/library/sources/move", {"source_ids": [str(mine.source)], "collection": "theirs"}),
        ("POST", "/api/v1/library/collections/rename", {"name": "papers", "new_name": "theirs"}),
        ("DELETE", "/api/v1/library/collections?name=papers&documents=erase", None),
        ("GET", f"/api/v1/library/passages?text_id={mine.text_id}&start=0&end=4", None),
        ("GET", f"/api/v1/tasks/{mine.task}", None),
        ("GET", f"/api/v1/rollout-batches/{mine.batch}", None),
        ("POST", f"/api/v1/rollout-batches/{mine.batch}/cancel", None),
        ("POST", "/api/v1/rollout-batches", BATCH | {"tasks": {"task_ids": [mine.task]}}),
        ("GET", f"/api/v1/rollout-groups/{mine.group}", None),
        ("GET", f"/api/v1/rollout-groups?batch_id={mine.batch}", None),
        ("GET", f"/api/v1/rollouts/{mine.rollout}", None),
        ("GET", f"/api/v1/rollouts?batch_id={mine.batch}", None),
        ("GET", f"/api/v1/runs/{mine.rollout}", None),
        ("GET", f"/api/v1/policy-versions/{mine.policy}", None),
        ("POST", f"/api/v1/policy-versions/{mine.policy}/state", {"state": "blocked"}),
        ("GET", f"/api/v1/policy-versions/{mine.policy}/events", None),
        ("POST", f"/api/v1/policy-versions/{mine.policy}/promote", {"force": True}),
        ("POST", f"/api/v1/policy-versions/{mine.policy}/canary", {"fraction": 0.5}),
        ("POST", f"/api/v1/policy-versions/{mine.policy}/rollback", None),
        ("GET", "/api/v1/providers/groq", None),
        ("GET", "/api/v1/providers/groq/models", None),
        ("POST", "/api/v1/providers/groq/test", {"model": "openai/gpt-oss-20b", "max_cost_usd": 0}),
        ("DELETE", "/api/v1/providers/groq", None),
        ("DELETE", "/api/v1/presets/ours", None),
        ("GET", "/api/v1/tool-policies/ours", None),
        ("DELETE", "/api/v1/tool-policies/ours", None),
        ("PATCH", f"/api/v1/question-presets/{mine.preset}", {"name": "Theirs"}),
        ("DELETE", f"/api/v1/question-presets/{mine.preset}", None),
    ]


async def test_ids_of_another_tenant_are_not_found_anywhere(api: Api, mine: Mine) -> None:
    for method, path, body in attempts(mine):
        response = await api.other.request(method, path, json=body)
        assert response.status_code == 404, (method, path, response.text)
    after = (await api.http.get(f"/api/v1/runs/{mine.run}")).json()
    assert (after["status"], after["last_seq"]) == ("running", 2)
    assert (after["given_title"], after["tags"], after["pinned_at"], after["archived_at"]) == (
        "Ours",
        ["ours"],
        None,
        None,
    )
    assert (await api.http.get(f"/api/v1/library/sources/{mine.source}")).status_code == 200
    assert (await api.http.get(f"/api/v1/rollout-batches/{mine.batch}")).json()["cancelled_at"] is None
    assert (await api.http.get(f"/api/v1/policy-versions/{mine.policy}")).json()["state"] == "candidate"
    assert (await api.http.get("/api/v1/providers/groq")).json()["key_set"]
    assert [one["state"] for one in (await api.http.get("/api/v1/shares")).json()["items"]] == ["open"]
    assert (await api.other.get("/api/v1/shares")).json()["items"] == []
    assert "ours" in [one["name"] for one in (await api.http.get("/api/v1/presets")).json()]


async def test_several_runs_of_another_tenant_are_neither_changed_nor_deleted_nor_counted(api: Api, mine: Mine) -> None:
    ended = await api.submit()
    await api.hands.end(await api.hands.claim(ended), RunStatus.DONE)
    changes = {"changes": [{"run_id": str(ended), "title": "Theirs", "archived": True}]}
    (changed,) = (await api.other.patch("/api/v1/runs", json=changes)).json()["items"]
    assert (changed["run"], changed["problem"]["status"]) == (None, 404)
    (deleted,) = (await api.other.post("/api/v1/runs/deletions", json={"run_ids": [str(ended)]})).json()["items"]
    assert (deleted["deletion"], deleted["problem"]["status"]) == (None, 404)
    assert (await api.http.get(f"/api/v1/runs/{ended}")).json()["given_title"] == ""
    assert set((await api.other.get("/api/v1/runs/counts")).json().values()) == {0}
    assert (await api.other.get("/api/v1/runs?order=cost")).json()["items"] == []
    assert len((await api.http.get("/api/v1/runs?order=cost")).json()["items"]) == 1


async def test_a_batch_cannot_name_a_policy_of_another_tenant(api: Api, mine: Mine) -> None:
    expected = BATCH | {"policies": {"speaker": "planner@1"}}
    rejected = await api.other.post("/api/v1/rollout-batches", json=expected)
    assert (rejected.status_code, rejected.json()["field"]) == (422, "policies.speaker")
    assert (await api.http.post("/api/v1/rollout-batches", json=expected)).status_code == 201


async def test_the_same_ids_are_found_by_their_owner(api: Api, mine: Mine) -> None:
    for method, path, _ in attempts(mine):
        if method == "GET" and "events" not in path and not path.endswith("/langgraph"):  # no LangGraph client made it
            assert (await api.http.get(path)).status_code == 200, path


async def test_lists_searches_and_metrics_show_nothing_of_another_tenant(api: Api, mine: Mine) -> None:
    of_library = ("/api/v1/library", "/api/v1/library/search?q=salt")
    collected = (
        "/api/v1/tasks",
        "/api/v1/rollout-batches",
        "/api/v1/rollout-groups",
        "/api/v1/rollouts",
        "/api/v1/policy-versions",
        "/api/v1/question-presets",
    )
    of_runs = [
        f"/api/v1/runs?{query}"
        for query in (
            *("q=salt", "q=rivers", "q=ours", "tag=ours", "graph=quiet", "status_group=active", "archived=any"),
            *("q=salt&order=newest", "order=oldest", "latest_of_thread=true"),
        )
    ]
    for path in ("/api/v1/runs", *of_runs, "/api/v1/threads", *of_library, *collected):
        assert (await api.other.get(path)).json()["items"] == [], path
        assert (await api.http.get(path)).json()["items"] != [], path
    assert (await api.other.get("/api/v1/library/collections")).json() == []
    assert (await api.other.get("/api/v1/providers")).json() == []
    assert (await api.other.get("/api/v1/tool-policies")).json() == []
    assert "ours" not in [one["name"] for one in (await api.other.get("/api/v1/presets")).json()]
    assert 'graph="quiet"' not in (await api.other.get("/api/v1/metrics")).text
    assert 'graph="quiet"' in (await api.http.get("/api/v1/metrics")).text
