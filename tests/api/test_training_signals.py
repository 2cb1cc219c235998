"""What people say about runs is stored, may be learned from only with consent, and becomes tasks without overlap."""

from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.errors import InvalidInput
from offing.core.run_reference import REJECTED_CRITERION
from offing.services.run_tasks import TaskSetRequest, make_tasks_from_runs
from offing.services.tasks import list_dataset_task_ids
from tests.api.conftest import Api
from tests.workers.wire_trace import TracedDatabase

ANSWER = {"id": "s1", "text": "Rivers carry salt into the sea.", "citations": [1]}
QUESTIONS = ["Why is the sea salt?", "Who built Bell Rock?", "How tall are oaks?", "Where do eels breed?"]


async def answered(api: Api, question: str = QUESTIONS[0], **more: object) -> UUID:
    """An ended run with a report: s1 is the answer and s2 the same sentence, both with a citation; s3 has none."""
    source = await api.hands.document()
    run = await api.submit(question, **more)
    fence = await api.hands.claim(run)
    await api.hands.report(fence, source)
    await api.hands.end(fence)
    return run


async def allow(api: Api, opt_in: bool = True) -> None:
    response = await api.http.patch("/api/v1/tenant", json={"training_opt_in": opt_in})
    assert response.status_code == 200, response.text


async def rate(api: Api, run: UUID, value: float, sentence: str | None = None) -> None:
    body = {"value": value, "sentence_id": sentence}
    assert (await api.http.post(f"/api/v1/runs/{run}/ratings", json=body)).status_code == 201


async def correct(api: Api, run: UUID, answer: str) -> dict[str, Any]:
    response = await api.http.post(f"/api/v1/runs/{run}/answer-corrections", json={"answer": answer})
    assert response.status_code == 201, response.text
    return response.json()


async def make(api: Api, **more: object) -> dict[str, Any]:
    response = await api.http.post("/api/v1/tasks/from-runs", json={"dataset": "ours", "held_out_fraction": 0, **more})
    assert response.status_code == 200, response.text
    return response.json()


async def decide(api: Api, run: UUID, is_allowed: bool | None) -> dict[str, Any]:
    response = await api.http.put(f"/api/v1/runs/{run}/training-consent", json={"is_allowed": is_allowed})
    assert response.status_code == 200, response.text
    return response.json()


async def test_everything_that_a_person_said_about_a_run_is_listed_with_its_origin(api: Api) -> None:
    run = await answered(api)
    await rate(api, run, 1)
    await rate(api, run, -1, "s3")
    await correct(api, run, "Rivers")
    edit: dict[str, Any] = {"base_version": 1, "latest_version": 1, "title": "Salt", "answer": ANSWER, "sections": []}
    saved = await api.http.post(f"/api/v1/runs/{run}/report/versions", json=edit)
    assert saved.status_code == 201, saved.text
    listing = (await api.http.get(f"/api/v1/runs/{run}/training-signals")).json()
    name = f"key:{api.keys['mine'].split('_')[1]}"
    assert [(s["kind"], s["given_by"], s["report_version"], s["sentence_id"], s["value"], s["text"], s["base_version"])
            for s in listing["items"]] == [
        ("report_rating", name, 1, None, 1, "", None),
        ("sentence_rating", name, 1, "s3", -1, "", None),
        ("answer_correction", name, 1, None, None, "Rivers", None),
        ("report_edit", name, 2, None, None, "", 1),
    ]  # fmt: skip
    assert {s["text_origin"] for s in listing["items"]} == {"person"}
    assert listing["consent"] == {"may_learn": False, "is_decided": False, "decided_by": "", "decided_at": None}


async def test_a_run_may_be_learned_from_as_decided_for_it_and_else_as_the_tenant_says(api: Api) -> None:
    run = await answered(api)
    assert (await decide(api, run, True))["may_learn"] is True
    await allow(api)
    decision = await decide(api, run, False)
    assert (decision["may_learn"], decision["is_decided"], decision["decided_by"]) == (
        False,
        True,
        f"key:{api.keys['mine'].split('_')[1]}",
    )
    assert (await decide(api, run, None))["may_learn"] is True


