"""Servers that speak the protocol, asked over real sockets, and what becomes of a call that is given up."""

import asyncio
import logging
from typing import Any

import pytest

from offing.mcp.client import McpClient, McpToolResult
from offing.mcp.servers import McpServerConfig
from offing.mcp.tool_listing import McpToolListing, hash_tools
from offing.web.url import InvalidUrl
from tests.mcp.servers import (
    Answer,
    Message,
    MisbehavingServer,
    content,
    misbehaving_server,
    official,
    text_message,
    tool,
)

TOKEN = "canary-3f9a77c1e0"


def server(url: str, **more: Any) -> McpServerConfig:
    return McpServerConfig.model_validate({"url": url, "private": True, **more})


async def listed(client: McpClient, one: McpServerConfig) -> tuple[McpToolListing, ...]:
    tools = await client.list_tools(one)
    assert not isinstance(tools, InvalidUrl), tools
    return tools


async def echoed(client: McpClient, served: MisbehavingServer, text: str = "hello") -> McpToolResult | InvalidUrl:
    """Looked at and called at once."""
    one = server(served.url)
    return await client.call_tool(one, hash_tools(await listed(client, one)), "echo", {"text": text})


async def test_a_server_of_the_official_package_lists_its_tools_and_answers() -> None:
    async with official() as url, McpClient({}) as client:
        tools = await listed(client, server(url))
        assert [tool.name for tool in tools] == ["add", "about"]
        answer = await client.call_tool(server(url), hash_tools(tools), "add", {"a": 2, "b": 3})
        assert answer == McpToolResult("2 and 3 make 5.", False, ())


@pytest.mark.parametrize("streams", [False, True])
async def test_answers_come_whole_or_as_events(streams: bool) -> None:
    async with misbehaving_server() as served, McpClient({}) as client:
        served.streams = streams
        assert await echoed(client, served) == McpToolResult("hello", False, ())
        assert served.calls()[0]["params"]["arguments"] == {"text": "hello"}


async def test_a_list_in_pages_is_read_to_its_end() -> None:
    async with misbehaving_server() as served, McpClient({}) as client:
        served.pages = [[tool("one")], [tool("two")], [tool("three")]]
        assert [one.name for one in await listed(client, server(served.url))] == ["one", "two", "three"]


async def test_text_of_resources_is_taken_and_what_is_not_text_is_named() -> None:
    async def answer(_: Message) -> Answer:
        return content(
            {"type": "text", "text": "first"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x://1", "text": "second"}},
            {"type": "resource", "resource": {"uri": "x://2", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "https://example.org/a", "name": "more"},
        )

    async with misbehaving_server() as served, McpClient({}) as client:
        served.answer = answer
        assert await echoed(client, served) == McpToolResult(
            "first\n\nsecond\n\nmore: https://example.org/a", False, ("image", "resource")
        )


async def test_an_answer_without_text_is_its_structure() -> None:
    async def answer(_: Message) -> Answer:
        return content(structuredContent={"depth": 12})

    async with misbehaving_server() as served, McpClient({}) as client:
        served.answer = answer
        assert await echoed(client, served) == McpToolResult('{\n  "depth": 12\n}', False, ())


async def test_a_tool_that_fails_says_so_in_its_own_words() -> None:
    async def answer(_: Message) -> Answer:
        return text_message("no such harbour", isError=True)

    async with misbehaving_server() as served, McpClient({}) as client:
        served.answer = answer
        assert await echoed(client, served) == McpToolResult("no such harbour", True, ())


async def test_a_call_that_is_given_up_closes_its_connection() -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def answer(_: Message) -> Answer:
        begun.set()
        await never.wait()
        return text_message("too late")

    async with misbehaving_server() as served, McpClient({}) as client:
        served.answer = answer
        call = asyncio.create_task(echoed(client, served))
        await asyncio.wait_for(begun.wait(), 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(30):
            while not served.closed_count:  # noqa: ASYNC110  # it is counted in another task
                await asyncio.sleep(0.01)


async def test_calls_side_by_side_do_not_meet() -> None:
    async with misbehaving_server() as served, McpClient({}) as client:
        answers = await asyncio.gather(*(echoed(client, served, f"call {n}") for n in range(20)))
        assert [answer.text for answer in answers if isinstance(answer, McpToolResult)] == [
            f"call {n}" for n in range(20)
        ]


async def test_a_secret_goes_to_its_server_and_is_not_in_anything_that_comes_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer(message: Message) -> Answer:
        return text_message(f"you sent {TOKEN}", structuredContent={TOKEN: [TOKEN]})

    env = {"WIKI_TOKEN": TOKEN, "WIKI_API_KEY": f"{TOKEN}-key", "WIKI_QUERY_KEY": f"{TOKEN} query"}
    caplog.set_level(logging.DEBUG)
    async with misbehaving_server() as served, McpClient(env) as client:
        served.answer = answer
        served.tools = [tool(description=f"Wants {TOKEN}.")]
        one = server(
            served.url, bearer="WIKI_TOKEN", headers={"X-Api-Key": "WIKI_API_KEY"}, query={"key": "WIKI_QUERY_KEY"}
        )
        tools = await listed(client, one)
        answered = await client.call_tool(one, hash_tools(tools), "echo", {"text": "x"})
        heads = [head for head, _ in served.requests]
        assert all(f"Authorization: Bearer {TOKEN}\r\n" in head for head in heads)
        assert all(f"X-Api-Key: {TOKEN}-key\r\n" in head for head in heads)
        assert all(head.split(" ")[1] == f"/mcp?key={TOKEN}%20query" for head in heads)
        assert isinstance(answered, McpToolResult)
        assert answered.text.startswith("you sent [redacted")
        assert TOKEN not in f"{tools} {answered} {client!r} {one!r}"
        assert TOKEN not in "".join(line for line in caplog.text.splitlines() if "tests" not in line)


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({}, "WIKI_TOKEN is not set, but the bearer token needs it."),
        (
            {"WIKI_TOKEN": "short"},
            "WIKI_TOKEN cannot be used: a secret must have at least 8 printable ASCII characters.",
        ),
        (
            {"WIKI_TOKEN": "with\r\nX: y-a-new-line"},
            "WIKI_TOKEN cannot be used: a secret must have at least 8 printable ASCII",
        ),
    ],
)
async def test_a_secret_that_cannot_be_sent_or_kept_out_of_logs_stops_the_call(
    env: dict[str, str], problem: str
) -> None:
    async with misbehaving_server() as served, McpClient(env) as client:
        tools = await client.list_tools(server(served.url, bearer="WIKI_TOKEN"))
        assert isinstance(tools, InvalidUrl)
        assert tools.problem.startswith(problem)
        assert served.requests == []


async def test_a_server_that_is_not_there_is_named_without_its_address() -> None:
    async with misbehaving_server() as served:
        deleted = served.url
    async with McpClient({}) as client:
        assert await client.list_tools(server(deleted)) == InvalidUrl("It cannot be reached.")
