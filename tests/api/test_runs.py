"""Submitting, reading, listing and steering runs over HTTP."""

import asyncio
import os
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from offing.core.run import RunStatus
from offing.core.step import StepDraft, StepKind
from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE, accept_server
from offing.storage import claims
from offing.storage.claims import Release
from tests.api.conftest import Api


async def test_a_submitted_run_is_stored_and_can_be_read(api: Api) -> None:
    response = await api.http.post("/api/v1/runs", json={"question": " Why is the sea salt? ", "graph": "quiet"})
    assert response.status_code == 201
    body = response.json()
    assert body["question"] == "Why is the sea salt?"
    assert body["status"] == "queued"
    assert body["engines"]["speaker"]["engine"] == "extractive"
    detail = (await api.http.get(response.headers["location"])).json()
    assert detail["id"] == body["id"]
    assert (detail["step_marks"], detail["live"], detail["last_seq"]) == ("n", None, 1)


async def test_the_limits_of_a_model_are_pinned_when_its_run_is_submitted(api: Api) -> None:
    engines: dict[str, dict[str, object]] = {
        "speaker": {"engine": "litellm", "model": "openai/o3-mini", "reasoning_effort": "high"}
    }
    body = {"question": "Why is the sea salt?", "graph": "quiet", "engines": engines}
    run = (await api.http.post("/api/v1/runs", json=body)).json()
    pinned = run["engines"]["speaker"]
    assert (pinned["context_tokens"], pinned["output_tokens"]) == (200_000, 100_000)
    assert (pinned["max_tokens"], pinned["answer_tokens"], pinned["thinking_tokens"]) == (None, 4_096, 16_384)
    details = (await api.http.get(f"/api/v1/runs/{run['id']}")).json()["token_details"]
    assert set(details.values()) == {0}
    for field, value in (("reasoning_effort", "low"), ("max_tokens", 99_999)):
        engines["speaker"] = {"engine": "litellm", "model": "openai/gpt-4o", field: value}
        problem = (await api.http.post("/api/v1/runs", json=body)).json()
        assert problem["field"] == f"engines.speaker.{field}"
        assert problem["remedy"]


@pytest.mark.parametrize(
    ("budget", "turns", "depth"),
    [
        ({}, 12, "standard"),
        ({"depth": "quick"}, 4, "quick"),
        ({"depth": "deep"}, 40, "deep"),
        ({"depth": "deep", "max_turns": 512}, 512, "deep"),
    ],
)
async def test_the_depth_of_a_run_gives_its_turns_unless_they_are_named(
    api: Api, budget: dict[str, object], turns: int, depth: str
) -> None:
    run = await api.submit(budget=budget)
    stored = (await api.http.get(f"/api/v1/runs/{run}")).json()["budget"]
    assert (stored["max_turns"], stored["depth"]) == (turns, depth)


async def test_the_record_of_a_standard_run_names_no_depth(api: Api) -> None:
    run = await api.submit(budget={"max_turns": 3})
    async with api.database.transaction(api.tenant) as connection:
        (budget,) = await (await connection.execute("select budget from run where id = %s", (run,))).fetchone() or ({},)
    assert budget == {"max_turns": 3, "max_tokens": None, "max_cost_usd": None, "max_seconds": None}


async def test_the_same_idempotency_key_never_makes_two_runs(api: Api) -> None:
    body = {"question": "Why is the sea salt?", "graph": "quiet"}
    key = {"Idempotency-Key": "one"}
    first = await api.http.post("/api/v1/runs", json=body, headers=key)
    again = await api.http.post("/api/v1/runs", json=body, headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    different = await api.http.post("/api/v1/runs", json=body | {"question": "Why is the sky blue?"}, headers=key)
    assert different.status_code == 409
    assert different.headers["content-type"] == "application/problem+json"
    assert different.json()["remedy"]
    assert (await api.other.post("/api/v1/runs", json=body, headers=key)).status_code == 201


async def test_requests_with_one_key_at_the_same_moment_make_one_run(api: Api) -> None:
    body = {"question": "Why is the sea salt?", "graph": "quiet"}
    answers = await asyncio.gather(
        *(api.http.post("/api/v1/runs", json=body, headers={"Idempotency-Key": "race"}) for _ in range(8))
    )
    assert sorted(a.status_code for a in answers) == [200] * 7 + [201], [a.text for a in answers]
    assert len({a.json()["id"] for a in answers}) == 1


async def test_bad_input_names_the_field_and_the_remedy(api: Api) -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"question": "Hi"}, "question"),
        ({"question": "   \n  "}, "question"),
        ({"question": "Why is the sea salt?", "budget": {"max_turns": 3000}}, "budget.max_turns"),
        ({"question": "Why is the sea salt?", "depth": 3}, "depth"),
        ({"question": "Why is the sea salt?", "graph": "no such"}, "graph"),
        ({"question": "Why is the sea salt?", "graph": "quiet", "engines": {"cook": {}}}, "engines.cook"),
        (
            {"question": "Why is the sea salt?", "graph": "quiet", "engines": {"speaker": {"prompt_format": "odd"}}},
            "engines.speaker.prompt_format",
        ),
        ({"question": "Why is the sea salt?", "deadline": "9999-12-31T23:59:59-12:00"}, "deadline"),
        ({"question": "Why is the sea salt?", "seed": 2**63}, "seed"),
        ({"question": "Why is the sea salt?", "report_style": {"length": "huge"}}, "report_style.length"),
        ({"question": "Why is the sea salt?", "report_style": {"language": "not a tag"}}, "report_style.language"),
        ({"question": "Why is the sea salt?", "report_style": {"template": "x" * 4001}}, "report_style.template"),
        ({"question": "Why is the sea salt?", "report_style": {"tone": "warm"}}, "report_style.tone"),
        ({}, "question"),
    ]
    for body, field in cases:
        response = await api.http.post("/api/v1/runs", json=body)
        assert response.status_code == 422, body
        problem = response.json()
        assert problem["field"] == field, problem
        assert problem["detail"]
        assert problem["remedy"]
    assert (await api.http.get("/api/v1/runs")).json()["items"] == []


