"""Forking a run over HTTP: what is kept, what is the fork's own, and what is rejected."""

from typing import Any
from uuid import UUID, uuid4

from offing.clock import new_id
from offing.core.step import CallKey, StepDraft, StepKind
from offing.core.tool_policy import ToolPolicy, parse_restriction, parse_stored_policy
from offing.core.usage import UsageDelta
from offing.storage import erasure, runs, tool_policies
from tests.api.conftest import Api

KEYED = StepDraft(StepKind.NOTE, "looked", {"role": "speaker"}, tokens=7, turn=1, ms=20, call_key=CallKey(1, "look", 0))


async def recorded(api: Api) -> UUID:
    """A run with four steps that has ended."""
    body = (await api.http.post("/api/v1/runs", json={"question": "Why is the sea salt?", "graph": "quiet"})).json()
    fence = await api.hands.claim(UUID(body["id"]))
    await api.hands.append(fence, KEYED, spent=UsageDelta(turns=1, tokens=7, seconds=9))
    await api.hands.notes(fence, ["said"])
    await api.hands.append(fence, StepDraft(StepKind.NOTE, "late"), spent=UsageDelta(turns=2, tokens=5))
    await api.hands.end(fence)
    return UUID(body["id"])


async def test_a_fork_has_the_steps_up_to_the_one_that_is_named_and_says_where_it_is_from(api: Api) -> None:
    origin = await recorded(api)
    response = await api.http.post(f"/api/v1/runs/{origin}/fork", json={"at_seq": 2})
    assert response.status_code == 201, response.text
    body = response.json()
    assert response.headers["location"] == f"/api/v1/runs/{body['id']}"
    assert (body["forked_from_id"], body["forked_at_seq"], body["status"]) == (str(origin), 2, "queued")
    assert (body["usage"]["turns"], body["usage"]["tokens"], body["usage"]["seconds"]) == (1, 7, 0.02)
    steps = (await api.http.get(f"/api/v1/runs/{body['id']}/steps")).json()["items"]
    assert [(s["seq"], s["kind"], s["title"]) for s in steps] == [
        (1, "queued", "Why is the sea salt?"),
        (2, "note", "looked"),
        (3, "resumed", "Forked from step 2 of another run"),
    ]
    first = (await api.http.get(f"/api/v1/runs/{origin}")).json()
    assert body["thread_id"] != first["thread_id"]
    assert (first["status"], first["forked_from_id"], first["forked_at_seq"]) == ("done", None, None)


async def test_a_fork_keeps_the_report_style(api: Api) -> None:
    style = {"length": "brief", "language": None, "template": ""}
    origin = await api.submit(report_style=style)
    await api.hands.end(await api.hands.claim(origin))
    forked = (await api.http.post(f"/api/v1/runs/{origin}/fork", json={})).json()
    assert forked["report_style"] == style


async def test_a_fork_that_names_no_step_continues_before_the_end(api: Api) -> None:
    body = (await api.http.post(f"/api/v1/runs/{await recorded(api)}/fork")).json()
    assert (body["forked_at_seq"], body["usage"]["turns"], body["usage"]["tokens"]) == (4, 2, 12)


async def test_a_fork_may_have_another_budget_other_engines_and_a_message(api: Api) -> None:
    engine = {"engine": "scripted", "options": {"answers": [{"word": "hi"}]}}
    body = {"budget": {"max_turns": 99}, "engines": {"speaker": engine}, "message": "Look at rivers."}
    created = (await api.http.post(f"/api/v1/runs/{await recorded(api)}/fork", json=body)).json()
    assert (created["budget"]["max_turns"], created["engines"]["speaker"]["engine"]) == (99, "scripted")
    steps = (await api.http.get(f"/api/v1/runs/{created['id']}/steps")).json()["items"]
    assert [(s["kind"], s["title"]) for s in steps[-1:]] == [("user_message", "Look at rivers.")]


async def test_what_cannot_be_forked_is_named_with_the_remedy(api: Api) -> None:
    origin = await recorded(api)
    cases: list[tuple[dict[str, object], str]] = [
        ({"at_seq": 6}, "at_seq"),
        ({"at_seq": 5}, "at_seq"),
        ({"at_seq": 0}, "at_seq"),
        ({"at_seq": 2, "engines": {"cook": {}}}, "engines.cook"),
        ({"at_seq": 2, "engines": {"speaker": {"engine": "none"}}}, "engines.speaker.engine"),
        ({"step": 2}, "step"),
    ]
    for body, field in cases:
        response = await api.http.post(f"/api/v1/runs/{origin}/fork", json=body)
        assert response.status_code == 422, body
        problem = response.json()
        assert problem["field"] == field, problem
        assert problem["remedy"], problem
    problem = (await api.http.post(f"/api/v1/runs/{origin}/fork", json={"at_seq": 5})).json()
    assert problem["remedy"] == "Use a step from 1 to 4, the last one before the run ended."


async def test_nobody_forks_the_run_of_another(api: Api) -> None:
    origin = await recorded(api)
    assert (await api.other.post(f"/api/v1/runs/{origin}/fork")).status_code == 404
    assert (await api.http.post(f"/api/v1/runs/{uuid4()}/fork")).status_code == 404


