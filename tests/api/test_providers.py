"""Providers and presets over the API: a key goes in and never comes out."""

from typing import Any

import pytest

from offing.models.credentials import KEY_VARIABLES
from tests.api.conftest import Api
from tests.model_provider import Fault, WireServer, able

KEY = "c4n4ry-key-of-the-api-0123456789"


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEY_VARIABLES.values():
        monkeypatch.delenv(name, raising=False)


async def put(api: Api, name: str, **body: Any) -> dict[str, Any]:
    response = await api.http.put(f"/api/v1/providers/{name}", json=body)
    assert response.status_code == 200, response.text
    assert KEY not in response.text
    return response.json()


async def test_a_provider_is_stored_tested_and_deleted_without_its_key_in_any_response(api: Api) -> None:
    async with WireServer(able) as server:
        stored = await put(api, "work", provider="openai", api_base=server.url, key=KEY)
        tested = await api.http.post("/api/v1/providers/work/test", json={"model": "gpt-4o-mini"})
    assert tested.status_code == 200, tested.text
    assert (stored["key_set"], stored["last_test"]) == (True, None)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    stored_row = await api.http.get("/api/v1/providers/work")
    assert stored_row.json()["last_test"] == tested.json()
    assert {one["outcome"] for one in tested.json()["capabilities"]} == {"works", "unknown"}
    listed = await api.http.get("/api/v1/providers")
    assert [one["name"] for one in listed.json()] == ["work"]
    assert KEY not in tested.text + stored_row.text + listed.text
    assert (await api.http.delete("/api/v1/providers/work")).status_code == 204
    assert (await api.http.get("/api/v1/providers/work")).status_code == 404


async def test_a_test_counts_towards_the_daily_spending_and_stops_at_its_limit(api: Api) -> None:
    async with WireServer(able) as server:
        await put(api, "work", provider="openai", api_base=server.url, key=KEY)
        tested = await api.http.post("/api/v1/providers/work/test", json={"model": "gpt-4o-mini"})
        tenant = (await api.http.patch("/api/v1/tenant", json={"max_daily_spend_usd": 0.00001})).json()
        again = await api.http.post("/api/v1/providers/work/test", json={"model": "gpt-4o-mini"})
    assert tenant["spent_today_usd"] == pytest.approx(tested.json()["cost_usd"], abs=4e-6)  # six decimals a charge
    assert len(server.requests) == 4
    assert again.json()["capabilities"][0]["outcome"] == "not tested"


async def test_an_error_of_the_provider_that_repeats_the_key_is_shown_without_it(api: Api) -> None:
    async with WireServer(lambda _: Fault(401, f"Incorrect API key provided: {KEY}")) as server:
        await put(api, "work", provider="openai", api_base=server.url, key=KEY)
        tested = await api.http.post("/api/v1/providers/work/test", json={"model": "gpt-4o-mini"})
    assert "Incorrect API key provided: [redacted]" in tested.text
    assert KEY not in tested.text + (await api.http.get("/api/v1/providers")).text


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"key": f"{KEY} {KEY}"}, "key"),
        ({"key": f"{KEY}\n"}, "key"),
        ({"key": KEY * 100}, "key"),
        ({"key": [KEY]}, "key"),
        ({"keys": KEY}, "keys"),
        ({"provider": "azure", "key": KEY}, "provider"),
        ({"api_base": "http://127.0.0.1:1/v1", "key": KEY}, "api_base"),
        ({"api_base": f"http://{KEY}@127.0.0.1/v1"}, "api_base"),
        ({}, "key"),
    ],
)
async def test_an_invalid_provider_is_a_problem_with_field_and_remedy_and_without_the_key(
    api: Api, body: dict[str, Any], field: str
) -> None:
    response = await api.http.put("/api/v1/providers/openai", json=body)
    assert response.status_code == 422, response.text
    assert response.json()["field"] == field
    assert response.json()["remedy"]
    assert f"{KEY} " not in response.text
    assert field == "api_base" or KEY not in response.text


async def test_presets_are_built_from_the_stored_provider_and_can_be_replaced(api: Api) -> None:
    assert [one["name"] for one in (await api.http.get("/api/v1/presets")).json()] == []
    await put(api, "groq", key=KEY)
    presets = {one["name"]: one for one in (await api.http.get("/api/v1/presets")).json()}
    assert presets.keys() == {"fast", "thorough"}
    assert presets["thorough"]["engines"]["executor"]["model"] == "groq/openai/gpt-oss-20b"
    assert presets["thorough"]["engines"]["all"]["model"] == "groq/openai/gpt-oss-120b"
    mine = {"engines": {"all": {"engine": "extractive"}}, "budget": {"max_turns": 2}}
    assert (await api.http.put("/api/v1/presets/fast", json=mine)).status_code == 200
    presets = {one["name"]: one for one in (await api.http.get("/api/v1/presets")).json()}
    assert (presets["fast"]["built_in"], presets["fast"]["budget"]["max_turns"]) == (False, 2)
    await api.http.delete("/api/v1/presets/fast")
    presets = {one["name"]: one for one in (await api.http.get("/api/v1/presets")).json()}
    assert presets["fast"]["built_in"]


async def test_a_run_takes_what_it_does_not_name_from_its_preset(api: Api) -> None:
    body = {"engines": {"all": {"engine": "extractive", "max_tokens": 99}}, "budget": {"max_turns": 2, "max_tokens": 9}}
    await api.http.put("/api/v1/presets/mine", json=body)
    run = await api.submit(preset="mine", budget={"max_tokens": 500})
    stored_row = (await api.http.get(f"/api/v1/runs/{run}")).json()
    assert (stored_row["budget"]["max_turns"], stored_row["budget"]["max_tokens"]) == (2, 500)
    assert {engine["max_tokens"] for engine in stored_row["engines"].values()} == {99}


