"""Collecting rollouts over HTTP: what is asked for, what is refused, and what never comes out."""

from typing import Any
from uuid import UUID

from tests.api.conftest import Api

SECRET = "Quintessenz von Nebelheim"

TASKS = [{"question": f"Question number {n}?", "answers": [SECRET], "name": f"q/{n}"} for n in range(3)]


def a_batch(**more: Any) -> dict[str, Any]:
    return {"graph": "quiet", "group_size": 2, "tasks": {"items": TASKS}, **more}


async def test_a_batch_is_made_watched_and_cancelled(api: Api) -> None:
    made = await api.http.post("/api/v1/batches", json=a_batch(name="first", tags=["pilot"]))
    assert made.status_code == 201, made.text
    batch = made.json()
    assert made.headers["Location"] == f"/api/v1/batches/{batch['id']}"
    assert (batch["progress"]["groups"], batch["progress"]["made"], batch["progress"]["waiting"]) == (3, 3, 6)
    assert batch["scorers"] == [{"name": "exact_match", "weight": 1, "options": {}}]
    group = (await api.http.get(f"/api/v1/groups?batch_id={batch['id']}&limit=1")).json()
    detail = (await api.http.get(f"/api/v1/groups/{group['items'][0]['id']}")).json()
    assert [(r["member"], r["attempt"], r["status"], r["outcome"]) for r in detail["rollouts"]] == [
        (0, 1, "queued", None),
        (1, 1, "queued", None),
    ]
    assert detail["scorers"][0]["version"] == "1"
    cancelled = (await api.http.post(f"/api/v1/batches/{batch['id']}/cancel")).json()
    assert cancelled["cancelled_at"] is not None
    assert (cancelled["progress"]["waiting"], cancelled["progress"]["unsettled"]) == (0, 6)


async def test_every_page_of_a_list_is_reached_and_nothing_comes_twice(api: Api) -> None:
    await api.http.post("/api/v1/batches", json=a_batch())
    await api.http.post("/api/v1/batches", json=a_batch(seed=1))
    for path, total in (("tasks", 3), ("batches", 2), ("groups", 6), ("rollouts", 12)):
        seen: list[str] = []
        cursor = ""
        while cursor is not None:
            page = (await api.http.get(f"/api/v1/{path}?limit=1{cursor and f'&cursor={cursor}'}")).json()
            seen += [item.get("run_id") or item["id"] for item in page["items"]]
            cursor = page["next"]
        assert len(set(seen)) == len(seen) == total, path


async def test_no_answer_about_a_running_rollout_holds_its_reference(api: Api) -> None:
    stored = await api.http.post("/api/v1/tasks", json={"dataset": "d", "tasks": TASKS})
    made = await api.http.post("/api/v1/batches", json=a_batch(tasks={"dataset": "d"}))
    (rollout, *_) = (await api.http.get("/api/v1/rollouts")).json()["items"]
    run, group = rollout["run_id"], rollout["group_id"]
    fence = await api.hands.claim(UUID(run))
    await api.hands.notes(fence, ["working"])
    answers = [stored.text, made.text]
    for path in (
        "tasks", f"tasks/{rollout['task_id']}", "batches", f"batches/{made.json()['id']}", "groups", f"groups/{group}",
        "rollouts", f"rollouts/{run}", "runs?kind=rollout", f"runs/{run}", f"runs/{run}/steps", f"runs/{run}/steps/1",
        f"threads/{(await api.http.get(f'/api/v1/runs/{run}')).json()['thread_id']}",
    ):  # fmt: skip
        answer = await api.http.get(f"/api/v1/{path}")
        assert answer.status_code == 200, path
        answers.append(answer.text)
    assert not [text for text in answers if SECRET in text]


async def test_a_repeat_with_the_same_key_is_the_same_batch(api: Api) -> None:
    key = {"Idempotency-Key": "once"}
    first = await api.http.post("/api/v1/batches", json=a_batch(), headers=key)
    again = await api.http.post("/api/v1/batches", json=a_batch(), headers=key)
    other = await api.http.post("/api/v1/batches", json=a_batch(group_size=3), headers=key)
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["progress"]["rollouts"] == 6


