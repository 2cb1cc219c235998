"""Submitting a run with a tool policy of one's own."""

from typing import Any

from offing.core.tool_policy import hash_tool_policy, parse_stored_policy
from offing.tools.default_policy import default_tool_policy
from tests.api.conftest import Api

BODY = {"question": "Why is the sea salt?", "graph": "quiet", "scope": {"web": True}}
DOCS_ONLY: dict[str, Any] = {
    "rules": [
        {
            "tool": "fetch_page",
            "when": [{"arg": "url", "host": ["*.example.org"]}, {"arg": "start"}, {"arg": "length"}],
            "max_calls": 5,
        },
        {
            "tool": "fetch_page",
            "effect": "ask",
            "allow_other_args": True,
            "when_tainted": True,
            "reason": "It has read pages.",
        },
    ]
}


async def test_a_run_is_stored_with_the_policy_that_it_was_submitted_with(api: Api) -> None:
    created = await api.http.post("/api/v1/runs", json=BODY | {"tool_policy": DOCS_ONLY})
    assert created.status_code == 201, created.text
    policy = parse_stored_policy(DOCS_ONLY)
    stored, its_hash = await stored_policy(api, created.json()["id"])
    assert policy is not None
    assert (parse_stored_policy(stored), its_hash) == (policy, hash_tool_policy(policy))


async def test_a_run_without_one_has_the_default_for_its_scope(api: Api) -> None:
    created = await api.http.post("/api/v1/runs", json=BODY)
    stored, _ = await stored_policy(api, created.json()["id"])
    assert parse_stored_policy(stored) == default_tool_policy(web=True)


async def test_what_is_wrong_with_a_policy_is_reported_with_its_path_and_a_remedy(api: Api) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"tool": "launch_missiles", "allow_other_args": True}, "tool_policy.rules.0.tool"),
        ({"tool": "calculate", "when": [{"arg": "formula"}]}, "tool_policy.rules.0.when.0.arg"),
        ({"tool": "calculate"}, "tool_policy.rules.0.when"),
        ({"tool": "web_search", "allow_other_args": True}, "tool_policy.rules.0.when"),
        ({"tool": "calculate", "allow_other_args": True, "max_calls": 0}, "tool_policy.rules.0.max_calls"),
        ({"tool": "calculate", "effect": "maybe"}, "tool_policy.rules.0.effect"),
        ({"tool": "calculate", "when": [{"arg": "expression", "regex": "(a+"}]}, "tool_policy.rules.0.when.0.regex"),
        ({"tool": "calculate", "when": [{"arg": "expression", "glob": "*" * 9}]}, "tool_policy.rules.0.when.0.glob"),
    ]
    for rule, field in cases:
        response = await api.http.post("/api/v1/runs", json=BODY | {"tool_policy": {"rules": [rule]}})
        assert response.status_code == 422, rule
        assert response.json()["field"] == field, response.text
        assert response.json()["remedy"], rule


async def test_a_tool_that_the_scope_does_not_ask_for_is_none_that_the_run_has(api: Api) -> None:
    body = BODY | {"scope": {}, "tool_policy": DOCS_ONLY}
    response = await api.http.post("/api/v1/runs", json=body)
    assert (response.status_code, response.json()["field"]) == (422, "tool_policy.rules.0.tool")


async def test_a_policy_may_name_tools_of_the_graph_itself(api: Api) -> None:
    expected = {"rules": [{"tool": "graph:send_email", "effect": "ask"}, {"tool": "graph:search", "max_calls": 3}]}
    created = await api.http.post("/api/v1/runs", json=BODY | {"tool_policy": expected})
    assert created.status_code == 201, created.text


async def test_another_policy_is_another_request_under_an_idempotency_key(api: Api) -> None:
    key = {"Idempotency-Key": "policy"}
    first = await api.http.post("/api/v1/runs", json=BODY, headers=key)
    other = await api.http.post("/api/v1/runs", json=BODY | {"tool_policy": DOCS_ONLY}, headers=key)
    assert (first.status_code, other.status_code) == (201, 409)


async def test_a_follow_up_has_the_policy_that_was_given_with_the_question_before_it(api: Api) -> None:
    first = (await api.http.post("/api/v1/runs", json=BODY | {"tool_policy": DOCS_ONLY})).json()
    inputs = await stored_policy(api, first["id"])
    async with api.database.transaction(api.tenant) as connection:  # as a graph narrows it
        await connection.execute("update run set tool_policy = '{\"rules\": []}' where id = %s", (first["id"],))
    await api.http.post(f"/api/v1/runs/{first['id']}/cancel", json={"mode": "discard"})
    follow_up = await api.http.post("/api/v1/runs", json=BODY | {"thread_id": first["thread_id"]})
    assert follow_up.status_code == 201, follow_up.text
    assert await stored_policy(api, follow_up.json()["id"]) == inputs
    await api.http.post(f"/api/v1/runs/{follow_up.json()['id']}/cancel", json={"mode": "discard"})
    third = await api.http.post("/api/v1/runs", json=BODY | {"thread_id": first["thread_id"], "scope": {}})
    assert await stored_policy(api, third.json()["id"]) == inputs


async def stored_policy(api: Api, run: str) -> tuple[Any, str]:
    async with api.database.transaction(api.tenant) as connection:
        cursor = await connection.execute("select tool_policy, tool_policy_sha256 from run where id = %s", (run,))
        row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]
