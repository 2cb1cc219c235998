"""The thread-centric protocol through LangGraph's Python client, over server-sent events and WebSocket."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]

EVERYTHING = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"]
LIMIT_SECONDS = 60


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_run_is_followed_and_its_interrupt_answered(client: Client, transport: str) -> None:
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        client.threads.stream(assistant_id="approval", transport=transport, headers=_key_header(client)) as thread,
    ):
        await thread.run.start(input={"topic": "go"})
        states = [state async for state in thread.values]
        assert (thread.interrupted, states[-1]) == (True, {"topic": "go", "decisions": []})
        assert thread.interrupts[0]["value"] == {"question": "May I go?"}
        await thread.run.respond("yes")
        assert await thread.output == {"topic": "go", "decisions": ["yes"]}
    assert [run["status"] for run in await client.runs.list(thread.thread_id)] == ["success", "success"]


async def test_an_input_to_an_interrupted_thread_is_the_response(client: Client) -> None:
    thread = await _interrupt(client, "approval", {"topic": "go"})
    await _command(client, thread, "run.start", {"assistant_id": "approval", "input": "certainly"})
    await _read_until(client, thread, "completed")
    assert (await client.threads.get_state(thread))["values"]["decisions"] == ["certainly"]


async def test_several_interrupts_are_answered_one_by_one(client: Client) -> None:
    thread = await _interrupt(client, "several", {"topic": "a,b"})
    state = await client.threads.get_state(thread)
    first, second = state["interrupts"]
    answer: Any = {"namespace": [], "interrupt_id": first["id"], "response": "one"}
    await _command(client, thread, "input.respond", answer)
    events = await _read_until(client, thread, "interrupted")
    assert [e["params"]["data"]["interrupt_id"] for e in events if e["method"] == "input.requested"] == [second["id"]]
    again = await _command(client, thread, "input.respond", answer)
    assert (again["type"], again["error"]) == ("error", "no_such_interrupt")
    rest: Any = [{"namespace": [], "interrupt_id": second["id"], "response": "two"}]
    await _command(client, thread, "input.respond", {"responses": rest})
    await _read_until(client, thread, "completed")
    decisions = (await client.threads.get_state(thread))["values"]["decisions"]
    assert sorted(decisions) == ["one", "two"]


@pytest.mark.parametrize("protocol", ["thread", "run"])
async def test_text_of_a_model_comes_before_its_node_ends(client: Client, tmp_path: Path, protocol: str) -> None:
    graph_input = {"messages": [{"role": "user", "content": "hi"}], "gate": str(tmp_path / "open")}
    text = ""
    async with asyncio.timeout(LIMIT_SECONDS):
        if protocol == "run":
            async for part in client.runs.stream(
                None, "gated", input=graph_input, stream_mode=["messages-tuple", "updates"]
            ):
                text += part.data[0]["content"] if part.event == "messages" and not (tmp_path / "open").exists() else ""
                if text == "This comes before the end":
                    (tmp_path / "open").touch()
            return
        thread = await _start(client, "gated", graph_input)
        async with aclosing(_follow(client, thread, ["messages", "lifecycle"])) as events:
            async for event in events:
                data = event["params"]["data"]
                text += data.get("delta", {}).get("text", "")
                if data["event"] == "message-finish":
                    assert not (tmp_path / "open").exists()
                    (tmp_path / "open").touch()
                if data["event"] == "completed":
                    break
    assert text == "This comes before the end"


async def test_a_client_that_comes_back_gets_what_it_has_not(client: Client) -> None:
    thread = await _start(client, "trail", {"seen": ["input"]})
    everything = await _read_until(client, thread, "completed")
    numbers = [event["seq"] for event in everything]
    assert numbers == sorted(numbers)
    assert len({event["event_id"] for event in everything}) == len(everything)
    for cut in (1, len(everything) // 2):
        rest = await _read_until(client, thread, "completed", since=everything[cut]["seq"])
        assert rest == everything[cut + 1 :]


async def test_all_channels_have_the_events_of_their_graphs(client: Client) -> None:
    events = await _read_until(client, await _start(client, "caller", {"seen": []}), "completed")
    of = {name: [e["params"]["data"] for e in events if e["method"] == name] for name in EVERYTHING}
    assert of["updates"] == [{"node": node, "values": {"seen": ["inside"]}} for node in ("inside", "call")]
    assert of["custom"] == [{"name": "progress", "step": "calls", "payload": {"name": "progress", "step": "calls"}}]
    assert of["values"][-1] == {"seen": ["inside"]}
    assert [one["source"] for one in of["checkpoints"] if one["step"] < 1][:1] == ["input"]
    inner = [e["params"]["namespace"][0].partition(":")[0] for e in events if e["params"]["namespace"]]
    assert set(inner) == {"call"}
    named = await _read_until(client, await _start(client, "caller", {"seen": []}), "completed", ["custom:other"])
    assert {event["method"] for event in named} == {"lifecycle"}


async def test_a_subgraph_is_announced_with_its_namespace(client: Client) -> None:
    events = await _read_until(client, await _start(client, "nested", {"seen": []}), "completed")
    course = [(e["params"]["namespace"], e["params"]["data"]["event"]) for e in events if e["method"] == "lifecycle"]
    assert [state for namespace, state in course if not namespace] == ["running", "completed"]
    assert [state for namespace, state in course if namespace] == ["started", "completed"]


async def test_a_filter_of_namespaces_leaves_out_the_others(client: Client) -> None:
    thread = await _start(client, "nested", {"seen": []})
    await _read_until(client, thread, "completed")
    root: list[str] = []
    body: Any = {"channels": ["updates", "lifecycle"], "namespaces": [root], "depth": 0}
    events = await _read_until(client, thread, "completed", body=body)
    assert {tuple(event["params"]["namespace"]) for event in events} == {()}


async def test_a_run_of_the_older_protocol_is_on_the_threads_stream(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "trail", input={"seen": []}, stream_mode=["updates"])
    await client.runs.join(thread, run["run_id"])
    events = await _read_until(client, thread, "completed")
    assert [e["params"]["data"]["node"] for e in events if e["method"] == "updates"] == ["first", "second"]
    older = [part async for part in client.runs.join_stream(thread, run["run_id"], last_event_id="-1")]
    assert [part.event for part in older] == ["metadata", "updates", "updates", "end"]


async def test_the_runs_of_a_thread_are_one_stream_in_the_older_protocol(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    for _ in range(2):
        await client.runs.wait(thread, "trail", input={"seen": []})
    names = list[str]()
    async with asyncio.timeout(LIMIT_SECONDS):
        async for part in await client.threads.join_stream(thread, last_event_id="-1"):
            names.append(part.event)
            if names.count("run_done") == 2:
                break
    assert names == [*["metadata", "values", "values", "values", "run_done"] * 2]


async def test_a_run_that_is_cancelled_before_it_starts_ends_the_stream(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "trail", input={"seen": []}, after_seconds=600)
    await client.runs.cancel(thread, run["run_id"])
    events = await _read_until(client, thread, "failed")
    assert events[-1]["params"]["data"]["error"] == "The run was cancelled."


async def test_a_failed_run_says_why(client: Client) -> None:
    events = await _read_until(client, await _start(client, "trail", {"seen": [], "fail": True}), "failed")
    assert "the second node fails" in events[-1]["params"]["data"]["error"]


async def test_the_end_of_a_turn_is_not_taken_for_the_end_of_the_next(client: Client) -> None:
    thread_id = (await client.threads.create())["thread_id"]
    for turn in ("a", "b", "c"):
        async with asyncio.timeout(LIMIT_SECONDS), client.threads.stream(thread_id, assistant_id="trail") as thread:
            await asyncio.sleep(0.3)  # the client hears of the earlier turn, if it is told
            await thread.run.start(input={"seen": [turn]})
            assert (await thread.output)["seen"][-3:] == [turn, "first", "second"]


async def test_states_are_read_and_forked_by_commands(client: Client) -> None:
    thread = await _start(client, "trail", {"seen": ["input"]})
    await _read_until(client, thread, "completed")
    state = await _command(client, thread, "state.get", {"namespace": [], "keys": ["seen"]})
    assert state["result"]["values"] == {"seen": ["input", "first", "second"]}
    listed = (await _command(client, thread, "state.listCheckpoints", {"limit": 4}))["result"]["checkpoints"]
    assert listed[0]["id"] == state["result"]["checkpoint"]["id"]
    forked = await _command(client, thread, "state.fork", {"checkpoint_id": listed[1]["id"]})
    assert await client.runs.join(thread, forked["result"]["run_id"]) == {"seen": ["input", "first", "second"]}
    tree = (await _command(client, thread, "agent.getTree", {}))["result"]["tree"]
    assert tree == {"namespace": [], "status": "completed", "graph_name": "trail"}


async def test_a_message_that_is_injected_becomes_the_input_of_the_next_run(client: Client, tmp_path: Path) -> None:
    gate = tmp_path / "open"
    message = {"role": "user", "content": "And tomorrow?"}
    thread = await _start(client, "gated", {"messages": [{"role": "user", "content": "Rain?"}], "gate": str(gate)})
    injected = await _command(client, thread, "input.inject", {"namespace": [], "message": message})
    assert (injected["type"], injected["result"]) == ("success", {})
    assert next(run["status"] for run in await client.runs.list(thread)) == "pending"
    gate.touch()
    async with asyncio.timeout(LIMIT_SECONDS):
        for run in reversed(await client.runs.list(thread)):
            await client.runs.join(thread, run["run_id"])
    messages = (await client.threads.get_state(thread))["values"]["messages"]
    assert [one["type"] for one in messages] == ["human", "ai", "human", "ai"]
    assert [one["content"] for one in messages if one["type"] == "human"] == ["Rain?", "And tomorrow?"]
    late = await _command(client, thread, "input.inject", {"namespace": [], "message": message})
    assert (late["type"], late["error"]) == ("error", "no_such_run")


async def test_wrong_commands_are_answered_with_their_error(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    wrong: list[tuple[Any, str]] = [
        ({"id": 1, "method": "run.stop", "params": {}}, "unknown_command"),
        ({"id": "1", "method": "run.start", "params": {}}, "invalid_argument"),
        ({"id": 1, "method": "run.start", "params": []}, "invalid_argument"),
        ({"id": 1, "method": "run.start", "params": {"assistant_id": "nowhere"}}, "no_such_run"),
        ({"id": 1, "method": "run.start", "params": {"assistant_id": "trail", "durability": 3}}, "invalid_argument"),
        ({"id": 1, "method": "input.respond", "params": {"interrupt_id": "x"}}, "no_such_interrupt"),
        ({"id": 1, "method": "input.inject", "params": {"message": {"role": "tool"}}}, "invalid_argument"),
        ({"id": 1, "method": "input.inject", "params": {"namespace": ["inner:1"], "message": {}}}, "invalid_argument"),
        ([], "invalid_argument"),
    ]
    for command, code in wrong:
        answer = (await client.http.client.post(f"/threads/{thread}/commands", json=command)).json()
        assert (answer["type"], answer["error"]) == ("error", code), answer
    broken = await client.http.client.post(f"/threads/{thread}/commands", content=b"{")
    assert broken.json()["error"] == "invalid_argument"
    unknown = await client.http.client.post(f"/threads/{thread}/stream/events", json={"channels": ["everything"]})
    assert unknown.status_code == 422


async def test_a_socket_answers_commands_and_ends_subscriptions(client: Client, base: str) -> None:
    thread, headers = (
        await _start(client, "trail", {"seen": []}),
        {"x-api-key": client.http.client.headers["x-api-key"]},
    )
    url = f"{base.replace('http', 'ws')}/langgraph/threads/{thread}/stream/events"
    async with asyncio.timeout(LIMIT_SECONDS), connect(url, additional_headers=headers) as socket:

        async def ask(command: Any) -> Any:
            await socket.send(orjson.dumps(command).decode())
            while "id" not in (message := orjson.loads(await socket.recv())):
                pass
            return message

        subscribed = await ask({"id": 1, "method": "subscription.subscribe", "params": {"channels": ["values"]}})
        name = subscribed["result"]["subscription_id"]
        assert (await ask({"id": 2, "method": "state.get", "params": {"namespace": []}}))["type"] == "success"
        ended = {"id": 3, "method": "subscription.unsubscribe", "params": {"subscription_id": name}}
        assert (await ask(ended))["type"] == "success"
        assert (await ask({**ended, "id": 4}))["error"] == "no_such_subscription"
        assert (await ask({"id": 5, "method": "subscription.subscribe", "params": {}}))["error"] == "invalid_argument"


async def test_a_thread_is_only_followed_by_its_tenant(client: Client, other_client: Client, base: str) -> None:
    thread = await _start(client, "trail", {"seen": []})
    await _read_until(client, thread, "completed")
    hidden = await other_client.http.client.post(f"/threads/{thread}/stream/events", json={"channels": ["values"]})
    assert hidden.status_code == 404
    taken = await _command(other_client, thread, "run.start", {"assistant_id": "trail", "input": {"seen": []}})
    assert taken["error"] == "no_such_run"
    url = f"{base.replace('http', 'ws')}/langgraph/threads/{thread}/stream/events"
    foreign = {**_key_header(client), "Origin": "https://example.org"}
    for headers in ({}, {"x-api-key": "ofg_wrong"}, foreign):
        with pytest.raises(InvalidStatus):
            await connect(url, additional_headers=headers)
    async with connect(url, additional_headers=_key_header(other_client)) as socket:
        await socket.send('{"id": 1, "method": "state.get", "params": {"namespace": []}}')
        assert "no_such_run" in str(await socket.recv())


def _key_header(client: Client) -> dict[str, str]:
    """The key, which the client does not send over WebSocket by itself."""
    return {"x-api-key": client.http.client.headers["x-api-key"]}


async def _command(client: Client, thread: str, method: str, params: Any) -> Any:
    answer = await client.http.client.post(
        f"/threads/{thread}/commands", json={"id": 7, "method": method, "params": params}
    )
    assert answer.json()["id"] == 7
    return answer.json()


async def _start(client: Client, assistant: str, graph_input: Any) -> str:
    thread = (await client.threads.create())["thread_id"]
    answer = await _command(client, thread, "run.start", {"assistant_id": assistant, "input": graph_input})
    assert answer["type"] == "success", answer
    return thread


async def _interrupt(client: Client, assistant: str, graph_input: Any) -> str:
    thread = await _start(client, assistant, graph_input)
    await _read_until(client, thread, "interrupted")
    return thread


async def _follow(
    client: Client, thread: str, channels: list[str], since: int | None = None, body: Any = None
) -> AsyncGenerator[Any]:
    body = body or {"channels": channels, **({} if since is None else {"since": since})}
    stream = client.http.stream(f"/threads/{thread}/stream/events", "POST", json=body)
    async for part in stream:
        yield part.data


async def _read_until(
    client: Client,
    thread: str,
    state: str,
    channels: list[str] | None = None,
    *,
    since: int | None = None,
    body: Any = None,
) -> list[Any]:
    """Return the events of a thread until its run is in this state."""
    read = list[Any]()
    subscribed = [*(channels or EVERYTHING), "lifecycle"]
    async with asyncio.timeout(LIMIT_SECONDS), aclosing(_follow(client, thread, subscribed, since, body)) as events:
        async for event in events:
            read.append(event)
            params = event["params"]
            if event["method"] == "lifecycle" and not params["namespace"] and params["data"]["event"] == state:
                break
    return read
