"""Webhooks of runs by the rules of a project: which addresses are told, with which headers."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import UnprocessableEntityError
from pydantic import SecretStr

from offing.api.app import create_app
from offing.local.api_address import choose_port
from offing.settings import Settings
from tests.api.conftest import serving
from tests.api.test_notifications import Receiver
from tests.ports import free_port
from tests.protocols.langgraph.conftest import ENVIRONMENT as GRAPHS_ENVIRONMENT
from tests.protocols.langgraph.graphs import GRAPHS
from tests.unit.services.test_langgraph_projects import with_graph
from tests.workers.conftest import SharedServers

PORT, OTHER_PORT = free_port(), free_port()

ALLOWED = f"127.0.0.1:{PORT},localhost:{PORT},127.0.0.1:{OTHER_PORT}"
"""What the operator allows. The rules of the project allow less."""

TOKEN = "of-the-receiver-4711"

RULES: dict[str, Any] = {
    "headers": {"Authorization": "Bearer ${{ env.LG_WEBHOOK_TOKEN }}", "X-From": "gulls"},
    "url": {"allowed_domains": ["127.0.0.1"], "allowed_ports": [PORT], "max_url_length": 60},
}

PROJECT = with_graph(Path(tempfile.mkdtemp()) / "project", webhooks=RULES, env={"LG_WEBHOOK_TOKEN": TOKEN})
"""The project that API and worker serve."""

ENVIRONMENT = {
    **GRAPHS_ENVIRONMENT,
    "OFFING_ALLOWED_WEBHOOK_HOSTS": ALLOWED,
    "OFFING_GRAPH_PATHS": str(PROJECT),
    "OFFING_HOME": str(PROJECT.parent / "home"),
}


@asynccontextmanager
async def client_of(servers: SharedServers, project: Path) -> AsyncGenerator[Any]:
    port = choose_port("127.0.0.1", 0)
    settings = Settings(
        app_database_url=SecretStr(servers.app_url),
        redis_url=SecretStr(servers.redis_url),
        lease_seconds=3,
        extra_graphs=GRAPHS,
        graph_paths=str(project),
        home=project.parent / "home",
        allowed_webhook_hosts=ALLOWED,
        port=port,
        langgraph_port=port,
        langgraph_without_key=True,
    )
    async with serving(create_app(settings), settings) as address:
        opened: Any = get_client(url=address, api_key=None)
        yield opened
        await opened.aclose()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver(PORT)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", PORT)
    yield receiver
    server.close()
    await server.wait_closed()


async def test_a_message_has_the_projects_headers(shared_servers: SharedServers, receiver: Receiver) -> None:
    async with client_of(shared_servers, PROJECT) as client:
        run = await client.runs.create(None, "trail", input={"seen": []}, webhook=receiver.address)
        for _ in range(300):
            if receiver.got:
                break
            await asyncio.sleep(0.1)
    headers, body = receiver.got[0]
    assert (headers["authorization"], headers["x-from"]) == (f"Bearer {TOKEN}", "gulls")
    assert run["run_id"] in body.decode()
    with psycopg.connect(shared_servers.owner_url) as connection:
        row = connection.execute("select w::text from app.run_webhook w where run_id = %s", (run["run_id"],)).fetchone()
    assert row is not None
    assert TOKEN not in row[0]


async def test_an_address_that_the_project_does_not_allow_is_rejected(shared_servers: SharedServers) -> None:
    async with client_of(shared_servers, PROJECT) as client:
        for address, reason in (
            (f"http://localhost:{PORT}/", "allowed_domains"),
            (f"http://127.0.0.1:{OTHER_PORT}/", "allowed_ports"),
            (f"http://127.0.0.1:{PORT}/{'a' * 60}", "60 characters"),
        ):
            with pytest.raises(UnprocessableEntityError, match=reason):
                await client.runs.create(None, "trail", input={"seen": []}, webhook=address)
            with pytest.raises(UnprocessableEntityError, match=reason):
                await client.crons.create("trail", schedule="0 0 1 1 *", input={"seen": []}, webhook=address)


async def test_a_run_has_no_webhook_in_a_project_that_disables_them(
    shared_servers: SharedServers, tmp_path: Path
) -> None:
    project = with_graph(tmp_path / "project", http={"disable_webhooks": True})
    async with client_of(shared_servers, project) as client:
        run = await client.runs.create(None, "trail", input={"seen": []}, webhook=f"http://127.0.0.1:{PORT}/")
    with psycopg.connect(shared_servers.owner_url) as connection:
        row = connection.execute("select webhook from app.langgraph_run where run_id = %s", (run["run_id"],))
        assert row.fetchone() == (None,)