async def test_runs_become_tasks_with_what_people_said_as_their_reference(api: Api, owner_url: str) -> None:
    await allow(api)
    corrected, accepted, rejected = [await answered(api, question) for question in QUESTIONS[:3]]
    await correct(api, corrected, "Rain")
    await correct(api, corrected, "Rivers")
    await rate(api, accepted, 1)
    await rate(api, accepted, 1, "s2")
    await rate(api, rejected, -1, "s3")
    task_set = await make(api)
    assert [(t["question"], t["has_answer"], t["evidence_count"], t["criterion_count"]) for t in task_set["tasks"]] == [
        (QUESTIONS[0], True, 0, 0),
        (QUESTIONS[1], True, 1, 0),
        (QUESTIONS[2], False, 0, 1),
    ]
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute(
            "select t.question, f.answers, f.evidence, f.rubric, t.tags from app.task t "
            "join app.task_reference f on f.task_id = t.id order by t.name"
        ).fetchall()
    assert [(row[0], row[1]) for row in rows] == [
        (QUESTIONS[0], ["Rivers"]),
        (QUESTIONS[1], ["Rivers carry dissolved salt into the sea."]),
        (QUESTIONS[2], None),
    ]
    assert [row[4] for row in rows] == [["from-runs", "answer:person"], ["from-runs", "answer:model"], ["from-runs"]]
    assert rows[1][2][0]["quote"] == "", "the words of a document are not copied"
    assert rows[2][3] == [{"text": REJECTED_CRITERION, "weight": 1.0, "rejected": "Nobody knows more."}]


async def test_what_is_left_out_is_counted_with_its_reason(api: Api) -> None:
    await allow(api)
    chosen, twin, silent, private, bad = [
        await answered(api, question) for question in (QUESTIONS[0], "why is the SEA salt", *QUESTIONS[1:])
    ]
    for run in (chosen, twin, private):
        await correct(api, run, "Rivers")
    await rate(api, bad, -1)
    await decide(api, private, False)
    task_set = await make(api)
    assert task_set["left_out"] == {"duplicate": 1, "no_consent": 1, "no_reference": 1, "no_signal": 1}
    assert [task["run_id"] for task in task_set["tasks"]] == [str(chosen)]
    assert silent not in [UUID(task["run_id"]) for task in task_set["tasks"]]


async def test_a_follow_up_is_a_task_only_if_asked_for_and_then_on_the_side_of_its_thread(api: Api) -> None:
    await allow(api)
    first = await answered(api)
    thread = (await api.http.get(f"/api/v1/runs/{first}")).json()["thread_id"]
    later = await answered(api, "How deep is it?", thread_id=thread)
    for run in (first, later):
        await correct(api, run, "Rivers")
    assert (await make(api, held_out_fraction=0.5, is_dry_run=True))["left_out"] == {"follow_up": 1}
    tasks = (await make(api, held_out_fraction=0.5, includes_follow_ups=True))["tasks"]
    assert len(tasks) == 2
    assert tasks[0]["split"] == tasks[1]["split"]


async def test_a_dry_run_stores_nothing_and_a_repetition_nothing_new(api: Api) -> None:
    await allow(api)
    await correct(api, await answered(api), "Rivers")
    dry = await make(api, is_dry_run=True)
    assert (dry["id"], dry["train_count"], dry["new_count"]) == (None, 1, 0)
    assert (await api.http.get("/api/v1/tasks")).json()["items"] == []
    assert (await make(api))["new_count"] == 1
    assert (await make(api))["new_count"] == 0


async def test_a_dataset_keeps_its_split(api: Api) -> None:
    await allow(api)
    await correct(api, await answered(api), "Rivers")
    await make(api)
    changed = {"dataset": "ours", "held_out_fraction": 0, "seed": 1}
    response = await api.http.post("/api/v1/tasks/from-runs", json=changed)
    assert response.status_code == 422
    assert "another name" in response.text


async def test_a_withdrawn_or_deleted_run_is_in_no_later_set_and_no_later_collection(api: Api) -> None:
    await allow(api)
    runs = [await answered(api, question) for question in QUESTIONS[:3]]
    for run in runs:
        await correct(api, run, "Rivers")
    await make(api)
    assert len(await list_dataset_task_ids(api.database, api.tenant, "ours", 9)) == 3
    await decide(api, runs[0], False)
    assert len(await list_dataset_task_ids(api.database, api.tenant, "ours", 9)) == 2
    assert len(await list_dataset_task_ids(api.database, api.tenant, "ours", 9, seed=1)) == 2
    assert (await api.http.delete(f"/api/v1/runs/{runs[1]}")).status_code in (200, 204)
    assert len(await list_dataset_task_ids(api.database, api.tenant, "ours", 9)) == 1
    assert [task["run_id"] for task in (await make(api))["tasks"]] == [str(runs[2])]
    names = {task["name"] for task in (await api.http.get("/api/v1/tasks")).json()["items"]}
    assert names == {f"run {runs[0]}", f"run {runs[2]}"}, "no rollout has used the task of the deleted run"
    await allow(api, opt_in=False)
    with pytest.raises(InvalidInput):
        await list_dataset_task_ids(api.database, api.tenant, "ours", 9)


