from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.services.reach import fetch_hosts, search_engines
from offing.settings import Settings


@pytest.fixture(autouse=True)
def _nobody_s_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEARXNG_URL", "TAVILY_API_KEY", "BRAVE_API_KEY", "OFFING_SEARCH", "OFFING_FETCH_HOSTS"):
        monkeypatch.delenv(name, raising=False)


def names(**given: Any) -> list[str]:
    return [engine.name for engine in search_engines(Settings(**given))]


def test_without_any_set_up_arxiv_is_asked_which_needs_no_key() -> None:
    assert names() == ["arxiv"]


def test_what_is_set_up_is_asked() -> None:
    assert names(brave_api_key="k", searxng_url="http://127.0.0.1:8888") == ["searxng", "brave"]


def test_what_is_named_is_asked_in_that_order() -> None:
    assert names(search="arxiv, tavily", tavily_api_key="k", brave_api_key="k") == ["arxiv", "tavily"]


@pytest.mark.parametrize(("given", "field"), [("bing", "OFFING_SEARCH"), ("tavily", "TAVILY_API_KEY")])
def test_an_engine_that_is_unknown_or_has_no_key_is_refused_by_name(given: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        names(search=given)
    assert refused.value.field == field


def test_places_that_may_be_fetched_from_carry_their_port() -> None:
    assert fetch_hosts(Settings(fetch_hosts="Wiki:443, 10.0.0.8:8080")) == {"wiki:443", "10.0.0.8:8080"}
    with pytest.raises(InvalidInput, match="names no port"):
        fetch_hosts(Settings(fetch_hosts="wiki"))
