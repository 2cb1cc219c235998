"""Servers that speak the protocol, asked over real sockets."""

from typing import Any

import pytest

from offing.mcp.client import Asking, Said
from offing.mcp.listed import Listed, digest
from offing.mcp.servers import Server
from offing.web.url import Refused
from tests.mcp.serving import official, own

TOKEN = "canary-3f9a77c1e0"


def server(url: str, **more: Any) -> Server:
    return Server.model_validate({"url": url, "private": True, **more})


async def listed(asking: Asking, one: Server) -> tuple[Listed, ...]:
    found = await asking.listed(one)
    assert not isinstance(found, Refused), found
    return found


async def test_a_server_of_the_official_package_lists_its_tools_and_answers() -> None:
    async with official() as url, Asking({}) as asking:
        tools = await listed(asking, server(url))
        assert [tool.name for tool in tools] == ["add", "about"]
        answer = await asking.called(server(url), digest(tools), "add", {"a": 2, "b": 3})
        assert answer == Said("2 and 3 make 5.", False, ())


@pytest.mark.parametrize("streams", [False, True])
async def test_answers_come_whole_or_as_events(streams: bool) -> None:
    async with own() as served, Asking({}) as asking:
        served.streams = streams
        pin = digest(await listed(asking, server(served.url)))
        assert await asking.called(server(served.url), pin, "echo", {"text": "hello"}) == Said("hello", False, ())
        assert served.calls()[0]["params"]["arguments"] == {"text": "hello"}