async def test_a_corrected_task_replaces_the_earlier_one_of_its_run(api: Api, owner_url: str) -> None:
    await allow(api)
    run = await answered(api)
    await correct(api, run, "Rain")
    await make(api)
    await correct(api, run, "Rivers")
    await make(api)
    (chosen,) = await list_dataset_task_ids(api.database, api.tenant, "ours", 9)
    with psycopg.connect(owner_url) as connection:
        answers = connection.execute("select answers from app.task_reference where task_id = %s", (chosen,)).fetchone()
        origins = connection.execute("select count(*) from app.task_origin").fetchone()
    assert (answers, origins) == ((["Rivers"],), (2,))


async def test_an_erased_source_is_erased_from_corrections_and_references(api: Api, owner_url: str) -> None:
    await allow(api)
    quote = "Rivers carry dissolved salt into the sea."
    run = await answered(api)
    await correct(api, run, quote)
    await make(api)
    citations = (await api.http.get(f"/api/v1/runs/{run}/report")).json()["citations"]
    assert (await api.http.delete(f"/api/v1/library/sources/{citations[0]['source_id']}")).status_code == 200
    with psycopg.connect(owner_url) as connection:
        left = connection.execute(
            "select (select string_agg(answer, '') from app.answer_correction) || "
            "(select string_agg(answers::text, '') from app.task_reference)"
        ).fetchone()
    assert left is not None
    assert "dissolved" not in left[0]


async def test_a_run_without_consent_is_in_no_export(api: Api) -> None:
    await allow(api)
    run, other = await answered(api), await answered(api, QUESTIONS[1])
    await decide(api, run, False)
    lines = (await api.http.get("/api/v1/trajectories?format=atif&kind=interactive")).text
    assert str(other) in lines
    assert str(run) not in lines


async def test_a_fork_follows_the_decision_about_its_origin(api: Api, owner_url: str) -> None:
    await allow(api)
    origin, fork = await answered(api), await answered(api, QUESTIONS[1])
    await correct(api, fork, "Rivers")
    with psycopg.connect(owner_url) as connection:
        connection.execute(
            "update app.run set forked_from_id = %s, forked_at_seq = 1, forked_kind = 'interactive', "
            "forked_usage = '{}' where id = %s",
            (origin, fork),
        )
    await decide(api, origin, False)
    assert (await make(api))["left_out"] == {"no_consent": 2}


async def test_as_many_statements_make_tasks_of_many_runs_as_of_few(api: Api, app_url: str) -> None:
    await allow(api)
    statements = list[int]()
    async with TracedDatabase(app_url, max_connections=1) as database:
        for count in (2, 9):
            for number in range(count):
                await correct(api, await answered(api, f"Why is sea number {count} {number} salt?"), "Rivers")
            database.take_trips()
            request = TaskSetRequest("ours", held_out_fraction=0)
            task_set = await make_tasks_from_runs(database, api.tenant, request, person="ada", is_dry_run=True)
            statements.append(database.take_trips().statements)
            print(f"{statements[-1]} statements for {len(task_set.tasks)} tasks")
    assert statements[0] == statements[1]


async def test_consent_for_many_runs_is_that_for_each(api: Api, owner_url: str) -> None:
    runs = [await answered(api, question) for question in QUESTIONS]
    with psycopg.connect(owner_url) as connection:
        for fork, origin in ((1, 0), (2, 1)):
            connection.execute(
                "update app.run set forked_from_id = %s, forked_at_seq = 1, forked_kind = 'interactive', "
                "forked_usage = '{}' where id = %s",
                (runs[origin], runs[fork]),
            )
    await decide(api, runs[0], False)
    await allow(api)
    async with api.database.transaction(api.tenant) as connection:
        rows = await connection.execute("select * from app.list_learning_consent(%s)", ([*runs, UUID(int=1)],))
        assert dict(await rows.fetchall()) == dict(zip(runs, [False, False, False, True], strict=True))
    await decide(api, runs[1], True)
    assert [(await decide(api, run, None))["may_learn"] for run in (runs[2], runs[3])] == [True, True]


async def test_another_tenants_runs_are_not_selected(api: Api) -> None:
    await allow(api)
    await correct(api, await answered(api), "Rivers")
    theirs = await api.other.post("/api/v1/tasks/from-runs", json={"dataset": "ours"})
    assert (theirs.json()["tasks"], theirs.json()["left_out"]) == ([], {})
