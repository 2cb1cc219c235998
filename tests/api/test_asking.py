"""What a person who asks can choose: domains, offline runs, interactions, statistics and saved ways to ask."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from offing.core.step import StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.models.credentials import KEY_VARIABLES
from offing.services.offline_runs import find_remote_library_model, is_on_this_machine
from offing.settings import Settings
from offing.storage import runs
from tests.api.conftest import Api

ASK = {"question": "Why is the sea salt?", "graph": "quiet"}
REMOTE_SERVER = {"engine": "litellm", "model": "hosted_vllm/x", "api_base": "http://192.0.2.1/v1"}
SETTINGS = {"graph": "quiet", "budget": {"max_turns": 40, "depth": "deep"}, "scope": {"web": True}}


async def post(api: Api, **body: Any) -> tuple[int, dict[str, Any]]:
    response = await api.http.post("/api/v1/runs", json=ASK | body)
    return response.status_code, response.json()


async def test_domains_are_stored_as_hosts_and_kept_by_a_follow_up_that_names_no_others(api: Api) -> None:
    scope = {"web": True, "only_domains": ["https://Docs.Example.org/a"], "excluded_domains": ["*.ads.example.org"]}
    status, run = await post(api, scope=scope)
    assert status == 201
    assert run["scope"]["only_domains"] == ["docs.example.org"]
    assert run["scope"]["excluded_domains"] == ["ads.example.org"]
    await api.hands.end(await api.hands.claim(UUID(run["id"])))
    thread = run["thread_id"]
    _, followed = await post(api, thread_id=thread)
    assert followed["scope"]["only_domains"] == ["docs.example.org"]
    await api.hands.end(await api.hands.claim(UUID(followed["id"])))
    _, lifted = await post(api, thread_id=thread, scope={"only_domains": []})
    assert (lifted["scope"]["only_domains"], lifted["scope"]["web"]) == ([], True)


@pytest.mark.parametrize("domain", ["com", "not a domain", "user@example.org", "x" * 301])
async def test_an_invalid_domain_is_a_problem_of_its_field(api: Api, domain: str) -> None:
    status, problem = await post(api, scope={"web": True, "only_domains": ["example.org", domain]})
    assert status == 422
    assert problem["field"].startswith("scope.only_domains")


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"scope": {"offline": True, "web": True}}, "web"),
        ({"engines": {"speaker": {"engine": "litellm", "model": "openai/gpt-5-mini"}}}, "openai/gpt-5-mini"),
        (
            {
                "engines": {
                    "speaker": {"engine": "litellm", "model": "hosted_vllm/x", "api_base": "http://192.0.2.1/v1"}
                }
            },
            "",
        ),
    ],
)
async def test_an_offline_run_that_would_send_something_elsewhere_is_rejected(
    api: Api, body: dict[str, Any], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLES["openai"], "k3y-of-the-test-0123456789")
    monkeypatch.setenv("OFFING_ALLOWED_ENGINE_URLS", "http://192.0.2.1/v1")
    status, problem = await post(api, **({"scope": {"offline": True}} | body))
    assert (status, problem["field"]) == (422, "scope.offline")
    assert word in problem["detail"]


async def test_an_offline_run_stays_offline_in_its_thread_and_in_its_forks(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLES["openai"], "k3y-of-the-test-0123456789")
    status, run = await post(api, scope={"offline": True})
    assert (status, run["scope"]["offline"]) == (201, True)
    fence = await api.hands.claim(UUID(run["id"]))
    await api.hands.notes(fence, ["One"])
    await api.hands.end(fence)
    remote = {"speaker": {"engine": "litellm", "model": "openai/gpt-5-mini"}}
    status, problem = await post(api, thread_id=run["thread_id"], engines=remote)
    assert (status, problem["field"]) == (422, "scope.offline")
    forked = await api.http.post(f"/api/v1/runs/{run['id']}/fork", json={"engines": remote})
    assert (forked.status_code, forked.json()["field"]) == (422, "scope.offline")
    status, _ = await post(api, thread_id=run["thread_id"], engines=remote, scope={"offline": False})
    assert status == 201


def test_only_loopback_and_sockets_are_this_machine() -> None:
    here = ("http://127.0.0.1:8000/v1", "http://localhost", "http://[::1]:1", "unix:/run/engine.sock")
    elsewhere = ("", "http://192.168.1.4", "https://api.openai.com/v1", "http://localhost.example.org", "http://[x")
    assert [is_on_this_machine(address) for address in (*here, *elsewhere)] == [True] * 4 + [False] * 5
    assert find_remote_library_model(Settings(embedding_model="openai/e")) == "openai/e"
    local = Settings(embedding_model="hosted_vllm/e", embedding_api_base="http://127.0.0.1:1/v1")
    assert find_remote_library_model(local) == ""
    assert find_remote_library_model(Settings(rerank_model="cohere/r")) == "cohere/r"


async def test_interactions_are_stored_with_the_run_and_rejected_by_a_graph_without_them(api: Api) -> None:
    status, run = await post(api, graph="agentflow", interactions=["plan_review", "clarify"])
    assert (status, run["interactions"]) == (201, ["clarify", "plan_review"])
    async with api.database.transaction(api.tenant) as connection:
        assert sorted((await runs.get_run(connection, UUID(run["id"]))).interactions) == ["clarify", "plan_review"]
    status, problem = await post(api, interactions=["plan_review"])
    assert (status, problem["field"]) == (422, "interactions")
    listed = {one["name"]: one["interactions"] for one in (await api.http.get("/api/v1/graphs")).json()}
    assert (listed["agentflow"], listed["quiet"]) == (["clarify", "plan_review"], [])


async def end_run(api: Api, turns: int, cost: str, **body: Any) -> None:
    run = await api.submit(**body)
    fence = await api.hands.claim(run)
    usage = UsageDelta(turns=turns, tokens=100 * turns, cost_usd=Decimal(cost), seconds=2.0 * turns)
    await api.hands.append(fence, StepDraft(StepKind.NOTE, "One"), spent=usage)
    await api.hands.end(fence)


async def test_statistics_are_those_of_ended_runs_of_the_tenant_by_graph_and_models(api: Api) -> None:
    assert (await api.http.get("/api/v1/run-statistics")).json() == {"items": []}
    await end_run(api, 2, "0.02")
    await end_run(api, 4, "0.12")
    await end_run(api, 0, "0")  # without a turn
    await api.submit()  # not ended
    items = (await api.http.get("/api/v1/run-statistics")).json()["items"]
    assert [(one["graph"], one["models"], one["runs"]) for one in items] == [
        ("quiet", None, 2),
        ("quiet", ["extractive"], 2),
    ]
    assert items[0]["turns"] == {"low": 2.5, "median": 3.0, "high": 3.5}
    assert items[0]["seconds_per_turn"]["median"] == 2.0
    assert items[0]["tokens_per_turn"]["median"] == 100.0
    assert items[0]["cost_usd_per_turn"]["median"] == pytest.approx(0.02)
    assert (await api.other.get("/api/v1/run-statistics")).json() == {"items": []}


async def test_a_list_with_minimaps_has_the_marks_of_each_run_and_is_bounded(api: Api) -> None:
    short = await api.submit()
    fence = await api.hands.claim(short)
    await api.hands.append(fence, StepDraft(StepKind.PLAN, "P"), StepDraft(StepKind.TOOL_RESULT, "S", label="search"))
    long = await api.submit()
    fence = await api.hands.claim(long)
    await api.hands.notes(fence, [f"note {n}" for n in range(1499)], tell=False)
    items = (await api.http.get("/api/v1/runs", params={"minimap": True, "limit": 20})).json()["items"]
    marks = {UUID(one["id"]): one["minimap"] for one in items}
    assert marks[short] == (await api.http.get(f"/api/v1/runs/{short}")).json()["step_marks"] == "nps"
    assert len(marks[long]) == 600
    assert (await api.http.get("/api/v1/runs")).json()["items"][0]["minimap"] is None
    rejected = await api.http.get("/api/v1/runs", params={"minimap": True, "limit": 21})
    assert (rejected.status_code, rejected.json()["field"]) == (422, "limit")


async def test_a_way_to_ask_is_saved_renamed_changed_and_deleted(api: Api) -> None:
    saved = await api.http.post("/api/v1/question-presets", json={"name": "  Legal   check ", "settings": SETTINGS})
    assert saved.status_code == 201, saved.text
    preset = saved.json()
    assert preset["name"] == "Legal check"
    assert preset["settings"]["budget"]["max_turns"] == 40
    assert preset["settings"]["tool_policy"] is None, "a preset that names none says nothing about it"
    at = f"/api/v1/question-presets/{preset['id']}"
    renamed = (await api.http.patch(at, json={"name": "Contracts"})).json()
    assert (renamed["name"], renamed["settings"]) == ("Contracts", preset["settings"])
    changed = (
        await api.http.patch(at, json={"settings": {"interactions": ["clarify"], "tool_policy": "reading"}})
    ).json()
    assert (changed["name"], changed["settings"]["interactions"]) == ("Contracts", ["clarify"])
    assert changed["settings"]["tool_policy"] == "reading"
    assert [one["id"] for one in (await api.http.get("/api/v1/question-presets")).json()["items"]] == [preset["id"]]
    assert (await api.http.delete(at)).status_code == 204
    assert (await api.http.delete(at)).status_code == 404
    assert (await api.http.patch(at, json={"name": "x"})).status_code == 404


async def test_a_name_belongs_to_one_preset_and_options_of_engines_are_not_stored(api: Api) -> None:
    engines = {"speaker": {"engine": "litellm", "model": "openai/x", "options": {"secret": "s3cret"}}}
    body = {"name": "A", "settings": SETTINGS | {"engines": engines}}
    first = await api.http.post("/api/v1/question-presets", json=body)
    assert "s3cret" not in first.text
    assert first.json()["settings"]["engines"]["speaker"]["model"] == "openai/x"
    again = await api.http.post("/api/v1/question-presets", json=body)
    assert again.status_code == 409
    other = (await api.http.post("/api/v1/question-presets", json=body | {"name": "B"})).json()
    renamed = await api.http.patch(f"/api/v1/question-presets/{other['id']}", json={"name": "A"})
    assert renamed.status_code == 409
    assert (await api.other.post("/api/v1/question-presets", json=body)).status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "", "settings": {}}, "name"),
        ({"name": "x" * 101, "settings": {}}, "name"),
        ({"name": "a\u202eb", "settings": {}}, "name"),
        ({"name": "A", "settings": {"question": "Why?"}}, "settings.question"),
        ({"name": "A", "settings": {"budget": {"max_turns": 2049}}}, "settings.budget.max_turns"),
        ({"name": "A", "settings": {"scope": {"only_domains": ["com"]}}}, "settings.scope.only_domains"),
    ],
)
async def test_an_invalid_preset_is_a_problem_of_its_field(api: Api, body: dict[str, Any], field: str) -> None:
    response = await api.http.post("/api/v1/question-presets", json=body)
    assert (response.status_code, response.json()["field"]) == (422, field), response.text


async def test_a_tenant_has_at_most_a_hundred_presets(api: Api) -> None:
    for number in range(100):
        created = await api.http.post("/api/v1/question-presets", json={"name": f"P{number}", "settings": {}})
        assert created.status_code == 201
    assert (await api.http.post("/api/v1/question-presets", json={"name": "Q", "settings": {}})).status_code == 409


async def test_models_are_listed_with_what_is_known_of_them(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLES["openai"], "k3y-of-the-test-0123456789")
    engines = {one["name"]: one for one in (await api.http.get("/api/v1/engines")).json()}
    details = {one["model"]: one for one in engines["litellm:openai"]["model_details"]}
    mini = details["openai/gpt-5-mini"]
    assert mini["context_tokens"] > 100_000
    assert 0 < mini["input_usd"] < mini["output_usd"] < 100
    assert engines["extractive"]["model_details"] == []
