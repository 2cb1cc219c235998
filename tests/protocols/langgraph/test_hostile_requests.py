"""Hostile requests break nothing, and get nothing of another tenant.

`HOSTILE_REQUESTS` and `HOSTILE_SEED` set how many requests are sent, and with which seed.
"""

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, get_type_hints

import httpx
import pytest
from fastapi import Request
from fastapi.routing import APIRoute, iter_route_contexts
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from offing.protocols.langgraph.app import build_langgraph_app
from tests.protocols.langgraph.conftest import ENVIRONMENT as WITH_GRAPHS
from tests.protocols.langgraph.conftest import Client
from tests.protocols.langgraph.hostile_bodies import OWN_BODIES
from tests.protocols.langgraph.hostile_mutations import HostileRequest
from tests.protocols.langgraph.hostile_requests import HostileGenerator, list_routes, list_socket_paths
from tests.protocols.langgraph.test_project_rules import open_client, serving_users
from tests.workers.conftest import SharedServers

ENVIRONMENT = WITH_GRAPHS

COUNT = int(os.environ.get("HOSTILE_REQUESTS", "1500"))

SEED = int(os.environ.get("HOSTILE_SEED", "17"))

AT_ONCE = 8

ANSWER_SECONDS = 40.0
"""Time after which a request hangs: longer than the time for which a cancelled run may go on."""

STREAM_SECONDS = 0.15
"""Time for which a stream that has no end is read."""

CANARY = "canary-7f3e1c"
"""It is in every record of the other tenant, and in no request of the caller."""

BATCH = 500
"""Requests after which the caller gets records anew, because requests delete them."""

OWN_SHARE = 5
"""A route that reads its own body, which has many methods, gets that many more requests than others."""

SOCKET_SHARE = 30
"""One connection over WebSocket is opened per this number of requests."""


@dataclass
class Findings:
    """What went wrong."""

    faults: list[str] = field(default_factory=list[str])
    statuses: Counter[int] = field(default_factory=Counter[int])

    def check(self, request: object, status: int, answer: bytes) -> None:
        self.statuses[status] += 1
        if status >= 500:
            self.faults.append(f"status {status}: {request} was answered {answer[:300]!r}")
        if CANARY.encode() in answer:
            self.faults.append(f"another tenant's text: {request} was answered {answer[:300]!r}")


class ErrorRecords(logging.Handler):
    """Errors that the API logs, such as one in a stream whose status was sent already."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record)[-1500:])


@pytest.fixture
def error_records() -> Any:
    handler = ErrorRecords()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_every_route_that_reads_its_own_body_gets_hostile_bodies() -> None:
    app = build_langgraph_app(lambda: None)  # pyright: ignore[reportArgumentType]
    read_by_route = {
        (method, str(one.path))
        for one in iter_route_contexts(app.routes)
        if isinstance(one.original_route, APIRoute) and one.original_route.body_field is None
        for method in one.methods or ()
        if method in ("POST", "PUT", "PATCH") and Request in get_type_hints(one.original_route.endpoint).values()
    }
    assert read_by_route == OWN_BODIES.keys()
    assert OWN_BODIES.keys() <= {(route.method, route.path) for route in list_routes()[0]}


@dataclass(frozen=True)
class Scene:
    """Who sends the requests, and whose records they must neither get nor change."""

    base: str
    headers: Mapping[str, str]
    """What identifies the caller."""
    client: Client
    other: Client


@pytest.mark.timeout(60 + COUNT)
async def test_hostile_requests_break_nothing_and_get_nothing_of_another_tenant(
    base: str, client: Client, other_client: Client, error_records: ErrorRecords
) -> None:
    headers = {"x-api-key": client.http.client.headers["x-api-key"]}
    await _attack(Scene(base, headers, client, other_client), error_records)


@pytest.mark.timeout(60 + COUNT)
async def test_hostile_requests_of_a_user_of_a_project_get_nothing_of_another_user(
    shared_servers: SharedServers, tmp_path: Path, error_records: ErrorRecords
) -> None:
    async with (
        serving_users(shared_servers, tmp_path) as base,
        open_client(base, "bob") as bob,
        open_client(base, "ada") as ada,
    ):
        await _attack(Scene(base, {"Authorization": "Bearer bob"}, bob, ada), error_records)


async def _attack(scene: Scene, error_records: ErrorRecords) -> None:
    """Send hostile requests, and check that nothing broke and that the other's records are unchanged and unseen."""
    foreign = await _furnish(scene.other, CANARY)
    before = await _read_records(scene.other, foreign)
    (routes, schemas), sockets = list_routes(), list_socket_paths()
    weighted = [*routes, *(one for one in routes if (one.method, one.path) in OWN_BODIES for _ in range(OWN_SHARE))]
    random, findings = Random(SEED), Findings()
    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS, limits=limits) as http:
        for sent in range(0, COUNT, BATCH):
            generator = HostileGenerator(random, schemas, await _furnish(scene.client, "mine"), foreign)
            order = random.sample(weighted, len(weighted))
            requests = generator.generate(order, min(BATCH, COUNT - sent))
            await asyncio.gather(*(_send_all(http, scene, requests, findings) for _ in range(AT_ONCE)))
            for number in range(BATCH // SOCKET_SHARE):
                await _talk(scene, generator.build_socket_path(sockets[number % len(sockets)]), generator, findings)
    for text in error_records.texts:
        findings.faults.append(f"the API logged: {text[-700:]}")
    assert not findings.faults, f"seed {SEED}, {COUNT} requests, {len(findings.faults)} faults:\n" + "\n".join(
        findings.faults[:20]
    )
    assert await _read_records(scene.other, foreign) == before
    print(
        f"seed {SEED}, {COUNT} requests to {len(routes)} routes, by status: {dict(sorted(findings.statuses.items()))}"
    )
    assert findings.statuses[200] > COUNT / 10  # else the requests are rejected before they reach anything
    result = await scene.client.runs.wait(None, "trail", input={"seen": ["still"]})
    assert result["seen"] == ["still", "first", "second"]


async def _send_all(http: httpx.AsyncClient, scene: Scene, requests: Any, findings: Findings) -> None:
    for request in requests:
        started = time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                status, answer = await _send(http, scene, request)
        except (TimeoutError, httpx.TransportError) as error:
            if not _is_cut_off(request, error):
                waited = time.monotonic() - started
                findings.faults.append(f"no answer after {waited:.1f} s: {request}: {type(error).__name__} {error}")
        else:
            findings.check(request, status, answer)


def _is_cut_off(request: HostileRequest, error: Exception) -> bool:
    """Whether the API closed the connection while a body that is too large was still being sent."""
    return isinstance(error, httpx.WriteError | httpx.ReadError) and len(request.body or b"") > 16_000_000


async def _send(http: httpx.AsyncClient, scene: Scene, request: HostileRequest) -> tuple[int, bytes]:
    """Return the status and the answer, of a stream only its first events."""
    url = httpx.URL(f"{scene.base}/langgraph{request.target}")
    key = {"x-api-key": request.key} if request.key is not None else {}
    sender = scene.headers if request.key == "own" else key
    pairs = [*sender.items(), *request.headers]
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in pairs]
    async with http.stream(request.method, url, content=request.body, headers=headers) as response:
        parts = list[bytes]()
        if response.headers.get("content-type", "").startswith("text/event-stream") or "location" in response.headers:
            try:
                async with asyncio.timeout(STREAM_SECONDS):
                    async for part in response.aiter_raw():
                        parts.append(part)
            except TimeoutError:
                pass
        else:
            parts.append(await response.aread())
        return response.status_code, b"".join(parts)


