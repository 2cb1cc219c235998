"""A worker that is killed while a client of LangGraph's API streams its run."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
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


async def test_what_a_client_has_in_the_end_is_that_of_an_undisturbed_run(
    start_worker: Callable[..., Worker], app_url: str, redis_url: str, tmp_path: Path
) -> None:
    graphs = ENVIRONMENT["OFFING_EXTRA_GRAPHS"]
    app_database_url, redis = SecretStr(app_url), SecretStr(redis_url)
    settings = Settings(app_database_url=app_database_url, redis_url=redis, extra_graphs=graphs, port=0)
    worker, gate, modes = start_worker(**ENVIRONMENT), tmp_path / "gate", ["messages-tuple", "values"]
    graph_input = {"messages": [{"role": "user", "content": "go"}], "gate": str(gate)}
    async with serving(create_app(settings), settings) as base, Database(app_url, max_connections=2) as database:
        key = await access.create_key(database, LOCAL_TENANT, "mine")
        client: Any = get_client(url=f"{base}/langgraph", api_key=key.key)
        thread = (await client.threads.create())["thread_id"]
        run = await client.runs.create(thread, "gated", input=graph_input, stream_mode=modes, durability="sync")
        waiting = asyncio.create_task(client.runs.join(thread, run["run_id"]))
        seen = list[Any]()
        async for part in client.runs.join_stream(thread, run["run_id"], last_event_id="-1"):
            seen.append(part)
            if part.event == "messages" and part.data[0]["content"] == "end" and worker.alive():
                worker.kill()
                gate.touch()
                start_worker(**ENVIRONMENT)
        values = [part.data for part in seen if part.event == "values"]
        assert [len(one["messages"]) for one in values] == [1, 2]  # each once, and in order
        assert (await waiting)["messages"] == values[-1]["messages"]
        assert (await client.threads.get_state(thread))["values"]["messages"] == values[-1]["messages"]
        texts: dict[str, str] = {}
        for part in seen:
            if part.event == "messages":
                texts[part.data[0]["id"]] = texts.get(part.data[0]["id"], "") + part.data[0]["content"]
        assert texts[values[-1]["messages"][-1]["id"]] == "This comes before the end"
        assert len(texts) == 2  # the message of the lost attempt has an id of its own, and is in no values
        middle = seen[2].id
        rest = [part async for part in client.runs.join_stream(thread, run["run_id"], last_event_id=middle)]
        assert [part.id for part in rest[1:]] == [part.id for part in seen[3:]]
        await client.aclose()


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
