"""Which addresses a choice may name, and where a key goes."""

import pytest

from offing.core.model import EngineConfig, EngineFailure
from offing.models.credentials import EngineEndpoint, resolve_endpoint

KEY = {"OPENAI_API_KEY": "the-key"}


def to(base: str, env: dict[str, str]) -> EngineEndpoint | EngineFailure:
    return resolve_endpoint(EngineConfig(engine="litellm", model="openai/x", api_base=base), env)


def test_no_address_leaves_both_to_the_provider() -> None:
    assert to("", KEY) == EngineEndpoint()


@pytest.mark.parametrize(
    "env",
    [
        {"OPENAI_API_BASE": "https://models.example/v1"},
        {"OPENAI_BASE_URL": "https://Models.example:443/v1/"},
        {"OPENAI_API_BASE": "https://models.example"},
        {"OFFING_ALLOWED_ENGINE_URLS": "http://10.0.0.5:8000/v1, https://models.example"},
    ],
)
def test_an_address_that_the_environment_names_gets_the_key(env: dict[str, str]) -> None:
    assert to("https://models.example/v1", KEY | env) == EngineEndpoint("https://models.example/v1", "the-key")


@pytest.mark.parametrize(
    "base",
    [
        "http://127.0.0.1:8000/v1",
        "http://localhost:8000/v1",
        "http://10.0.0.5:8000/v1",
        "https://elsewhere.example/v1",
        "http://models.example/v1",
        "https://models.example:8443/v1",
        "https://models.example@elsewhere.example/v1",
        "https://models.example.elsewhere.example/v1",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "http://[::1",
        "http://2130706433/v1",
        "nonsense",
    ],
)
def test_any_other_address_is_rejected_by_field(base: str) -> None:
    failure = to(base, KEY | {"OPENAI_API_BASE": "https://models.example/v1"})
    assert isinstance(failure, EngineFailure)
    assert failure.message.startswith("api_base:")


TEAM = {"OPENAI_API_BASE": "https://models.example/team-a"}


@pytest.mark.parametrize(
    "base",
    [
        "https://models.example/team-a",
        "https://models.example/team-a/",
        "https://models.example/team-a/v1",
        "https://MODELS.example:443/team-a",
    ],
)
def test_the_key_goes_to_the_path_that_is_named_and_below_it(base: str) -> None:
    assert to(base, KEY | TEAM) == EngineEndpoint(base, "the-key")


@pytest.mark.parametrize(
    "base",
    [
        "https://models.example/team-b",
        "https://models.example/",
        "https://models.example",
        "https://models.example/team-a-evil",
        "https://models.example/TEAM-A",
        "https://models.example/team-a/../team-b",
        "https://models.example/team-a/./../team-b",
        "https://models.example/team-b/../team-a",
        "https://models.example/team-a/%2e%2e/team-b",
        "https://models.example/team-a/..%2fteam-b",
        "https://models.example/team-a%2f..%2fteam-b",
        "https://models.example/team-a/..;/team-b",
        "https://models.example/team-a/..\\team-b",
        "https://models.example\\team-a",
        "https://models.example//team-a",
        "https://models.example/team-a//../team-b",
        "https://models.example/team-a?to=/team-b",
        "https://models.example/team-a#/team-b",
        "https://models.example/team-a\t/../team-b",
        "https://models.example/ team-a",
        "https://user@models.example/team-a",
        "https://:@models.example/team-a",
        "https://models.example:444/team-a",
        "https://models.example./team-a",
        "http://models.example:443/team-a",
        "https://models.example/t\u0435am-a",
        "https://\uff4dodels.example/team-a",
    ],
)
def test_another_path_of_the_same_server_is_rejected_by_field(base: str) -> None:
    failure = to(base, KEY | TEAM)
    assert isinstance(failure, EngineFailure)
    assert failure.message.startswith("api_base:")
