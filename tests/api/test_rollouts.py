"""Collecting rollouts over HTTP: what is asked for, what is rejected, and what never comes out."""

from typing import Any
from uuid import UUID

from offing.models.policy_folder import PolicyHashes
from offing.services.policies import PolicyRegistration
from tests.api.conftest import Api

SECRET = "Quintessenz von Nebelheim"

TASKS = [{"question": f"Question number {n}?", "answers": [SECRET], "name": f"q/{n}"} for n in range(3)]


def a_batch(**more: Any) -> dict[str, Any]:
    return {"graph": "quiet", "group_size": 2, "tasks": {"items": TASKS}, **more}


async def test_a_batch_is_made_watched_and_cancelled(api: Api) -> None:
    created = await api.http.post("/api/v1/rollout-batches", json=a_batch(name="first", tags=["pilot"]))
    assert created.status_code == 201, created.text
    batch = created.json()
    assert created.headers["Location"] == f"/api/v1/rollout-batches/{batch['id']}"
    assert (batch["progress"]["groups"], batch["progress"]["created_groups"], batch["progress"]["waiting"]) == (3, 3, 6)
    assert batch["scorers"] == [{"name": "exact_match", "weight": 1, "options": {}}]
    group = (await api.http.get(f"/api/v1/rollout-groups?batch_id={batch['id']}&limit=1")).json()
    detail = (await api.http.get(f"/api/v1/rollout-groups/{group['items'][0]['id']}")).json()
    assert [(r["member"], r["attempt"], r["status"], r["outcome"]) for r in detail["rollouts"]] == [
        (0, 1, "queued", None),
        (1, 1, "queued", None),
    ]
    assert detail["scorers"][0]["version"] == "1"
    cancelled = (await api.http.post(f"/api/v1/rollout-batches/{batch['id']}/cancel")).json()
    assert cancelled["cancelled_at"] is not None
    assert (cancelled["progress"]["waiting"], cancelled["progress"]["unfinalized"]) == (0, 6)


async def test_every_page_of_a_list_is_reached_and_nothing_comes_twice(api: Api) -> None:
    await api.http.post("/api/v1/rollout-batches", json=a_batch())
    await api.http.post("/api/v1/rollout-batches", json=a_batch(seed=1))
    for path, total in (("tasks", 3), ("rollout-batches", 2), ("rollout-groups", 6), ("rollouts", 12)):
        seen: list[str] = []
        cursor = ""
        while cursor is not None:
            page = (await api.http.get(f"/api/v1/{path}?limit=1{cursor and f'&cursor={cursor}'}")).json()
            seen += [item.get("run_id") or item["id"] for item in page["items"]]
            cursor = page["next"]
        assert len(set(seen)) == len(seen) == total, path


async def test_no_answer_about_a_running_rollout_holds_its_reference(api: Api) -> None:
    stored = await api.http.post("/api/v1/tasks", json={"dataset": "d", "tasks": TASKS})
    created = await api.http.post("/api/v1/rollout-batches", json=a_batch(tasks={"dataset": "d"}))
    (rollout, *_) = (await api.http.get("/api/v1/rollouts")).json()["items"]
    run, group = rollout["run_id"], rollout["group_id"]
    fence = await api.hands.claim(UUID(run))
    await api.hands.notes(fence, ["working"])
    answers = [stored.text, created.text]
    for path in (
        "tasks", f"tasks/{rollout['task_id']}", "rollout-batches", f"rollout-batches/{created.json()['id']}",
        "rollout-groups", f"rollout-groups/{group}",
        "rollouts", f"rollouts/{run}", "runs?kind=rollout", f"runs/{run}", f"runs/{run}/steps", f"runs/{run}/steps/1",
        f"threads/{(await api.http.get(f'/api/v1/runs/{run}')).json()['thread_id']}",
    ):  # fmt: skip
        answer = await api.http.get(f"/api/v1/{path}")
        assert answer.status_code == 200, path
        answers.append(answer.text)
    assert not [text for text in answers if SECRET in text]