async def test_a_run_whose_graph_version_is_deleted_cannot_be_forked(api: Api) -> None:
    origin = await recorded(api)
    async with api.database.transaction(api.tenant) as connection:
        await connection.execute("update run set graph_version = 'gone' where id = %s", (origin,))
    response = await api.http.post(f"/api/v1/runs/{origin}/fork")
    assert response.status_code == 409
    assert "version gone of the graph quiet" in response.json()["detail"]
    assert response.json()["remedy"]


async def test_the_same_idempotency_key_never_makes_two_forks(api: Api) -> None:
    origin, key = await recorded(api), {"Idempotency-Key": "one"}
    created = [await api.http.post(f"/api/v1/runs/{origin}/fork", json={"at_seq": at}, headers=key) for at in (2, 2, 3)]
    assert [response.status_code for response in created] == [201, 200, 409]
    assert created[0].json()["id"] == created[1].json()["id"]


async def test_a_first_claim_of_a_fork_is_not_taken_for_that_of_a_new_run(api: Api) -> None:
    body = (await api.http.post(f"/api/v1/runs/{await recorded(api)}/fork")).json()
    assert (await api.hands.claim(UUID(body["id"]))).number == 2


async def test_a_fork_outlives_the_run_that_it_is_a_fork_of(api: Api) -> None:
    origin = await recorded(api)
    body = (await api.http.post(f"/api/v1/runs/{origin}/fork", json={"at_seq": 3})).json()
    async with api.database.transaction(api.tenant) as connection:
        await connection.execute("delete from run where id = %s", (origin,))
        row = await runs.get_run(connection, UUID(body["id"]))
    assert (row.forked_from, row.forked_at, row.last_seq) == (None, 3, 4)


async def test_what_a_fork_kept_is_counted_once_in_the_metrics(api: Api) -> None:
    origin = await recorded(api)
    for _ in range(2):
        await api.http.post(f"/api/v1/runs/{origin}/fork", json={"at_seq": 2})
    lines = (await api.http.get("/api/v1/metrics")).text.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("offing_steps_total") and '"note"' in line] == ["3.0"]


async def test_a_tool_policy_that_was_narrowed_later_is_as_it_was_at_the_step(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.append(fence, KEYED)
    async with api.database.transaction(api.tenant) as connection:
        before = (await runs.get_run(connection, run)).tool_policy
        allowed = next(rule for rule in before["rules"] if rule["tool"] == "calculate")
        rules: list[dict[str, Any]] = [allowed | {"max_calls": 1}]
        after = parse_restriction(parse_stored_policy(before), rules)
        assert isinstance(after, ToolPolicy), after
        await tool_policies.update_tool_policy(connection, run, after)
    note = StepDraft(StepKind.NOTE, "narrowed", {"narrow": rules, "rejected": ""}, call_key=CallKey(2, "look", 0))
    (restricted,) = await api.hands.append(fence, note)
    created = [
        (await api.http.post(f"/api/v1/runs/{run}/fork", json={"at_seq": at})).json() for at in (2, restricted.seq)
    ]
    async with api.database.transaction(api.tenant) as connection:
        rows = [await runs.get_run(connection, UUID(one["id"])) for one in created]
        await connection.execute("update run set tool_policy_sha256 = 'x' where id = %s", (run,))
    assert [parse_stored_policy(row.tool_policy) for row in rows] == [parse_stored_policy(before), after]
    assert len({row.tool_policy_sha256 for row in rows}) == 2
    unknown = (await api.http.post(f"/api/v1/runs/{run}/fork", json={"at_seq": 2})).json()
    assert (unknown["field"], unknown["remedy"]) == ("at_seq", f"Use step {restricted.seq} or a later one.")


async def test_a_fork_from_before_an_upgrade_has_the_version_from_before_it(api: Api) -> None:
    run = await api.submit()
    fence = await api.hands.claim(run)
    await api.hands.append(fence, KEYED)
    async with api.database.transaction(api.tenant) as connection:
        await connection.execute("update run set graph_version = 'v0' where id = %s", (run,))
    payload = {"after": "upgrade", "from": "v1", "to": "v0"}
    await api.hands.append(fence, StepDraft(StepKind.RESUMED, "Continued with another version of its graph", payload))
    assert (await api.http.post(f"/api/v1/runs/{run}/fork", json={"at_seq": 2})).json()["graph_version"] == "v1"
    assert (await api.http.post(f"/api/v1/runs/{run}/fork", json={"at_seq": 3})).status_code == 409


async def test_erasing_a_source_reaches_the_forks_of_runs_that_were_told_of_it(api: Api) -> None:
    text_id, first = new_id(), await api.submit()
    fence = await api.hands.claim(first)
    await api.hands.append(fence, StepDraft(StepKind.TOOL_RESULT, "read", {"content": {"text_id": str(text_id)}}))
    await api.hands.end(fence)
    thread = (await api.http.get(f"/api/v1/runs/{first}")).json()["thread_id"]
    second = await api.submit(thread_id=thread)
    forks = [UUID((await api.http.post(f"/api/v1/runs/{second}/fork")).json()["id"])]
    forks += [UUID((await api.http.post(f"/api/v1/runs/{forks[0]}/fork")).json()["id"])]
    async with api.database.transaction(api.tenant) as connection:
        touched = await erasure.lock_affected_runs(connection, api.tenant, [text_id])
    assert {one.run_id: one.retrieved_text for one in touched} == {
        first: True,
        second: False,
        forks[0]: False,
        forks[1]: False,
    }