async def test_a_run_has_the_depth_of_its_preset_unless_it_names_one(api: Api) -> None:
    body = {"engines": {"all": {"engine": "extractive"}}, "budget": {"max_turns": 60, "depth": "deep"}}
    await api.http.put("/api/v1/presets/mine", json=body)
    for limits, expected in (({}, (60, "deep")), ({"depth": "quick"}, (4, "quick")), ({"max_turns": 9}, (9, "deep"))):
        run = await api.submit(preset="mine", budget=limits)
        budget = (await api.http.get(f"/api/v1/runs/{run}")).json()["budget"]
        assert (budget["max_turns"], budget["depth"]) == expected


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("fast", "offing provider add"), ("local", "offing engine accept"), ("no-such", "fast, local, thorough")],
)
async def test_a_preset_that_is_not_there_says_what_is_missing(api: Api, name: str, remedy: str) -> None:
    question = {"question": "Why is the sea salt?", "graph": "quiet", "preset": name}
    response = await api.http.post("/api/v1/runs", json=question)
    assert response.status_code == 422, response.text
    assert response.json()["field"] == "preset"
    assert remedy in response.json()["remedy"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"engines": {}}, "engines"),
        ({"engines": {"all": {"engine": "no-such"}}}, "engines.all.engine"),
        ({"engines": {"all": {"engine": "litellm", "model": "ollama_chat/x"}}}, "engines.all.model"),
        ({"engines": {"all": {}}, "budget": {"max_turns": -1}}, "budget.max_turns"),
        ({"engines": {"all": {}}, "budget": {"depth": "deepest"}}, "budget.depth"),
    ],
)
async def test_an_invalid_preset_is_a_problem_with_its_field(api: Api, body: dict[str, Any], field: str) -> None:
    response = await api.http.put("/api/v1/presets/mine", json=body)
    assert (response.status_code, response.json()["field"]) == (422, field), response.text


def with_fallback(**fallback: Any) -> dict[str, Any]:
    own = {"engine": "litellm", "model": "openai/gpt-4o-mini", "options": {"stream": True}}
    return {"all": own | {"fallbacks": [{"engine": "litellm", "model": "groq/openai/gpt-oss-20b"} | fallback]}}


async def test_a_preset_and_a_run_have_the_fallbacks_that_were_set_up(api: Api) -> None:
    engines = with_fallback(max_tokens=500, options={"stream": True})
    assert (await api.http.put("/api/v1/presets/safe", json={"engines": engines})).status_code == 200
    presets = {one["name"]: one for one in (await api.http.get("/api/v1/presets")).json()}
    (stored,) = presets["safe"]["engines"]["all"]["fallbacks"]
    assert (stored["model"], stored["max_tokens"]) == ("groq/openai/gpt-oss-20b", 500)
    created = await api.http.post("/api/v1/runs", json={"question": "Why?", "graph": "quiet", "preset": "safe"})
    assert created.status_code == 201, created.text
    for engine in (await api.http.get(f"/api/v1/runs/{created.json()['id']}")).json()["engines"].values():
        (fallback,) = engine["fallbacks"]
        assert (fallback["model"], fallback["max_tokens"]) == ("groq/openai/gpt-oss-20b", 500)
        assert (engine["options"], fallback["options"]) == ({}, {}), "options may be private"


@pytest.mark.parametrize(
    ("fallback", "field"),
    [
        ({"engine": "extractive"}, "engine"),
        ({"model": "gpt-oss-20b"}, "model"),
        ({"model": "ollama_chat/qwen3"}, "model"),
        ({"model": "openai/gpt-4o-mini"}, "model"),
        ({"api_base": "http://169.254.169.254"}, "api_base"),
        ({"fallbacks": [{"engine": "litellm", "model": "xai/grok-4"}]}, "fallbacks"),
        ({"options": {"streams": True}}, "options.streams"),
    ],
)
async def test_a_fallback_that_cannot_be_used_is_rejected_where_it_is_set_up(
    api: Api, fallback: dict[str, Any], field: str
) -> None:
    engines = with_fallback(**fallback)
    preset = await api.http.put("/api/v1/presets/safe", json={"engines": engines})
    request = {"question": "Why?", "graph": "quiet", "engines": {"speaker": engines["all"]}}
    run = await api.http.post("/api/v1/runs", json=request)
    assert (preset.status_code, preset.json()["field"]) == (422, f"engines.all.fallbacks.0.{field}")
    assert (run.status_code, run.json()["field"]) == (422, f"engines.speaker.fallbacks.0.{field}")


async def test_the_limit_of_concurrent_calls_is_stored_and_shown(api: Api) -> None:
    assert (await put(api, "groq", key=KEY, max_concurrent_calls=2))["max_concurrent_calls"] == 2
    assert (await api.http.get("/api/v1/providers")).json()[0]["max_concurrent_calls"] == 2
    assert (await put(api, "groq"))["max_concurrent_calls"] is None, "a request without it removes it"
    for value in (0, -1, 10_001, "many"):
        response = await api.http.put("/api/v1/providers/groq", json={"key": KEY, "max_concurrent_calls": value})
        assert (response.status_code, response.json()["field"]) == (422, "max_concurrent_calls")
