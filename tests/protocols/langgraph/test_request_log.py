"""The log of requests has the headers that a project chooses, and never a secret."""

from typing import Any

import httpx
import pytest
import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from offing.core.header_patterns import HeaderPatterns
from offing.protocols.langgraph.request_log import RequestLog


def answer(request: Request) -> PlainTextResponse:
    if request.url.path.endswith("/broken"):
        raise ValueError("the route fails")
    return PlainTextResponse("", 202)


def build_client(patterns: HeaderPatterns) -> httpx.AsyncClient:
    times = iter((1.0, 1.25))
    app = RequestLog(Starlette(routes=[Route("/{path:path}", answer)]), patterns, lambda: next(times))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, root_path="/langgraph"), base_url="http://here")


async def log_request(patterns: HeaderPatterns, path: str, headers: dict[str, str]) -> list[Any]:
    with structlog.testing.capture_logs() as logged:
        async with build_client(patterns) as client:
            await client.get(path, headers=headers)
    return logged


async def test_a_request_is_logged_with_its_answer_and_the_chosen_headers() -> None:
    headers = {"x-team": "tides", "x-region": "north", "accept": "text/plain"}
    (entry,) = await log_request(HeaderPatterns(("x-*",), ("x-region",)), "/langgraph/threads?secret=1", headers)
    expected = {"method": "GET", "path": "/threads", "status": 202, "ms": 250, "headers": {"x-team": "tides"}}
    assert expected.items() <= entry.items()
    assert "secret" not in str(entry)


async def test_a_header_with_a_secret_is_never_logged() -> None:
    secrets = {"x-api-key": "ofg_secret", "authorization": "Bearer secret", "cookie": "offing_session=secret"}
    (entry,) = await log_request(HeaderPatterns(), "/langgraph/threads", {**secrets, "x-team": "tides"})
    assert "secret" not in str(entry)
    assert entry["headers"]["x-team"] == "tides"


async def test_a_request_that_failed_is_logged_without_a_status() -> None:
    with structlog.testing.capture_logs() as logged:
        async with build_client(HeaderPatterns()) as client:
            with pytest.raises(ValueError, match="the route fails"):
                await client.get("/langgraph/broken")
    assert [one["path"] for one in logged] == ["/broken"]