async def test_what_cannot_be_collected_is_refused_with_field_and_remedy(api: Api) -> None:
    judge = {"name": "rubric_judge", "options": {"engine": "extractive"}}
    unknown = "01980000-0000-7000-8000-000000000001"
    refused: list[tuple[dict[str, Any], int, str | None]] = [
        (a_batch(graph="nope"), 422, "graph"),
        (a_batch(policies={"speaker": "planner@7"}), 422, "policies.speaker"),
        (a_batch(policies={"speaker": "planner"}), 422, "policies.speaker"),
        (a_batch(policies={"singer": "planner@1"}), 422, "engines.singer"),
        (a_batch(policies={"speaker": "p@1"}, engines={"speaker": {"engine": "scripted"}}), 422, "policies.speaker"),
        (a_batch(scorers=[{"name": "taste"}]), 422, "scorers"),
        (a_batch(scorers=[judge]), 422, "scorers.rubric_judge.engine"),
        (a_batch(scorers=[{"name": "exact_match"}, {"name": "exact_match"}]), 422, "scorers"),
        (a_batch(tasks={"ids": [unknown]}), 404, None),
        (a_batch(tasks={"dataset": "nowhere"}), 422, "tasks.dataset"),
        (a_batch(tasks={"items": TASKS, "dataset": "d"}), 422, "tasks"),
        (a_batch(tasks={"items": [{"question": "Why?", "anwsers": ["x"]}]}), 422, "tasks.items.0.anwsers"),
        (a_batch(group_size=0), 422, "group_size"),
    ]  # fmt: skip
    for body, status, field in refused:
        answer = await api.http.post("/api/v1/batches", json=body)
        assert (answer.status_code, answer.json()["field"]) == (status, field), (body, answer.text)
        assert answer.json()["remedy"] or status == 404
    assert (await api.http.get("/api/v1/batches")).json()["items"] == []


async def test_a_single_rollout_is_not_steered_paused_or_cancelled(api: Api) -> None:
    await api.http.post("/api/v1/batches", json=a_batch())
    run = (await api.http.get("/api/v1/rollouts")).json()["items"][0]["run_id"]
    for verb, body in (("pause", None), ("resume", None), ("cancel", {}), ("messages", {"text": "Hurry"})):
        answer = await api.http.post(f"/api/v1/runs/{run}/{verb}", json=body)
        assert answer.status_code == 409
        assert answer.json()["remedy"] == "Cancel its batch instead."


async def test_lists_of_what_people_asked_leave_rollouts_out(api: Api) -> None:
    asked = await api.submit()
    await api.http.post("/api/v1/batches", json=a_batch())
    runs = (await api.http.get("/api/v1/runs")).json()["items"]
    threads = (await api.http.get("/api/v1/threads")).json()["items"]
    assert [run["id"] for run in runs] == [str(asked)]
    assert [run["id"] for thread in threads for run in thread["runs"]] == [str(asked)]
    assert len((await api.http.get("/api/v1/runs?kind=rollout")).json()["items"]) == 6


async def test_a_policy_moves_between_states_and_only_one_of_its_name_is_active(api: Api) -> None:
    from offing.services import policies

    made: list[str] = []
    for digest in "ab":
        row, _ = await policies.register(
            api.database, api.tenant, name="planner", kind="full", uri="/nowhere", sha256=digest * 64,
            tokenizer_sha256="", template_sha256="",
        )  # fmt: skip
        made.append(str(row.id))
    for id in made:
        assert (await api.http.post(f"/api/v1/policies/{id}/state", json={"state": "active"})).status_code == 200
    listed = (await api.http.get("/api/v1/policies?name=planner")).json()["items"]
    assert [(p["version"], p["state"]) for p in listed] == [(2, "active"), (1, "retired")]
    await api.http.post(f"/api/v1/policies/{made[0]}/state", json={"state": "bad"})
    back = await api.http.post(f"/api/v1/policies/{made[0]}/state", json={"state": "active"})
    assert (back.status_code, back.json()["remedy"]) == (409, "States that may follow: none.")
