"""A worker that is killed while a client of LangGraph's API streams its run."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from langgraph_sdk import get_client
from pydantic import SecretStr

from offing.api.app import create_app
from offing.services import access
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.api.conftest import serving
from tests.protocols.langgraph.conftest import ENVIRONMENT
from tests.workers.conftest import start_worker
from tests.workers.processes import Worker

__all__ = ["start_worker"]


@pytest.mark.parametrize("moment", ["first", "second"])
async def test_a_stream_goes_on_after_its_worker_is_killed(
    start_worker: Callable[..., Worker], app_url: str, redis_url: str, moment: str
) -> None:
    graphs = ENVIRONMENT["OFFING_EXTRA_GRAPHS"]
    app_database_url, redis = SecretStr(app_url), SecretStr(redis_url)
    settings = Settings(app_database_url=app_database_url, redis_url=redis, extra_graphs=graphs, port=0)
    worker, parts = start_worker(**ENVIRONMENT), list[Any]()
    async with serving(create_app(settings), settings) as base, Database(app_url, max_connections=2) as database:
        key = await access.create_key(database, LOCAL_TENANT, "mine")
        client: Any = get_client(url=f"{base}/langgraph", api_key=key.key)
        thread = (await client.threads.create())["thread_id"]
        graph_input = {"seen": ["input"], "delay": 1}
        async for part in client.runs.stream(
            thread, "trail", input=graph_input, stream_mode=["updates", "tasks"], durability="sync"
        ):
            parts.append(part)
            if part.event == "tasks" and part.data["name"] == moment and "input" in part.data and worker.alive():
                await asyncio.sleep(0.2)
                worker.kill()
                start_worker(**ENVIRONMENT)
        ended = Counter(part.data["name"] for part in parts if part.event == "tasks" and "result" in part.data)
        assert ended == {"first": 1, "second": 1}
        assert [part.data for part in parts if part.event == "updates"] == [
            {"first": {"seen": ["first"]}},
            {"second": {"seen": ["second"]}},
        ]
        assert (await client.threads.get_state(thread))["values"]["seen"] == ["input", "first", "second"]
        await client.aclose()
