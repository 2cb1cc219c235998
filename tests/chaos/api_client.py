"""A client of the API that does as browsers do and careful scripts: back with the last id, again with the same key."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx

from offing.local.api_address import choose_port
from offing.local.programs import ManagedProcess, python_module_command
from offing.services.access import create_key
from offing.storage.migrate import LOCAL_TENANT
from tests.api.sse import Event, following
from tests.chaos.private_stack import PrivateStack
from tests.chaos.trial import Client, Kind, Subject, request_of
from tests.workers.processes import GRAPHS, LEASE, with_tests


def start_api(stack: PrivateStack) -> str:
    """An API process, `api` to the stage's supervisor; its address, which it keeps through restarts."""
    port = choose_port("127.0.0.1", 0)
    environment = {
        "OFFING_APP_DATABASE_URL": stack.servers.app_url,
        "REDIS_URL": stack.servers.redis_url,
        "OFFING_PORT": str(port),
        "OFFING_EXTRA_GRAPHS": GRAPHS,
        "OFFING_LEASE_SECONDS": str(LEASE),
        "OFFING_HEARTBEAT_INTERVAL_SECONDS": str(LEASE / 4),
        "PYTHONPATH": with_tests(),
        "HOME": str(stack.folder),
    }
    log, ready = stack.folder / "api.log", stack.folder / "api.ready"
    stack.supervisor.start(
        [ManagedProcess("api", python_module_command("offing.api"), environment, ready, log, grace_seconds=1)]
    )
    return f"http://127.0.0.1:{port}"


@asynccontextmanager
async def visiting(base: str, client: Client) -> AsyncGenerator[httpx.AsyncClient]:
    """An HTTP client with a key of its own."""
    created = await create_key(client.database, LOCAL_TENANT, "chaos")
    async with httpx.AsyncClient(base_url=base, headers={"Authorization": f"Bearer {created.key}"}) as http:
        yield http


def body_of(kind: Kind, seed: int) -> dict[str, Any]:
    request = request_of(kind, seed)
    return {
        "question": request.question,
        "graph": request.graph,
        "budget": {"max_turns": request.budget.max_turns},
        "engines": {role: choice.model_dump(mode="json") for role, choice in request.engines.items()},
        "seed": seed,
    }


async def submit(http: httpx.AsyncClient, kind: Kind, seed: int) -> Subject:
    """Submit with the seed as the key, again until an answer comes."""
    while True:
        try:
            response = await http.post(
                "/api/v1/runs", json=body_of(kind, seed), headers={"Idempotency-Key": f"seed {seed}"}
            )
        except httpx.HTTPError:
            await asyncio.sleep(0.02)
            continue
        assert response.status_code in (200, 201), response.text
        return Subject(kind, UUID(response.json()["id"]), seed)


@dataclass
class Watcher:
    """Follows one run to its end, through as many connections as it takes."""

    http: httpx.AsyncClient
    run: UUID
    seen: list[Event] = field(default_factory=list[Event])
    connections: int = 0

    @property
    def seqs(self) -> list[int]:
        return [e.data["seq"] for e in self.seen if e.name == "step"]

    async def watch(self) -> None:
        last: dict[str, str] = {}
        while not any(e.name == "end" for e in self.seen):
            try:
                async with following(self.http, f"/api/v1/runs/{self.run}/events", **last) as stream:
                    self.connections += 1
                    await stream.until(lambda s: s.closed, 60)
            except httpx.HTTPError:
                await asyncio.sleep(0.02)
                continue
            self.seen += stream.seen
            if stream.last_id is not None:
                last = {"Last-Event-ID": stream.last_id}
