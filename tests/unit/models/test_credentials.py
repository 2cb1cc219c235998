"""Which addresses a choice may name, and where a key goes."""

import pytest

from offing.core.model import EngineChoice, EngineFailure
from offing.models.credentials import NO_KEY, Destination, destination, is_loopback

KEY = {"OPENAI_API_KEY": "the-key"}


def to(base: str, env: dict[str, str]) -> Destination | EngineFailure:
    return destination(EngineChoice(engine="litellm", model="openai/x", api_base=base), env)


def test_no_address_leaves_both_to_the_provider() -> None:
    assert to("", KEY) == Destination()


def test_this_machine_is_allowed_without_the_key() -> None:
    assert to("http://127.0.0.1:8000/v1", KEY) == Destination("http://127.0.0.1:8000/v1", NO_KEY)


@pytest.mark.parametrize(
    "env",
    [
        {"OPENAI_API_BASE": "https://models.example/v1"},
        {"OPENAI_BASE_URL": "https://models.example/other"},
        {"OFFING_ENGINE_ADDRESSES": "http://10.0.0.5:8000/v1, https://models.example"},
    ],
)
def test_an_address_that_the_environment_names_gets_the_key(env: dict[str, str]) -> None:
    assert to("https://models.example/v1", KEY | env) == Destination("https://models.example/v1", "the-key")


@pytest.mark.parametrize(
    "base",
    [
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
def test_any_other_address_is_refused_by_field(base: str) -> None:
    failure = to(base, KEY | {"OPENAI_API_BASE": "https://models.example/v1"})
    assert isinstance(failure, EngineFailure)
    assert failure.message.startswith("api_base:")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://127.8.8.8", True),
        ("http://0.0.0.0", False),
        ("http://localhost.example", False),
    ],
)
def test_loopback_is_known_without_resolving(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected
