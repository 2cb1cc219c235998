"""Search engines for people who set them up: which are used and why, and a test search with one of them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import httpx

from offing import environment
from offing.core.errors import InvalidInput
from offing.services.tool_backends import (
    MAX_CONCURRENT_SEARCHES,
    MAX_SEARCHES_PER_MINUTE,
    build_named_provider,
    build_search_providers,
    find_engine_values,
)
from offing.settings import Settings
from offing.web.provider import SEARCH_ENGINES, SearchEngine
from offing.web.rate_limiter import SiteRateLimiter
from offing.web.search import search_web

MAX_TEST_HITS = 5
DOCUMENTATION = "docs/search-engines.md"


class EngineChoice(StrEnum):
    """Why these engines are used."""

    NAMED = "named"
    """OFFING_SEARCH_ENGINES names them."""
    CONFIGURED = "configured"
    """Their required variables are set."""
    KEYLESS = "keyless"
    """No engine is configured, so those are used that need nothing."""


@dataclass(frozen=True, slots=True)
class EngineVariable:
    """An environment variable of an engine. Its value is never shown."""

    name: str
    is_set: bool
    is_optional: bool


@dataclass(frozen=True, slots=True)
class SearchEngineState:
    """A registered search engine on this installation."""

    name: str
    is_used: bool
    variables: tuple[EngineVariable, ...]
    covers: str
    cost: str

    @property
    def is_ready(self) -> bool:
        """Whether it can be queried."""
        return all(variable.is_set or variable.is_optional for variable in self.variables)


@dataclass(frozen=True, slots=True)
class SearchSetup:
    """The search engines of this process. Workers with another environment may use others."""

    choice: EngineChoice
    engines: tuple[SearchEngineState, ...]
    """All registered engines: first those that are used, in their order."""
    problem: str = ""
    """Why no run can search the web. Empty if runs can."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SearchTrialResult:
    """The result of a test search."""

    seconds: float
    hits: tuple[tuple[str, str], ...]
    """Title and URL of each hit, best first. They are third-party text."""
    problem: str = ""
    """Why the engine failed. Empty if it did not."""
    remedy: str = ""


def describe_search(settings: Settings, env: Mapping[str, str] = environment.VARIABLES) -> SearchSetup:
    """Describe the search engines of these settings. No engine is contacted."""
    named = bool(settings.search_engines.strip(" ,"))
    try:
        used, problem, remedy = [one.name for one in build_search_providers(settings, env)], "", ""
    except InvalidInput as error:
        used, problem, remedy = list[str](), f"{error.field}: {error.problem}", error.remedy
    engines = [
        SearchEngineState(name, name in used, _list_variables(engine, settings, env), engine.covers, engine.cost)
        for name, engine in SEARCH_ENGINES.items()
    ]
    rank = {name: n for n, name in enumerate(used)}
    ordered = sorted(engines, key=lambda one: (rank.get(one.name, len(rank)), one.name))
    return SearchSetup(_find_choice(named, engines), tuple(ordered), problem, remedy)


def _find_choice(named: bool, engines: list[SearchEngineState]) -> EngineChoice:
    if named:
        return EngineChoice.NAMED
    has_own = any(one.is_ready and any(not variable.is_optional for variable in one.variables) for one in engines)
    return EngineChoice.CONFIGURED if has_own else EngineChoice.KEYLESS


def _list_variables(engine: SearchEngine, settings: Settings, env: Mapping[str, str]) -> tuple[EngineVariable, ...]:
    values = zip(engine.variables, find_engine_values(engine, settings, env), strict=True)
    return tuple(EngineVariable(name, bool(value), engine.is_optional) for name, value in values)


class SearchTrial:
    """Makes test searches in one process, at most `MAX_SEARCHES_PER_MINUTE` with each engine."""

    def __init__(
        self,
        settings: Settings,
        client: httpx.AsyncClient,
        env: Mapping[str, str] = environment.VARIABLES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._client, self._env, self._clock = settings, client, env, clock
        self._rate_limiter = SiteRateLimiter(MAX_CONCURRENT_SEARCHES, MAX_SEARCHES_PER_MINUTE)

    async def run(self, name: str, query: str) -> SearchTrialResult:
        """Search with one engine, whether runs use it or not.

        Raises InvalidInput if it is unknown or lacks a variable.
        """
        provider = build_named_provider(name, self._settings, self._env)
        began = self._clock()
        results = await search_web(self._client, [provider], query, MAX_TEST_HITS, self._rate_limiter)
        hits = tuple((merged.hit.title, merged.hit.url) for merged in results.hits)
        problem = results.failed.get(provider.name, "")
        remedy = _suggest_remedy(SEARCH_ENGINES[name], problem) if problem else ""
        return SearchTrialResult(self._clock() - began, hits, problem, remedy)


def _suggest_remedy(engine: SearchEngine, problem: str) -> str:
    variables = " and ".join(engine.variables)
    if "key" in problem and variables:
        return f"Check {variables} in the environment of the API and the workers, and restart them."
    if "wait" in problem or "limit" in problem:
        return "Try again in a minute, or set a key or name another engine."
    if "reached" in problem or "answer within" in problem:
        own = f" and {variables}" if engine.variables and not engine.is_optional else ""
        return f"Check that this machine reaches the internet{own}."
    return f"See {DOCUMENTATION}, or name other engines in OFFING_SEARCH_ENGINES."