@pytest.fixture
def no_accepted_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(ACCEPTED_SERVERS_VARIABLE, str(tmp_path / "engine-servers"))


@pytest.mark.usefixtures("no_accepted_servers")
async def test_a_run_may_not_send_the_providers_key_to_a_server_elsewhere(api: Api) -> None:
    def body(base: str) -> dict[str, object]:
        engine = {"engine": "litellm", "model": "openai/x", "api_base": base}
        return {"question": "Why is the sea salt?", "graph": "quiet", "engines": {"speaker": engine}}

    for base in (
        "https://evil.example/v1",
        "http://127.0.0.1:11434/v1",
        "http://localhost:8000",
        "http://10.0.0.5:8000/v1",
        "http://169.254.169.254/",
        "ftp://localhost",
        "http://localhost@evil.example",
        "http://[::1",
    ):
        rejected = await api.http.post("/api/v1/runs", json=body(base))
        assert rejected.status_code == 422, base
        assert rejected.json()["field"] == "engines.speaker.api_base"
        assert "offing engine accept" in rejected.json()["remedy"]
    accept_server(os.environ, "http://127.0.0.1:11434")
    assert (await api.http.post("/api/v1/runs", json=body("http://127.0.0.1:11434/v1"))).status_code == 201


@pytest.mark.usefixtures("no_accepted_servers")
async def test_a_server_on_this_machine_that_a_model_s_name_means_is_rejected_until_it_is_accepted(api: Api) -> None:
    engine = {"engine": "litellm", "model": "lm_studio/qwen3"}
    body = {"question": "Why is the sea salt?", "graph": "quiet", "engines": {"speaker": engine}}
    rejected = await api.http.post("/api/v1/runs", json=body)
    assert (rejected.status_code, rejected.json()["field"]) == (422, "engines.speaker.model")
    assert "offing engine accept http://127.0.0.1:1234/v1" in rejected.json()["remedy"]
    tasks = {"items": [{"question": "Why is the sea salt?"}]}
    expected = {"graph": "quiet", "tasks": tasks, "group_size": 1, "engines": {"speaker": engine}}
    batch = await api.http.post("/api/v1/rollout-batches", json=expected)
    assert (batch.status_code, batch.json()["field"]) == (422, "engines.speaker.model")
    accept_server(os.environ, "http://127.0.0.1:1234")
    assert (await api.http.post("/api/v1/runs", json=body)).status_code == 201


async def test_a_follow_up_needs_a_thread_of_ones_own(api: Api) -> None:
    run = await api.submit()
    thread = (await api.http.get(f"/api/v1/runs/{run}")).json()["thread_id"]
    follow_up = {"question": "And the lakes?", "graph": "quiet", "thread_id": thread}
    assert (await api.other.post("/api/v1/runs", json=follow_up)).status_code == 404
    assert (await api.http.post("/api/v1/runs", json=follow_up | {"thread_id": str(uuid4())})).status_code == 404
    busy = await api.http.post("/api/v1/runs", json=follow_up)
    assert busy.status_code == 409
    await api.hands.end(await api.hands.claim(run))
    assert (await api.http.post("/api/v1/runs", json=follow_up)).status_code == 201
    body = (await api.http.get(f"/api/v1/threads/{thread}")).json()
    assert [r["question"] for r in body["runs"]] == ["Why is the sea salt?", "And the lakes?"]
    assert [t["id"] for t in (await api.http.get("/api/v1/threads")).json()["items"]] == [thread]