async def _talk(scene: Scene, path: str, generator: HostileGenerator, findings: Findings) -> None:
    """Send hostile messages over one WebSocket."""
    url = f"{scene.base.replace('http', 'ws', 1)}/langgraph{path}"
    messages = [generator.build_command() for _ in range(5)]
    try:
        async with connect(url, additional_headers=dict(scene.headers), open_timeout=ANSWER_SECONDS) as socket:
            for message in messages:
                await socket.send(message)
                findings.check(message, 200, str(await _receive(socket)).encode())
    except InvalidStatus as error:
        findings.check(url, error.response.status_code, bytes(error.response.body or b""))
    except ConnectionClosed as error:
        if error.rcvd is None or error.rcvd.code in (1006, 1011):
            findings.faults.append(f"the socket was closed: {error}: {str(messages)[:600]}")


async def _receive(socket: Any) -> str | bytes:
    async with asyncio.timeout(ANSWER_SECONDS):
        return await socket.recv()


async def _furnish(client: Client, text: str) -> Mapping[str, Sequence[str]]:
    """Store records of every kind, each with a text, and return their ids."""
    assistant = await client.assistants.create("trail", name=text, description=text, metadata={"note": text})
    thread = await client.threads.create(metadata={"note": text})
    waiting = await client.threads.create(metadata={"note": text})
    await client.runs.wait(thread["thread_id"], "trail", input={"seen": [text]}, metadata={"note": text})
    await client.runs.wait(waiting["thread_id"], "approval", input={"topic": text})
    state = await client.threads.get_state(thread["thread_id"])
    runs = [one["run_id"] for it in (thread, waiting) for one in await client.runs.list(it["thread_id"])]
    cron = await client.crons.create("trail", schedule="0 0 1 1 *", input={"seen": [text]}, metadata={"note": text})
    await client.store.put_item([text, "notes"], key=text, value={"note": text})
    return {
        "thread_id": [thread["thread_id"], waiting["thread_id"]],
        "run_id": runs,
        "assistant_id": [assistant["assistant_id"], "trail"],
        "cron_id": [cron["cron_id"]],
        "checkpoint_id": [state["checkpoint"]["checkpoint_id"]],
    }


async def _read_records(client: Client, ids: Mapping[str, Sequence[str]]) -> Any:
    """Return the records of a tenant as its client sees them."""
    threads = [await client.threads.get(id) for id in ids["thread_id"]]
    return {
        "threads": threads,
        "states": [await client.threads.get_history(id) for id in ids["thread_id"]],
        "runs": [await client.runs.list(id) for id in ids["thread_id"]],
        "assistants": await client.assistants.search(),
        "crons": [{k: v for k, v in one.items() if k != "now"} for one in await client.crons.search()],
        "items": await client.store.search_items([CANARY]),
        "thread_count": await client.threads.count(),
    }
