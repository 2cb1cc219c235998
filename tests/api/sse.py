"""A client of server-sent events that reads as a browser does."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson


@dataclass(frozen=True)
class Event:
    name: str
    data: Any
    id: str | None


@dataclass
class Stream:
    """One open stream. Everything that came stays in `seen`."""

    response: httpx.Response
    seen: list[Event] = field(default_factory=list[Event])
    comments: int = 0
    closed: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def seqs(self) -> list[int]:
        return [e.data["seq"] for e in self.seen if e.name == "step"]

    @property
    def last_id(self) -> str | None:
        return next((e.id for e in reversed(self.seen) if e.id is not None), None)

    def named(self, name: str) -> list[Event]:
        return [e for e in self.seen if e.name == name]

    async def until(self, expected: Callable[["Stream"], bool], seconds: float = 15) -> None:
        async with asyncio.timeout(seconds):
            while not expected(self):
                self.news.clear()
                await self.news.wait()

    async def read(self) -> None:
        block: dict[str, str] = {}
        try:
            async for line in self.response.aiter_lines():
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    block[name] = value
                elif block:
                    self.seen.append(Event(block.get("event", "message"), orjson.loads(block["data"]), block.get("id")))
                    block = {}
                self.news.set()
        except httpx.HTTPError:
            pass
        self.closed = True
        self.news.set()


@asynccontextmanager
async def following(http: httpx.AsyncClient, path: str, **headers: str) -> AsyncGenerator[Stream]:
    """Read a stream in the background while the block runs; leaving it hangs up."""
    async with http.stream("GET", path, headers=headers, timeout=30) as response:
        assert response.status_code == 200, await response.aread()
        stream = Stream(response)
        reading = asyncio.create_task(stream.read())
        try:
            yield stream
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