async def test_a_repeat_with_the_same_key_is_the_same_batch(api: Api) -> None:
    key = {"Idempotency-Key": "once"}
    first = await api.http.post("/api/v1/rollout-batches", json=a_batch(), headers=key)
    again = await api.http.post("/api/v1/rollout-batches", json=a_batch(), headers=key)
    other = await api.http.post("/api/v1/rollout-batches", json=a_batch(group_size=3), headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["progress"]["rollouts"] == 6


async def test_what_cannot_be_collected_is_rejected_with_field_and_remedy(api: Api) -> None:
    judge = {"name": "rubric_judge", "options": {"engine": "extractive"}}
    unknown = "01980000-0000-7000-8000-000000000001"
    rejected: list[tuple[dict[str, Any], int, str | None]] = [
        (a_batch(graph="nope"), 422, "graph"),
        (a_batch(policies={"speaker": "planner@7"}), 422, "policies.speaker"),
        (a_batch(policies={"speaker": "planner"}), 422, "policies.speaker"),
        (a_batch(policies={"singer": "planner@1"}), 422, "engines.singer"),
        (a_batch(policies={"speaker": "p@1"}, engines={"speaker": {"engine": "scripted"}}), 422, "policies.speaker"),
        (a_batch(scorers=[{"name": "taste"}]), 422, "scorers"),
        (a_batch(scorers=[judge]), 422, "scorers.rubric_judge.engine"),
        (a_batch(scorers=[{"name": "exact_match"}, {"name": "exact_match"}]), 422, "scorers"),
        (a_batch(tasks={"task_ids": [unknown]}), 404, None),
        (a_batch(tasks={"dataset": "nowhere"}), 422, "tasks.dataset"),
        (a_batch(tasks={"items": TASKS, "dataset": "d"}), 422, "tasks"),
        (a_batch(tasks={"items": [{"question": "Why?", "anwsers": ["x"]}]}), 422, "tasks.items.0.anwsers"),
        (a_batch(group_size=0), 422, "group_size"),
    ]  # fmt: skip
    for body, status, field in rejected:
        answer = await api.http.post("/api/v1/rollout-batches", json=body)
        assert (answer.status_code, answer.json()["field"]) == (status, field), (body, answer.text)
        assert answer.json()["remedy"] or status == 404
    assert (await api.http.get("/api/v1/rollout-batches")).json()["items"] == []


async def test_a_single_rollout_is_not_steered_paused_or_cancelled(api: Api) -> None:
    await api.http.post("/api/v1/rollout-batches", json=a_batch())
    run = (await api.http.get("/api/v1/rollouts")).json()["items"][0]["run_id"]
    for verb, body in (("pause", None), ("resume", None), ("cancel", {}), ("messages", {"text": "Hurry"})):
        answer = await api.http.post(f"/api/v1/runs/{run}/{verb}", json=body)
        assert answer.status_code == 409
        assert answer.json()["remedy"] == "Cancel its batch instead."


async def test_lists_of_what_people_asked_leave_rollouts_out(api: Api) -> None:
    submitted = await api.submit()
    await api.http.post("/api/v1/rollout-batches", json=a_batch())
    runs = (await api.http.get("/api/v1/runs")).json()["items"]
    threads = (await api.http.get("/api/v1/threads")).json()["items"]
    assert [run["id"] for run in runs] == [str(submitted)]
    assert [run["id"] for thread in threads for run in thread["runs"]] == [str(submitted)]
    assert len((await api.http.get("/api/v1/runs?kind=rollout")).json()["items"]) == 6


async def test_a_policy_moves_between_states_and_only_one_of_its_name_is_active(api: Api) -> None:
    from offing.services import policies

    created: list[str] = []
    for digest in "ab":
        row, _ = await policies.register_version(
            api.database,
            api.tenant,
            PolicyRegistration(name="planner", kind="full", uri="/nowhere", hashes=PolicyHashes(digest * 64, "", "")),
        )
        created.append(str(row.id))
    for id in created:
        assert (await api.http.post(f"/api/v1/policy-versions/{id}/state", json={"state": "active"})).status_code == 200
    listed = (await api.http.get("/api/v1/policy-versions?name=planner")).json()["items"]
    assert [(p["version"], p["state"]) for p in listed] == [(2, "active"), (1, "retired")]
    await api.http.post(f"/api/v1/policy-versions/{created[0]}/state", json={"state": "blocked"})
    back = await api.http.post(f"/api/v1/policy-versions/{created[0]}/state", json={"state": "active"})
    assert (back.status_code, back.json()["remedy"]) == (409, "Possible next states: none.")
