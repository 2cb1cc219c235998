"""Connections to a policy server: requests at the same time share them, and none is left open."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from offing.models.credentials import EngineEndpoint
from offing.models.policy_http import post_json
from offing.models.role_call import AttemptFailure


@dataclass
class CountingServer:
    """A server on a Unix socket that counts its connections, and answers `/slow` only when it is released."""

    endpoint: EngineEndpoint
    opened: int = 0
    open: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    all_closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened, self.open = self.opened + 1, self.open + 1
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                length = next(line for line in head.lower().split("\r\n") if line.startswith("content-length"))
                await reader.readexactly(int(length.partition(":")[2]))
                if "/slow" in head:
                    self.waiting.set()
                    await self.released.wait()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            self.open -= 1
            if not self.open:
                self.all_closed.set()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[CountingServer]:
    counting = CountingServer(EngineEndpoint(f"unix://{tmp_path}/s"))
    listener = await asyncio.start_unix_server(counting.handle, str(tmp_path / "s"))
    async with listener:
        yield counting


async def test_requests_at_the_same_time_use_idle_connections_again_and_the_last_one_closes_them(
    server: CountingServer,
) -> None:
    slow = asyncio.create_task(post_json(server.endpoint, "/slow", {}, 60))
    await server.waiting.wait()
    for _ in range(5):
        assert await post_json(server.endpoint, "/quick", {}, 60) == b"{}"
    assert server.opened == 2, "one that is busy, and one for the five that followed one another"
    server.released.set()
    assert await slow == b"{}"
    await asyncio.wait_for(server.all_closed.wait(), 60)


async def test_a_request_alone_leaves_no_connection_open(server: CountingServer) -> None:
    assert await post_json(server.endpoint, "/quick", {}, 60) == b"{}"
    await asyncio.wait_for(server.all_closed.wait(), 60)


async def test_a_request_that_is_cancelled_disturbs_no_other(server: CountingServer) -> None:
    slow = asyncio.create_task(post_json(server.endpoint, "/slow", {}, 60))
    await server.waiting.wait()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    server.released.set()
    assert await post_json(server.endpoint, "/quick", {}, 60) == b"{}"


async def test_a_server_that_is_not_there_is_a_failure_and_the_next_request_tries_again(tmp_path: Path) -> None:
    endpoint = EngineEndpoint(f"unix://{tmp_path}/none")
    for _ in range(2):
        failure = await post_json(endpoint, "/quick", {}, 60)
        assert isinstance(failure, AttemptFailure)
        assert "does not respond" in failure.message
