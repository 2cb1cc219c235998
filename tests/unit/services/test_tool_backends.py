from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest
from pydantic import SecretStr

from offing.core.errors import InvalidInput
from offing.services.tool_backends import (
    MAX_SEARCHES_PER_MINUTE,
    build_search_providers,
    build_search_rate_limiter,
    open_tool_backends,
    parse_fetch_hosts,
)
from offing.services.web_access import WebPageReader
from offing.settings import UNPREFIXED_VARIABLES, Settings
from offing.web.providers.brave import BraveProvider
from offing.web.providers.wikipedia import ENGLISH_URL
from offing.web.search import SearchResults

KEYLESS = ["arxiv", "crossref", "europe_pmc", "openalex", "semantic_scholar", "wikipedia"]


@pytest.fixture(autouse=True)
def _nobody_s_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*UNPREFIXED_VARIABLES, "OFFING_SEARCH_ENGINES", "OFFING_ALLOWED_FETCH_HOSTS"):
        monkeypatch.delenv(name, raising=False)


def names(**inputs: Any) -> list[str]:
    return [engine.name for engine in build_search_providers(Settings(**inputs))]


def test_without_any_set_up_those_are_asked_that_need_no_key() -> None:
    assert names() == KEYLESS


def test_an_optional_key_is_used_and_replaces_no_engine() -> None:
    assert names(semantic_scholar_api_key="k-s2", openalex_api_key="k-oa", wikipedia_url="https://de.x") == KEYLESS
    engines = {one.name: one for one in build_search_providers(Settings(semantic_scholar_api_key=SecretStr("k-s2")))}
    assert engines["semantic_scholar"].build_request("tides", 1).headers == {"x-api-key": "k-s2"}
    assert engines["wikipedia"].build_request("tides", 1).url.startswith(ENGLISH_URL)
    (wikipedia,) = build_search_providers(Settings(search_engines="wikipedia", wikipedia_url="https://de.x/"))
    assert wikipedia.build_request("tides", 1).url == "https://de.x/w/api.php"
    assert names(search_engines="openalex,semantic_scholar,wikipedia") == ["openalex", "semantic_scholar", "wikipedia"]


def test_an_engine_with_two_variables_needs_both() -> None:
    assert names(google_pse_api_key="k") == KEYLESS
    assert names(google_pse_id="c") == KEYLESS
    assert names(google_pse_api_key="k", google_pse_id="c") == ["google_pse"]
    for inputs, field in (({}, "GOOGLE_PSE_API_KEY"), ({"google_pse_api_key": "k"}, "GOOGLE_PSE_ID")):
        with pytest.raises(InvalidInput) as error:
            names(search_engines="google_pse", **inputs)
        assert error.value.field == field


async def test_searches_of_a_process_share_one_limiter() -> None:
    async with open_tool_backends(Settings(sandbox="off")) as backends:
        assert [one.name for one in backends.search_providers] == KEYLESS
        limiter = backends.search_rate_limiter
        assert limiter is not None
        limiter.set_retry_after("arxiv", "60")
        engine = replace(backends, search_providers=backends.search_providers[:1])
        searched = await WebPageReader(cast(Any, None), UUID(int=0), engine).search("tides", 3)
    assert searched == SearchResults((), {"arxiv": "The site asks to be left alone for 60 more seconds."})


def test_only_engines_without_a_required_key_are_limited_per_minute() -> None:
    limiter = build_search_rate_limiter([*build_search_providers(Settings()), BraveProvider("k")])
    assert limiter.exempt_sites == {"brave"}
    assert limiter.max_per_minute == MAX_SEARCHES_PER_MINUTE


def test_what_is_set_up_is_asked() -> None:
    assert names(brave_api_key="k", searxng_url="http://127.0.0.1:8888") == ["brave", "searxng"]
    assert names(serper_api_key="k", exa_api_key="k") == ["exa", "serper"]


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