async def test_pages_of_runs_hold_each_run_once_and_filters_narrow_them(api: Api) -> None:
    created = [str(await api.submit(f"Question number {n}?")) for n in range(7)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await api.http.get("/api/v1/runs", params=query)).json()
        seen += [run["id"] for run in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == created[::-1]
    result = (await api.http.get("/api/v1/runs", params={"q": "NUMBER 3"})).json()["items"]
    assert [run["id"] for run in result] == [created[3]]
    assert (await api.http.get("/api/v1/runs", params={"status": "done"})).json()["items"] == []
    assert len((await api.http.get("/api/v1/runs", params={"graph": "quiet"})).json()["items"]) == 7


async def test_a_forged_cursor_is_rejected_by_name(api: Api) -> None:
    for cursor in ("x", "%%%", "MjAyNg", "=" * 5):
        for path in ("/api/v1/runs", "/api/v1/threads", "/api/v1/library"):
            response = await api.http.get(path, params={"cursor": cursor})
            assert response.status_code == 422, (path, cursor)
            assert response.json()["field"] == "cursor"


async def test_pause_resume_steer_and_cancel_leave_their_marks(api: Api) -> None:
    run = await api.submit()
    at = f"/api/v1/runs/{run}"
    paused = (await api.http.post(f"{at}/pause")).json()
    assert (paused["status"], bool(paused["waiting_for"])) == ("paused", True)
    assert (await api.http.post(f"{at}/resume")).json()["status"] == "queued"
    message = await api.http.post(f"{at}/messages", json={"text": "Look at lakes, too."})
    assert (message.status_code, message.json()["kind"], message.json()["title"]) == (
        201,
        "user_message",
        "Look at lakes, too.",
    )
    assert (await api.http.post(f"{at}/cancel")).json()["status"] == "cancelled"
    assert (await api.http.post(f"{at}/cancel", json={"mode": "finish"})).json()["status"] == "cancelled"
    assert (await api.http.post(f"{at}/pause")).status_code == 409
    assert (await api.http.post(f"{at}/messages", json={"text": "Hello?"})).status_code == 409
    steps = (await api.http.get(f"{at}/steps")).json()["items"]
    assert [s["kind"] for s in steps] == ["queued", "paused", "resumed", "user_message", "ended"]
    assert (await api.http.get(at)).json()["step_marks"] == "nnhhn"


async def test_a_wait_counts_from_when_it_began_and_not_from_when_the_run_was_made(api: Api, owner_url: str) -> None:
    run = await api.submit()
    at = f"/api/v1/runs/{run}"

    async def waits() -> datetime | None:
        since = (await api.http.get(at)).json()["waiting_since"]
        return datetime.fromisoformat(since) if since else None

    async def let_go(status: RunStatus, waiting_for: str | None = None, *, notes: tuple[str, ...] = ()) -> None:
        fence = await api.hands.claim(run)
        assert await waits() is None, "a run that works does not wait"
        await api.hands.notes(fence, notes)
        async with api.database.transaction(api.tenant) as connection:
            # With a time from which on a worker may look again, as for a run that waits for an answer with a due date.
            release = Release(status, waiting_for=waiting_for, wait_seconds=0)
            await claims.release_run(connection, fence, release)

    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.run set created_at = created_at - interval '1 hour', started_at = created_at")
    submitted = await waits()
    await let_go(RunStatus.QUEUED, notes=("one",))
    queued = await waits()
    await let_go(RunStatus.WAITING, "a person's answer", notes=("two",))
    input_requests = await waits()
    await let_go(RunStatus.WAITING, "a person's answer")
    looked_at = await waits()
    await api.http.post(f"{at}/pause")
    paused = await waits()
    waits_in_order = [since for since in (submitted, queued, input_requests, paused) if since is not None]
    assert len(waits_in_order) == 4
    assert waits_in_order == sorted(set(waits_in_order))
    assert looked_at == input_requests, "a worker that finds it still waiting ends no wait"
    await api.http.post(f"{at}/cancel")
    assert await waits() is None


async def test_a_run_shows_what_it_may_see_and_use(api: Api) -> None:
    scope = {
        "collections": ["papers"],
        "sources": [],
        "web": True,
        "code": True,
        "mcp": [],
        "only_domains": ["example.org"],
        "excluded_domains": [],
        "offline": False,
    }
    run = await api.submit(scope=scope)
    assert (await api.http.get(f"/api/v1/runs/{run}")).json()["scope"] == scope
    bare = await api.submit()
    assert (await api.http.get(f"/api/v1/runs/{bare}")).json()["scope"]["web"] is False


async def test_a_run_shows_its_report_style_and_a_follow_up_keeps_it_unless_it_names_another(api: Api) -> None:
    style = {"length": "long", "language": "zh", "template": "## Costs\n## Risks"}
    run = await api.submit(report_style=style | {"template": " ## Costs\n## Risks\n"})
    stored = (await api.http.get(f"/api/v1/runs/{run}")).json()
    assert stored["report_style"] == style
    body: dict[str, object] = {"question": "And the lakes?", "graph": "quiet", "thread_id": stored["thread_id"]}
    nothing: dict[str, object] = {"report_style": {}}
    follow_ups: list[tuple[dict[str, object], object]] = [(body, style), (body | nothing, None), (body, None)]
    for follow_up, expected in follow_ups:
        await api.hands.end(await api.hands.claim(run))
        response = await api.http.post("/api/v1/runs", json=follow_up)
        run = response.json()["id"]
        assert response.json()["report_style"] == expected


async def test_the_report_style_belongs_to_what_an_idempotency_key_names(api: Api) -> None:
    key, body = {"Idempotency-Key": "one"}, {"question": "Why is the sea salt?", "graph": "quiet"}
    assert (await api.http.post("/api/v1/runs", json=body, headers=key)).status_code == 201
    different = await api.http.post("/api/v1/runs", json=body | {"report_style": {"length": "brief"}}, headers=key)
    assert different.status_code == 409


async def test_a_running_run_tells_what_it_does_and_when_its_worker_was_seen(api: Api) -> None:
    run = await api.submit()
    await api.hands.claim(run)
    unknown = (await api.http.get(f"/api/v1/runs/{run}")).json()["live"]
    assert unknown["current_action"] == "working"
    await api.hands.live.publish_action(api.tenant, run, "search_library: salt")
    live = (await api.http.get(f"/api/v1/runs/{run}")).json()["live"]
    assert live["current_action"] == "search_library: salt"
    assert live["worker_heartbeat_at"] is not None


async def test_steps_come_in_pages_and_whole_one_by_one(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.append(
        fence, *(StepDraft(StepKind.TOOL_RESULT, f"t{n}", {"n": n}, label="search") for n in range(5))
    )
    await api.hands.append(
        fence, StepDraft(StepKind.PLAN, "p", {}, ok=False), StepDraft(StepKind.VERIFICATION, "v", {})
    )
    at = f"/api/v1/runs/{run}/steps"
    first = (await api.http.get(at, params={"limit": 4})).json()
    assert ([s["seq"] for s in first["items"]], first["next"]) == ([1, 2, 3, 4], "4")
    rest = (await api.http.get(at, params={"after": first["next"], "limit": 10})).json()
    assert ([s["seq"] for s in rest["items"]], rest["next"]) == ([5, 6, 7, 8], None)
    assert [s["seq"] for s in (await api.http.get(at, params={"kind": "plan"})).json()["items"]] == [7]
    assert (await api.http.get(f"{at}/3")).json()["payload"] == {"n": 1}
    assert (await api.http.get(f"{at}/99")).status_code == 404
    assert (await api.http.get(f"/api/v1/runs/{run}")).json()["step_marks"] == "nsssssfv"


async def test_steps_of_some_kinds_come_whole_and_in_pages(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.append(fence, *(StepDraft(StepKind.TOOL_RESULT, f"t{n}", {"n": n}) for n in range(3)))
    await api.hands.append(fence, StepDraft(StepKind.MEMORY, "m", {"n": 9}), StepDraft(StepKind.PLAN, "p", {}))
    at = f"/api/v1/runs/{run}/whole-steps"
    kinds = (("kind", "tool_result"), ("kind", "memory"), ("limit", "3"))
    first = (await api.http.get(at, params=kinds)).json()
    rest = (await api.http.get(at, params=(*kinds, ("after", first["next"])))).json()
    assert [s["payload"]["n"] for s in first["items"] + rest["items"]] == [0, 1, 2, 9]
    assert rest["next"] is None
    assert (await api.http.get(at)).status_code == 422


async def test_waiting_answers_at_the_end_without_polling(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    waiting = asyncio.create_task(api.http.get(f"/api/v1/runs/{run}/wait", params={"timeout": 20}))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    loop = asyncio.get_running_loop()
    await api.hands.end(fence)
    ended = loop.time()
    response = await waiting
    assert response.json()["status"] == RunStatus.DONE
    assert loop.time() - ended < 0.5
    again = await api.http.get(f"/api/v1/runs/{run}/wait", params={"timeout": 20})
    assert again.json()["status"] == "done"


async def test_waiting_ends_with_its_time_too(api: Api) -> None:
    run = await api.submit()
    response = await api.http.get(f"/api/v1/runs/{run}/wait", params={"timeout": 0.2})
    assert response.json()["status"] == "queued"
