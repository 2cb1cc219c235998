from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.services.tool_backends import build_search_providers, parse_fetch_hosts
from offing.settings import Settings


@pytest.fixture(autouse=True)
def _nobody_s_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SEARXNG_URL",
        "TAVILY_API_KEY",
        "BRAVE_API_KEY",
        "OFFING_SEARCH_ENGINES",
        "OFFING_ALLOWED_FETCH_HOSTS",
    ):
        monkeypatch.delenv(name, raising=False)


def names(**inputs: Any) -> list[str]:
    return [engine.name for engine in build_search_providers(Settings(**inputs))]


def test_without_any_set_up_arxiv_is_asked_which_needs_no_key() -> None:
    assert names() == ["arxiv"]


def test_what_is_set_up_is_asked() -> None:
    assert names(brave_api_key="k", searxng_url="http://127.0.0.1:8888") == ["brave", "searxng"]


def test_what_is_named_is_asked_in_that_order() -> None:
    assert names(search_engines="arxiv, tavily", tavily_api_key="k", brave_api_key="k") == ["arxiv", "tavily"]


@pytest.mark.parametrize(("inputs", "field"), [("bing", "OFFING_SEARCH_ENGINES"), ("tavily", "TAVILY_API_KEY")])
def test_an_engine_that_is_unknown_or_has_no_key_is_rejected_by_name(inputs: str, field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        names(search_engines=inputs)
    assert error.value.field == field


def test_addresses_that_may_be_fetched_from_include_their_port() -> None:
    assert parse_fetch_hosts(Settings(allowed_fetch_hosts="Wiki:443, 10.0.0.8:8080")) == {"wiki:443", "10.0.0.8:8080"}
    with pytest.raises(InvalidInput, match="has no port"):
        parse_fetch_hosts(Settings(allowed_fetch_hosts="wiki"))
