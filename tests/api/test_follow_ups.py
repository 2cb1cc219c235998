"""Follow-ups over HTTP: the kind that a request names, what it keeps of its thread, and what changed in the report."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from offing.core.follow_up import FollowUpKind, FollowUpOutcome, KindChooser
from offing.core.report import Report
from offing.core.report_comparison import compare_reports
from offing.storage import reports, runs
from tests.api.conftest import Api

DOCS_ONLY: dict[str, Any] = {"rules": [{"tool": "search_library", "allow_other_args": True}]}


async def reported(api: Api, **more: Any) -> tuple[dict[str, Any], Report]:
    """A run of a graph with follow-ups that has ended with a report."""
    run = await api.submit(graph="agentflow", **more)
    fence = await api.hands.claim(run)
    report = await api.hands.report(fence, await api.hands.document())
    await api.hands.end(fence)
    return (await api.http.get(f"/api/v1/runs/{run}")).json(), report


async def follow(api: Api, run: dict[str, Any], **more: object) -> dict[str, Any]:
    body = {"question": "And the lakes?", "graph": "agentflow", "thread_id": run["thread_id"], **more}
    response = await api.http.post("/api/v1/runs", json=body)
    assert response.status_code == 201, response.text
    await api.http.post(f"/api/v1/runs/{response.json()['id']}/cancel", json={"mode": "discard"})
    return response.json()


async def test_a_run_in_a_thread_with_a_report_is_a_follow_up_that_decides_by_itself(api: Api) -> None:
    run, _ = await reported(api)
    assert run["follow_up"] is None
    created = await follow(api, run)
    assert created["follow_up"] == {"kind": "auto", "run_id": run["id"], "version": 1}


async def test_a_request_may_name_the_kind_and_the_run_instead_of_the_thread(api: Api) -> None:
    run, _ = await reported(api)
    created = await follow(api, run, thread_id=None, follow_up={"kind": "edit", "run_id": run["id"]})
    assert created["thread_id"] == run["thread_id"]
    assert created["follow_up"]["kind"] == "edit"


async def test_a_kind_that_cannot_be_is_rejected_with_a_remedy(api: Api) -> None:
    run = (await api.http.get(f"/api/v1/runs/{await api.submit(graph='agentflow')}")).json()
    body = {"question": "Shorter", "graph": "agentflow", "thread_id": run["thread_id"]}
    for kind in ("edit", "question"):
        response = await api.http.post("/api/v1/runs", json=body | {"follow_up": {"kind": kind}})
        assert (response.status_code, response.json()["field"]) == (422, "follow_up.kind")
        assert "no report yet" in response.json()["detail"]
        assert "research" in response.json()["remedy"]
    unknown = await api.http.post("/api/v1/runs", json=body | {"follow_up": {"kind": "dance"}})
    assert unknown.status_code == 422
    assert "follow_up.kind" in unknown.text
    assert "'auto', 'question', 'edit'" in unknown.text
    quiet = await api.http.post("/api/v1/runs", json=body | {"graph": "quiet", "follow_up": {"kind": "edit"}})
    assert (quiet.status_code, quiet.json()["field"]) == (422, "follow_up.kind")
    alone = await api.http.post("/api/v1/runs", json=body | {"thread_id": None, "follow_up": {"kind": "edit"}})
    assert (alone.status_code, alone.json()["field"]) == (422, "follow_up")
    missing = await api.http.post("/api/v1/runs", json=body | {"follow_up": {"run_id": str(uuid4())}})
    assert missing.status_code == 404


async def test_another_tenants_report_cannot_be_followed(api: Api) -> None:
    run, _ = await reported(api)
    body = {"question": "Shorter", "follow_up": {"kind": "edit", "run_id": run["id"]}}
    assert (await api.other.post("/api/v1/runs", json=body)).status_code == 404


async def test_the_kind_is_part_of_the_request_under_an_idempotency_key(api: Api) -> None:
    run, _ = await reported(api)
    body = {"question": "Shorter", "graph": "agentflow", "follow_up": {"kind": "edit", "run_id": run["id"]}}
    key = {"Idempotency-Key": "shorter"}
    first = await api.http.post("/api/v1/runs", json=body, headers=key)
    again = await api.http.post("/api/v1/runs", json=body, headers=key)
    assert (first.status_code, again.status_code, again.json()["id"]) == (201, 200, first.json()["id"])
    body["follow_up"] = {"kind": "question", "run_id": run["id"]}
    assert (await api.http.post("/api/v1/runs", json=body, headers=key)).status_code == 409


async def test_a_switch_that_a_follow_up_turns_off_is_part_of_the_request_under_an_idempotency_key(api: Api) -> None:
    run, _ = await reported(api, scope=SCOPE)
    follow_up = {"kind": "edit", "run_id": run["id"]}
    body: dict[str, Any] = {"question": "Shorter", "graph": "agentflow", "follow_up": follow_up, "scope": {}}
    key = {"Idempotency-Key": "switch"}
    assert (await api.http.post("/api/v1/runs", json=body, headers=key)).status_code == 201
    body["scope"] = {"web": False}
    assert (await api.http.post("/api/v1/runs", json=body, headers=key)).status_code == 409


# What is kept ---------------------------------------------------------------------------------------------------------

SCOPE: dict[str, Any] = {"collections": ["papers"], "web": True, "code": True}


async def test_a_follow_up_keeps_documents_web_and_code(api: Api) -> None:
    run, _ = await reported(api, scope=SCOPE)
    assert (await follow(api, run))["scope"] == run["scope"]
    assert (await follow(api, run, scope={}))["scope"] == run["scope"]


async def test_documents_that_a_follow_up_names_replace_those_before_and_the_rest_is_kept(api: Api) -> None:
    run, _ = await reported(api, scope=SCOPE)
    created = await follow(api, run, scope={"collections": ["notes"]})
    assert created["scope"] == run["scope"] | {"collections": ["notes"]}
    source = str(uuid4())
    other, _ = await reported(api, scope=SCOPE)
    created = await follow(api, other, scope={"sources": [source]})
    assert created["scope"] == run["scope"] | {"collections": [], "sources": [source]}


async def test_web_and_code_are_switched_off_only_by_name(api: Api) -> None:
    run, _ = await reported(api, scope=SCOPE)
    assert (await follow(api, run, scope={"web": False}))["scope"] == run["scope"] | {"web": False}
    other, _ = await reported(api, scope=SCOPE)
    assert (await follow(api, other, scope={"code": False}))["scope"] == run["scope"] | {"code": False}


async def test_a_follow_up_keeps_the_engines_and_replaces_those_that_it_names(api: Api) -> None:
    quick = {"engine": "litellm", "model": "openai/quick"}
    run, _ = await reported(api, engines={"planner": quick, "generator": quick})
    created = await follow(api, run, engines={"planner": {"engine": "extractive"}})
    models = {role: engine["model"] for role, engine in created["engines"].items()}
    assert (models["planner"], models["generator"]) == ("", "openai/quick")
    assert created["engines"]["generator"] == run["engines"]["generator"]
    in_router = await follow(api, run, graph="router")
    assert in_router["engines"]["generator"]["model"] == "openai/quick"


async def test_a_follow_up_keeps_the_tool_policy_unless_it_names_one(api: Api) -> None:
    run, _ = await reported(api, tool_policy=DOCS_ONLY)
    same, other = (
        await follow(api, run),
        await follow(api, run, tool_policy={"rules": [{"tool": "calculate", "allow_other_args": True}]}),
    )
    async with api.database.transaction(api.tenant) as connection:
        first, second, third = [
            (await runs.get_run(connection, UUID(one["id"]))).tool_policy_sha256 for one in (run, same, other)
        ]
    assert first == second != third


# The report -----------------------------------------------------------------------------------------------------------


async def test_a_report_lists_what_changed_and_exports_say_so(api: Api) -> None:
    run, before = await reported(api)
    id = await api.submit(graph="agentflow", thread_id=run["thread_id"])
    fence = await api.hands.claim(id)
    shorter = replace(before, sections=(replace(before.sections[0], sentences=before.sections[0].sentences[:1]),))
    outcome = FollowUpOutcome(
        FollowUpKind.EDIT, KindChooser.RULES, UUID(run["id"]), 1, compare_reports(before, shorter), ("Old chart",)
    )
    async with api.database.transaction(api.tenant) as connection:
        await reports.insert_report(connection, fence, 1, replace(shorter, follow_up=outcome))
    await api.hands.end(fence)
    followed = (await api.http.get(f"/api/v1/runs/{id}/report")).json()["follow_up"]
    assert (followed["kind"], followed["chosen_by"], followed["run_id"]) == ("edit", "rules", run["id"])
    assert followed["deleted_sources"] == ["Old chart"]
    assert followed["changes"] == {
        "answer": [],
        "sections": [
            {
                "kind": "changed",
                "heading": "Rivers",
                "before": "",
                "sentences": [{"kind": "removed", "text": "Nobody knows more.", "before": ""}],
            }
        ],
        "kept_sections": 0,
        "title_before": "",
    }
    for file_format in ("md", "html", "json"):
        exported = (await api.http.get(f"/api/v1/runs/{id}/export?format={file_format}")).text
        assert "Nobody knows more." in exported
    assert "## What changed" in (await api.http.get(f"/api/v1/runs/{id}/export?format=md")).text
    first = await api.http.get(f"/api/v1/runs/{run['id']}/report")
    assert first.json()["follow_up"] is None
