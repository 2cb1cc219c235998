"""The models of a provider over the API, and the providers that can be stored."""

from typing import Any

import pytest

from offing.models.credentials import KEY_VARIABLES
from offing.models.stored_provider import STORABLE_PROVIDERS
from tests.api.conftest import Api
from tests.model_provider import Fault, Hangup, Reply, WireServer
from tests.model_provider.replies import Whole

KEY = "c4n4ry-key-of-the-api-0123456789"


@pytest.fixture(autouse=True)
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEY_VARIABLES.values():
        monkeypatch.delenv(name, raising=False)


async def list_models(api: Api, name: str, search: str = "") -> dict[str, Any]:
    response = await api.http.get(f"/api/v1/providers/{name}/models", params={"q": search} if search else {})
    assert response.status_code == 200, response.text
    assert KEY not in response.text
    return response.json()


def serve(*models: dict[str, Any]) -> Whole:
    return Whole({"object": "list", "data": list(models)})


async def test_a_server_is_asked_for_its_models_with_the_key_and_says_their_window(api: Api) -> None:
    embedding = {"id": "embed", "type": "embedding"}
    async with WireServer(lambda _: serve({"id": "qwen", "max_model_len": 32768}, {"id": "apt"}, embedding)) as server:
        body = {"provider": "hosted_vllm", "api_base": server.url, "key": KEY}
        assert (await api.http.put("/api/v1/providers/work", json=body)).status_code == 200
        listed = await list_models(api, "work")
        matching = await list_models(api, "work", "QW")
    assert [one["name"] for one in listed["items"]] == ["apt", "qwen"]
    assert (listed["source"], listed["problem"], listed["total"]) == ("server", "", 2)
    assert listed["items"][1]["context_tokens"] == 32768
    assert {listed["items"][0][field] for field in ("context_tokens", "input_usd_per_million", "calls_tools")} == {None}
    assert [one["name"] for one in matching["items"]] == ["qwen"]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v1/models")


async def test_ollama_is_asked_by_its_own_path_and_without_a_key(api: Api) -> None:
    async with WireServer(lambda _: Whole({"models": [{"name": "llama3.2:3b"}]})) as server:
        address = server.url.removesuffix("/v1")
        body = {"provider": "ollama_chat", "api_base": address, "key": ""}
        assert (await api.http.put("/api/v1/providers/mine", json=body)).status_code == 200
        listed = await list_models(api, "mine")
    assert [one["name"] for one in listed["items"]] == ["llama3.2:3b"]
    assert server.requests[0].path == "/api/tags"
    assert "authorization" not in server.requests[0].headers


REDIRECT = Fault(302, "elsewhere", headers={"location": "http://127.0.0.1:1/v1/models"})


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (Fault(401, "no"), "rejected the key"),
        (Fault(404, "no"), "status 404"),
        (REDIRECT, "status 302"),
        (Whole({"models": "many"}), "list of models"),
        (Hangup(), "cannot be reached"),
    ],
)
async def test_a_server_that_lists_no_models_is_a_problem_in_words(api: Api, reply: Reply, problem: str) -> None:
    async with WireServer(lambda _: reply) as server:
        body = {"provider": "hosted_vllm", "api_base": server.url, "key": KEY}
        await api.http.put("/api/v1/providers/work", json=body)
        listed = await list_models(api, "work")
    assert listed["items"] == []
    assert problem in listed["problem"]


async def test_a_server_whose_address_is_not_accepted_any_more_is_not_asked(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with WireServer(lambda _: serve({"id": "qwen"})) as server:
        body = {"provider": "hosted_vllm", "api_base": server.url, "key": KEY}
        await api.http.put("/api/v1/providers/work", json=body)
        monkeypatch.setenv("OFFING_ENGINE_SERVERS", "/nowhere/engine-servers")
        listed = await list_models(api, "work")
    assert server.requests == []
    assert "accepted" in listed["problem"]


async def test_a_known_provider_has_the_models_of_the_table_with_their_prices(api: Api) -> None:
    await api.http.put("/api/v1/providers/anthropic", json={"key": KEY})
    listed = await list_models(api, "anthropic", "haiku-4-5")
    model = next(one for one in listed["items"] if one["name"] == "claude-haiku-4-5")
    assert listed["source"] == "table"
    assert (model["input_usd_per_million"], model["output_usd_per_million"]) == (1.0, 5.0)
    assert (model["context_tokens"], model["calls_tools"], model["reads_images"]) == (200_000, True, True)


async def test_the_models_of_another_tenants_provider_are_not_listed(api: Api) -> None:
    await api.http.put("/api/v1/providers/anthropic", json={"key": KEY})
    assert (await api.other.get("/api/v1/providers/anthropic/models")).status_code == 404
    assert (await api.nobody.get("/api/v1/providers/anthropic/models")).status_code == 401


async def test_every_provider_that_can_be_stored_is_listed_with_what_it_needs(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    response = await api.http.get("/api/v1/provider-kinds")
    kinds = {one["name"]: one for one in response.json()}
    assert kinds.keys() == STORABLE_PROVIDERS
    assert all(one["title"] for one in kinds.values())
    assert (kinds["openai"]["is_server"], kinds["openai"]["suggested_models"][0]) == (False, "gpt-5-mini")
    assert (kinds["ollama_chat"]["is_server"], kinds["ollama_chat"]["default_address"]) == (
        True,
        "http://127.0.0.1:11434",
    )
    assert kinds["litellm_proxy"]["needs_address"]
    assert [name for name, one in kinds.items() if one["environment_key"]] == ["groq"]
    assert KEY not in response.text
    assert (await api.nobody.get("/api/v1/provider-kinds")).status_code == 401
