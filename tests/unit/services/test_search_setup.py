"""Which search engines are used is explained, a test search reports what went wrong, and no key is shown."""

import httpx
import pytest
from pydantic import SecretStr

from offing.core.errors import InvalidInput
from offing.services.search_engines import EngineChoice, SearchTrial, describe_search
from offing.settings import Settings

KEY = "c4n4ry-search-key"


def trial(answer: httpx.Response | Exception) -> SearchTrial:
    def respond(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    client = httpx.AsyncClient(transport=httpx.MockTransport(respond))
    return SearchTrial(Settings(brave_api_key=SecretStr(KEY)), client, {})


def test_the_reason_for_the_choice_is_named() -> None:
    assert describe_search(Settings(), {}).choice is EngineChoice.KEYLESS
    configured = describe_search(Settings(brave_api_key=SecretStr(KEY)), {})
    assert (configured.choice, [one.name for one in configured.engines if one.is_used]) == (
        EngineChoice.CONFIGURED,
        ["brave"],
    )
    named = describe_search(Settings(search_engines="wikipedia,arxiv"), {})
    assert (named.choice, [one.name for one in named.engines[:2]]) == (EngineChoice.NAMED, ["wikipedia", "arxiv"])


def test_a_named_engine_without_its_key_is_a_problem_with_a_remedy() -> None:
    setup = describe_search(Settings(search_engines="brave"), {})
    assert "BRAVE_API_KEY" in setup.problem
    assert setup.remedy
    assert not [one for one in setup.engines if one.is_used]


def test_an_optional_key_makes_no_engine_the_configured_one() -> None:
    assert describe_search(Settings(openalex_api_key=SecretStr(KEY)), {}).choice is EngineChoice.KEYLESS


def test_no_value_of_a_variable_is_described() -> None:
    assert KEY not in repr(describe_search(Settings(brave_api_key=SecretStr(KEY)), {}))


async def test_a_rejected_key_names_the_variable() -> None:
    result = await trial(httpx.Response(401)).run("brave", "salt")
    assert result.problem == "It does not accept the key."
    assert "BRAVE_API_KEY" in result.remedy
    assert KEY not in repr(result)


async def test_an_engine_that_cannot_be_reached_is_reported() -> None:
    result = await trial(httpx.ConnectError("no route")).run("brave", "salt")
    assert (result.hits, result.problem) == ((), "It cannot be reached.")
    assert result.remedy


async def test_hits_are_counted() -> None:
    body = {"type": "search", "web": {"results": [{"url": "https://a.example/", "title": "Salt"}]}}
    result = await trial(httpx.Response(200, json=body)).run("brave", "salt")
    assert (result.hits, result.problem) == ((("Salt", "https://a.example/"),), "")


async def test_an_engine_without_its_key_is_not_tested() -> None:
    with pytest.raises(InvalidInput, match="EXA_API_KEY"):
        await trial(httpx.Response(200)).run("exa", "salt")
