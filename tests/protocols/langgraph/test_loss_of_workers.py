"""Workers that are killed or stopped while a model writes: what each kind of client sees of the run."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
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
from tests.e2e.test_web_ui import CHROMIUM, browser_is_here
from tests.protocols.langgraph.loss_graphs import LOSS_GRAPHS, describe_attempt
from tests.protocols.langgraph.test_javascript import run_script
from tests.protocols.langgraph.test_mcp import connect_with
from tests.workers.conftest import start_worker
from tests.workers.processes import Worker

__all__ = ["start_worker"]

ENVIRONMENT = {"OFFING_EXTRA_GRAPHS": LOSS_GRAPHS}
CHANNELS = ["values", "updates", "messages", "lifecycle", "checkpoints", "tasks", "custom"]
MODES = ["values", "updates", "messages-tuple", "tasks", "checkpoints", "custom"]
LIMIT_SECONDS = 200

pytestmark = pytest.mark.timeout(300)

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

    def count_attempts(self) -> int:
        path = self.folder / "attempts"
        return path.read_text().count("again") if path.exists() else 0

    def lose_worker(self) -> None:
        """Kill the worker, and let another one end the run."""
        self.worker.kill()
        self.worker = self.start(**ENVIRONMENT)
        (self.folder / "late").touch()

    def open_gate(self) -> None:
        (self.folder / "open").touch()

    async def act(self, text: str) -> None:
        """Lose the worker after the first attempt wrote its text, and let the second one end."""
        if text.endswith(describe_attempt(1)) and self.count_attempts() == 1 and not (self.folder / "late").exists():
            await asyncio.to_thread(self.lose_worker)
        elif text.endswith(describe_attempt(2)):
            self.open_gate()


@pytest.fixture
async def scene(start_worker: StartWorker, app_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    app_database_url, redis = SecretStr(app_url), SecretStr(redis_url)
    settings = Settings(app_database_url=app_database_url, redis_url=redis, extra_graphs=LOSS_GRAPHS, port=0)
    worker = start_worker(**ENVIRONMENT)
    async with (
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

    def check_report(self) -> None:
        """Check that each recorded event of the graph `report` is there once, and in order."""
        states = self.list_data("values")
        assert self.list_data("updates") == [
            {"prepare": {"topic": "salt"}},
            {"write": {"messages": [states[-1]["messages"][-1]]}},
            {"conclude": {"topic": "pepper"}},
        ]
        states_seen = [(len(state["messages"]), state.get("topic")) for state in states]
        assert states_seen == [(1, None), (1, "salt"), (2, "salt"), (2, "pepper")]
        tasks = [(task["name"], "result" in task) for task in self.list_data("tasks")]
        assert tasks == [(name, ended) for name in ("prepare", "write", "conclude") for ended in (False, True)]
        assert [point["metadata"]["step"] for point in self.list_data("checkpoints")] == [-1, 0, 1, 2, 3]
        assert self.list_data("custom") == [{"progress": "prepared"}, {"progress": "writes"}, {"lives": 2}]
        assert self.list_texts() == [describe_attempt(2)]


async def _collect(scene: Scene, stream: AsyncGenerator[Any], *, acts: bool = False) -> Transcript:
    seen, text = Transcript([]), ""
    async with asyncio.timeout(LIMIT_SECONDS):
        async for part in stream:
            seen.parts.append(part)
            text += part.data[0]["content"] if part.event == "messages" else ""
            if acts and part.event == "messages":
                await scene.act(text)
    return seen


async def _join_until(scene: Scene, stream: AsyncGenerator[Any], text: str) -> Transcript:
    """Follow a stream until a text was written, and leave."""
    seen = Transcript([])
    async with asyncio.timeout(LIMIT_SECONDS), aclosing(stream):
        async for part in stream:
            seen.parts.append(part)
            if text in seen.list_texts():
                break
    return seen


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_each_client_of_a_run_gets_each_recorded_event_once(scene: Scene, durability: str) -> None:
    client, thread = scene.client, (await scene.client.threads.create())["thread_id"]
    options: dict[str, Any] = {"input": scene.graph_input, "stream_mode": MODES, "durability": durability}
    run = (await client.runs.create(thread, "report", **options))["run_id"]
    left = await _join_until(scene, client.runs.join_stream(thread, run, last_event_id="-1"), describe_attempt(1))
    seen = await _collect(scene, client.runs.join_stream(thread, run, last_event_id="-1"), acts=True)
    seen.check_report()
    assert [one["attempt"] for one in seen.list_data("metadata")] == [1, 2]
    attempts = [metadata["run_attempt"] for message, metadata in seen.list_data("messages") if message["content"]]
    assert attempts == sorted(attempts)
    assert set(attempts) == {1, 2}
    rest = await _collect(scene, client.runs.join_stream(thread, run, last_event_id=left.parts[-1].id))
    Transcript([*left.parts, *rest.parts]).check_report()
    late = await _collect(scene, client.runs.join_stream(thread, run, last_event_id="-1"))
    late.check_report()
    written = "".join(message["content"] for message, _ in late.list_data("messages"))
    assert written == describe_attempt(2)


@pytest.mark.parametrize("durability", ["async", "exit"])
async def test_a_run_that_is_lost_before_it_stored_anything_begins_anew(scene: Scene, durability: str) -> None:
    modes = ["values", "updates", "messages-tuple", "messages", "custom"]
    stream = scene.client.runs.stream(
        None, "only-report", input=scene.graph_input, stream_mode=modes, durability=durability
    )
    seen = await _collect(scene, stream, acts=True)
    assert [len(state["messages"]) for state in seen.list_data("values")] == [1, 2]
    assert len(seen.list_data("updates")) == 1
    assert seen.list_data("custom") == [{"progress": "writes"}, {"lives": 2}]
    assert seen.list_texts() == [describe_attempt(2)]
    whole = dict[str, str]()
    for part in seen.parts:
        if part.event == "messages/partial":
            whole |= {one["id"]: one["content"] for one in part.data}
    assert list(whole.values()) == ["", describe_attempt(2)]


async def test_a_worker_that_wakes_up_after_its_lease_adds_nothing(scene: Scene) -> None:
    stopped, seen, text = scene.worker, Transcript([]), ""
    stream = scene.client.runs.stream(None, "report", input=scene.graph_input, stream_mode=MODES)
    async for part in stream:
        seen.parts.append(part)
        text += part.data[0]["content"] if part.event == "messages" else ""
        if text == describe_attempt(1) and scene.count_attempts() == 1 and scene.worker is stopped:
            stopped.signal(signal.SIGSTOP)
            scene.worker = scene.start(**ENVIRONMENT)
        if text.endswith(describe_attempt(2)) and not (scene.folder / "late").exists():
            (scene.folder / "late").touch()
            stopped.signal(signal.SIGCONT)
            await asyncio.sleep(2)  # it may write in the meantime
            scene.open_gate()
    seen.check_report()


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_clients_of_a_thread_get_each_recorded_event_once(scene: Scene, transport: str) -> None:
    client, headers = scene.client, {"x-api-key": scene.client.http.client.headers["x-api-key"]}
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        client.threads.stream(assistant_id="report", transport=transport, headers=headers) as thread,
    ):
        await thread.run.start(input=scene.graph_input)
        following = _follow_thread(scene, thread.thread_id, transport)
        events, texts = await asyncio.gather(following, _read_messages(thread))
        output = await thread.output
    assert texts == [describe_attempt(1), describe_attempt(2)]  # this client cannot take back what it handed out
    assert describe_attempt(2) in str(output["messages"][-1]["content"])
    of = {name: [e["params"]["data"] for e in events if e["method"] == name] for name in CHANNELS}
    assert [one["node"] for one in of["updates"]] == ["prepare", "write", "conclude"]
    assert [(len(one["messages"]), one.get("topic")) for one in of["values"]] == [
        (1, None),
        (1, "salt"),
        (2, "salt"),
        (2, "pepper"),
    ]
    tasks = [(one["name"], "result" in one) for one in of["tasks"]]
    assert tasks == [(name, ended) for name in ("prepare", "write", "conclude") for ended in (False, True)]
    assert [one["step"] for one in of["checkpoints"]] == [-1, 0, 1, 2, 3]
    assert [one["payload"] for one in of["custom"]] == [{"progress": "prepared"}, {"progress": "writes"}, {"lives": 2}]
    assert [one["event"] for one in of["lifecycle"]] == ["running", "running", "completed"]


async def _read_messages(thread: Any) -> list[str]:
    """Return the texts of the messages that models wrote. This client fills them while their iterator is advanced."""
    return [await message.text for message in [message async for message in thread.messages]]


async def _follow_thread(scene: Scene, thread: str, transport: str) -> list[Any]:
    """Return the events of a thread until its run ends, and act on what the model writes."""
    events, text = list[Any](), ""
    follow = _follow_socket if transport == "websocket" else _follow_sse
    async with aclosing(follow(scene, thread)) as stream:
        async for event in stream:
            events.append(event)
            data = event["params"]["data"]
            if event["method"] == "messages":
                text += data.get("delta", {}).get("text", "")
                await scene.act(text)
            if event["method"] == "lifecycle" and data["event"] == "completed":
                break
    return events


async def _follow_sse(scene: Scene, thread: str) -> AsyncGenerator[Any]:
    body = {"channels": CHANNELS}
    async for part in scene.client.http.stream(f"/threads/{thread}/stream/events", "POST", json=body):
        yield part.data


async def _follow_socket(scene: Scene, thread: str) -> AsyncGenerator[Any]:
    url = f"{scene.base.replace('http', 'ws')}/langgraph/threads/{thread}/stream/events"
    async with connect(url, additional_headers={"x-api-key": scene.client.http.client.headers["x-api-key"]}) as socket:
        params = {"channels": CHANNELS}
        await socket.send(orjson.dumps({"id": 1, "method": "subscription.subscribe", "params": params}).decode())
        async for message in socket:
            if "params" in (event := orjson.loads(message)):
                yield event


async def test_the_accumulators_of_use_stream_drop_what_is_withdrawn(scene: Scene) -> None:
    folders = [scene.folder / name for name in ("run", "thread")]
    for folder in folders:
        folder.mkdir()
    script = run_script("loss.mjs", scene.client, f"{scene.base}/langgraph", OFFING_FOLDER=str(scene.folder))
    losing = asyncio.create_task(asyncio.to_thread(_lose_worker_when_written, scene, folders))
    await script
    await losing


async def test_a_page_with_use_stream_drops_what_is_withdrawn_and_shows_every_message_once(scene: Scene) -> None:
    browser_is_here()
    more = {"OFFING_FOLDER": str(scene.folder), "OFFING_CHROMIUM": str(CHROMIUM)}
    losing = asyncio.create_task(asyncio.to_thread(_lose_worker_when_written, scene, [scene.folder]))
    await run_script("use-stream-loss.mjs", scene.client, scene.base, **more)
    await losing
    assert scene.count_attempts() == 2


async def test_the_stream_of_an_a2a_task_replaces_what_a_lost_worker_wrote(scene: Scene) -> None:
    events = await _follow_task(scene, "message/stream", message=_build_message(scene.graph_input))
    assert [one["kind"] for one in (events[0], events[-1])] == ["task", "status-update"]
    assert events[-1]["status"]["state"] == "completed"
    assert _read_artifact(events) == describe_attempt(2)
    updates = [one["artifact"]["parts"][0]["text"] for one in events if one["kind"] == "artifact-update"]
    assert "" in updates  # what the lost worker wrote was withdrawn
    states = [one["status"]["state"] for one in events if one["kind"] == "status-update"]
    assert states == ["completed"]
    late = await _follow_task(scene, "tasks/resubscribe", id=events[0]["id"])
    assert _read_artifact(late) == describe_attempt(2)
    assert scene.count_attempts() == 2


def _build_message(data: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "messageId": "one", "parts": [{"kind": "data", "data": data}]}


async def _follow_task(scene: Scene, method: str, **params: Any) -> list[Any]:
    """Return the events of a task until its end, and act on what the model writes."""
    events, headers = list[Any](), {"x-api-key": scene.client.http.client.headers["x-api-key"]}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    url = f"{scene.base}/langgraph/a2a/report"
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        httpx.AsyncClient(headers=headers, timeout=LIMIT_SECONDS) as http,
        http.stream("POST", url, json=body) as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                events.append(orjson.loads(line.removeprefix("data: "))["result"])
                await scene.act(_read_artifact(events))
    return events


def _read_artifact(events: Sequence[Any]) -> str:
    """Return the answer as a client of A2A puts it together."""
    answer = ""
    for one in events:
        if one["kind"] == "artifact-update":
            part = one["artifact"]["parts"][0]["text"]
            answer = answer + part if one["append"] else part
    return answer


async def test_a_call_over_mcp_has_one_result_after_its_worker_was_lost(scene: Scene) -> None:
    headers = {"x-api-key": scene.client.http.client.headers["x-api-key"]}
    async with asyncio.timeout(LIMIT_SECONDS), connect_with(scene.base, headers, LIMIT_SECONDS) as session:
        calling = asyncio.create_task(session.call_tool("report", scene.graph_input))
        await asyncio.to_thread(_wait_for_attempt, scene, 1)
        await asyncio.to_thread(scene.lose_worker)
        await asyncio.to_thread(_wait_for_attempt, scene, 2)
        scene.open_gate()
        result: Any = await calling
    assert result.is_error is False
    texts = [one["content"] for one in result.structured_content["messages"]]
    assert texts == ["Begin.", describe_attempt(2)]


def _wait_for_attempt(scene: Scene, number: int) -> None:
    give_up = time.monotonic() + LIMIT_SECONDS
    while scene.count_attempts() < number and time.monotonic() < give_up:
        time.sleep(0.05)


def _lose_worker_when_written(scene: Scene, folders: Sequence[Path]) -> None:
    give_up = time.monotonic() + LIMIT_SECONDS / 2
    while not all((folder / "seen").exists() for folder in folders) and time.monotonic() < give_up:
        time.sleep(0.05)
    scene.lose_worker()
    for folder in folders:
        (folder / "late").touch()
