"""Workers that are killed or stopped while a model writes: what each kind of client sees of the run."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from langgraph_sdk import get_client
from pydantic import SecretStr
from websockets.asyncio.client import connect

from offing.api.app import create_app
from offing.services import access
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.api.conftest import serving
from tests.protocols.langgraph.loss_graphs import LOSS_GRAPHS, describe_attempt
from tests.workers.conftest import start_worker
from tests.workers.processes import Worker

__all__ = ["start_worker"]

ENVIRONMENT = {"OFFING_EXTRA_GRAPHS": LOSS_GRAPHS}
MODES = ["values", "updates", "messages-tuple", "tasks", "checkpoints", "custom"]
LIMIT_SECONDS = 90

StartWorker = Callable[..., Worker]


@dataclass
class Scene:
    """A client, and the workers behind it."""

    client: Any
    base: str
    start: StartWorker
    worker: Worker
    folder: Path

    @property
    def graph_input(self) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": "Begin.", "id": "question"}], "folder": str(self.folder)}

    def lose_worker(self) -> None:
        """Kill the worker, and let another one end the run."""
        self.worker.kill()
        self.worker = self.start(**ENVIRONMENT)

    def open_gate(self) -> None:
        (self.folder / "open").touch()


@pytest.fixture
async def scene(
    start_worker: StartWorker, app_url: str, redis_url: str, tmp_path: Path
) -> AsyncIterator[Scene]:
    app_database_url, redis = SecretStr(app_url), SecretStr(redis_url)
    settings = Settings(app_database_url=app_database_url, redis_url=redis, extra_graphs=LOSS_GRAPHS, port=0)
    worker = start_worker(**ENVIRONMENT)
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        serving(create_app(settings), settings) as base,
        Database(app_url, max_connections=2) as database,
    ):
        key = await access.create_key(database, LOCAL_TENANT, "mine")
        client: Any = get_client(url=f"{base}/langgraph", api_key=key.key)
        yield Scene(client, base, start_worker, worker, tmp_path)
        await client.aclose()


@dataclass
class Transcript:
    """What a client of the older protocol got."""

    parts: list[Any]

    def list_data(self, event: str) -> list[Any]:
        return [part.data for part in self.parts if part.event == event]

    def list_texts(self) -> list[str]:
        """Return the messages as a client accumulates them: by id, without removed ones."""
        messages = dict[str, str]()
        for message, _ in self.list_data("messages"):
            if message["type"] == "remove":
                messages.pop(message["id"], None)
            else:
                messages[message["id"]] = messages.get(message["id"], "") + message["content"]
        return list(messages.values())


async def _stream(scene: Scene, thread: str | None, graph: str, durability: str) -> list[Any]:
    """Stream a run, whose worker is lost once the model has written something."""
    parts = list[Any]()
    async for part in scene.client.runs.stream(
        thread, graph, input=scene.graph_input, stream_mode=MODES, durability=durability
    ):
        parts.append(part)
        _act(scene, "".join(data[0]["content"] for event, data in ((p.event, p.data) for p in parts) if event == "messages"))
    return parts


def _act(scene: Scene, text: str) -> None:
    """Lose the worker after the first attempt wrote a part, and let the second end."""
    if text == describe_attempt(1) and (scene.folder / "attempts").read_text() == "again ":
        scene.lose_worker()
    elif text.endswith(describe_attempt(2)):
        scene.open_gate()


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("kind", ["thread", "stateless"])
async def test_a_stream_has_each_recorded_event_once(scene: Scene, kind: str, durability: str) -> None:
    thread = (await scene.client.threads.create())["thread_id"] if kind == "thread" else None
    seen = Transcript(await _stream(scene, thread, "report", durability))
    assert seen.list_data("updates") == [
        {"prepare": {"topic": "salt"}},
        {"write": {"messages": [seen.list_data("values")[-1]["messages"][-1]]}},
        {"conclude": {"topic": "pepper"}},
    ]
    assert [(len(state["messages"]), state.get("topic")) for state in seen.list_data("values")] == [
        (1, None), (1, "salt"), (2, "salt"), (2, "pepper")
    ]
    assert Counter((task["name"], "result" in task) for task in seen.list_data("tasks")) == {
        (name, ended): 1 for name in ("prepare", "write", "conclude") for ended in (False, True)
    }
    assert [point["metadata"]["step"] for point in seen.list_data("checkpoints")] == [-1, 0, 1, 2, 3]
    assert seen.list_data("custom") == [{"progress": "prepared"}, {"progress": "writes"}]
    assert seen.list_texts() == [describe_attempt(2)]
    assert [one["attempt"] for one in seen.list_data("metadata")] == [1, 2]
    assert [m["run_attempt"] for one, m in seen.list_data("messages") if one["content"]][::4] == [1, 2]
