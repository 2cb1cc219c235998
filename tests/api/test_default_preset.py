"""The default preset of a tenant: what a new question takes from it, and what does not."""

from dataclasses import replace
from typing import Any

import pytest

from offing.core.model import EngineConfig
from offing.models.credentials import KEY_VARIABLES
from tests.api.conftest import Api

OURS = {"engines": {"all": {"engine": "extractive", "max_tokens": 77}}, "budget": {"max_turns": 3}}


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEY_VARIABLES.values():
        monkeypatch.delenv(name, raising=False)


async def choose(api: Api, name: str | None = "ours") -> dict[str, Any]:
    if name == "ours":
        await api.http.put("/api/v1/presets/ours", json=OURS)
    chosen = await api.http.patch("/api/v1/tenant", json={"default_preset": name})
    assert chosen.status_code == 200, chosen.text
    return chosen.json()


async def limits_of(api: Api, **request: Any) -> tuple[int, int | None]:
    """The turns of a new run, and the token limit of its engine."""
    run = (await api.http.get(f"/api/v1/runs/{await api.submit(**request)}")).json()
    return run["budget"]["max_turns"], run["engines"]["speaker"].get("max_tokens")


async def test_a_new_question_has_engines_and_limits_of_the_default_preset(api: Api) -> None:
    assert (await api.http.get("/api/v1/tenant")).json()["default_preset"] is None
    assert (await limits_of(api))[0] == 12
    assert (await choose(api))["default_preset"] == "ours"
    assert await limits_of(api) == (3, 77)
    assert await limits_of(api, budget={"max_turns": 5}) == (5, 77)


async def test_a_default_preset_begins_and_ends_with_the_next_question(api: Api) -> None:
    for _ in range(2):
        assert (await limits_of(api))[0] == 12
        await choose(api)
        assert [await limits_of(api), await limits_of(api)] == [(3, 77), (3, 77)]
        await choose(api, None)


async def test_a_question_that_only_its_default_preset_makes_possible_is_answered(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    deps = api.app.state.dependencies
    unknown = replace(deps, default_engine=EngineConfig(engine="extractive", api_base="http://no.example"))
    monkeypatch.setattr(api.app.state, "dependencies", unknown)
    rejected = await api.http.post("/api/v1/runs", json={"question": "Why is the sea salt?", "graph": "quiet"})
    assert rejected.status_code == 422, rejected.text
    await choose(api)
    assert await limits_of(api) == (3, 77)


async def test_a_question_that_names_a_preset_or_an_engine_takes_nothing_from_the_default(api: Api) -> None:
    await choose(api)
    await api.http.put("/api/v1/presets/other", json={"engines": {"all": {"engine": "extractive", "max_tokens": 55}}})
    assert await limits_of(api, preset="other") == (12, 55)
    assert (await limits_of(api, engines={"speaker": {"engine": "extractive"}}))[0] == 12


async def test_a_follow_up_keeps_the_engines_of_its_thread(api: Api) -> None:
    first = await api.submit()
    fence = await api.hands.claim(first)
    await api.hands.report(fence, await api.hands.document())
    await api.hands.end(fence)
    await choose(api)
    thread = (await api.http.get(f"/api/v1/runs/{first}")).json()["thread_id"]
    turns, tokens = await limits_of(api, thread_id=thread)
    assert turns == 12
    assert tokens != 77


async def test_the_default_preset_must_exist_and_ends_when_it_is_deleted(api: Api) -> None:
    missing = await api.http.patch("/api/v1/tenant", json={"default_preset": "no-such"})
    assert (missing.status_code, missing.json()["field"]) == (422, "preset")
    await choose(api)
    unchanged = await api.http.patch("/api/v1/tenant", json={"training_opt_in": True})
    assert unchanged.json()["default_preset"] == "ours"
    assert (await choose(api, None))["default_preset"] is None
    await choose(api)
    await api.http.delete("/api/v1/presets/ours")
    assert (await api.http.get("/api/v1/tenant")).json()["default_preset"] is None


async def test_a_default_preset_whose_provider_is_gone_is_reported_with_what_to_do(api: Api) -> None:
    await api.http.put("/api/v1/providers/groq", json={"key": "key-of-the-local-tenant"})
    await choose(api, "fast")
    assert (await limits_of(api))[0] == 4
    await api.http.delete("/api/v1/providers/groq")
    rejected = await api.http.post("/api/v1/runs", json={"question": "Why is the sea salt?", "graph": "quiet"})
    assert (rejected.status_code, rejected.json()["field"]) == (422, "preset")
    assert "default preset 'fast' cannot be used" in rejected.text
    assert "offing preset default" in rejected.json()["remedy"]


async def test_the_default_preset_is_that_of_its_tenant_alone(api: Api) -> None:
    await choose(api)
    theirs = await api.other.patch("/api/v1/tenant", json={"default_preset": "ours"})
    assert (theirs.status_code, theirs.json()["field"]) == (422, "preset")
    assert (await api.other.get("/api/v1/tenant")).json()["default_preset"] is None
    created = await api.other.post("/api/v1/runs", json={"question": "Why is the sea salt?", "graph": "quiet"})
    assert created.json()["budget"]["max_turns"] == 12


async def test_the_settings_name_the_engine_that_answers_without_a_preset(api: Api) -> None:
    assert (await api.http.get("/api/v1/tenant")).json()["default_engine"] == "extractive"
