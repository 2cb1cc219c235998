"""Runs through LangGraph's Python client."""

from typing import Any

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]

SLOW: Any = {"seen": ["input"], "delay": 1.5}
LONG: Any = {"seen": ["long"], "delay": 30}


async def new_thread(client: Client) -> str:
    return (await client.threads.create())["thread_id"]


async def collect(stream: Any) -> list[Any]:
    return [part async for part in stream]


def names(parts: list[Any]) -> list[str]:
    return [part.event for part in parts]


async def test_a_run_in_the_background_is_joined_and_listed(client: Client) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "trail", input={"seen": []}, metadata={"who": "test"})
    assert run["status"] in ("pending", "running")
    assert run["metadata"] == {"who": "test"}
    assert await client.runs.join(thread, run["run_id"]) == {"seen": ["first", "second"]}
    ended = await client.runs.get(thread, run["run_id"])
    assert ended["status"] == "success"
    assert await client.runs.list(thread, status="success") == [ended]
    assert await client.runs.list(thread, status="error") == []


async def test_a_stream_has_an_event_for_each_mode_in_order(client: Client) -> None:
    modes = ["values", "updates", "custom"]
    parts = await collect(
        client.runs.stream(await new_thread(client), "trail", input={"seen": ["input"]}, stream_mode=modes)
    )
    assert [(part.event, part.data) for part in parts[1:]] == [
        ("values", {"seen": ["input"]}),
        ("custom", {"progress": "first"}),
        ("updates", {"first": {"seen": ["first"]}}),
        ("values", {"seen": ["input", "first"]}),
        ("updates", {"second": {"seen": ["second"]}}),
        ("values", {"seen": ["input", "first", "second"]}),
        ("end", {"run_id": parts[0].data["run_id"], "status": "success"}),
    ]
    assert (parts[0].event, parts[0].data["attempt"]) == ("metadata", 1)


async def test_tasks_checkpoints_and_debug_are_streamed(client: Client) -> None:
    modes = ["tasks", "checkpoints", "debug"]
    parts = await collect(client.runs.stream(None, "trail", input={"seen": []}, stream_mode=modes))
    assert {name: names(parts).count(name) for name in modes} == {"tasks": 4, "checkpoints": 4, "debug": 8}


async def test_tokens_of_a_model_come_as_they_are_written(client: Client) -> None:
    message = {"messages": [{"role": "user", "content": "salt"}]}
    parts = await collect(client.runs.stream(None, "chatter", input=message, stream_mode="messages-tuple"))
    texts = [part.data[0]["content"] for part in parts if part.event == "messages"]
    assert "".join(texts) == "You said salt and so on"
    assert len(texts) > 5
    whole = await collect(client.runs.stream(None, "chatter", input=message, stream_mode="messages"))
    assert names(whole)[1] == "messages/metadata"
    assert whole[-2].data[0]["content"] == "You said salt and so on"


async def test_events_of_everything_that_runs_are_streamed_beside_other_modes(client: Client) -> None:
    message = {"messages": [{"role": "user", "content": "salt"}]}
    modes = ["events", "values", "updates"]
    parts = await collect(client.runs.stream(None, "chatter", input=message, stream_mode=modes))
    events = [part.data for part in parts if part.event == "events"]
    assert (events[0]["event"], events[-1]["event"]) == ("on_chain_start", "on_chain_end")
    pieces = [event["data"]["chunk"]["content"] for event in events if event["event"] == "on_chat_model_stream"]
    assert "".join(pieces) == "You said salt and so on"
    assert names(parts).count("updates") == 1
    assert parts[names(parts).index("updates")].data["chat"]["messages"][0]["content"] == "You said salt and so on"
    values = [part.data for part in parts if part.event == "values"]
    assert [len(one["messages"]) for one in values] == [1, 2]


async def test_calls_of_tools_are_streamed(client: Client) -> None:
    parts = await collect(client.runs.stream(None, "searcher", input={"messages": []}, stream_mode="tools"))
    assert [(part.event, part.data["event"]) for part in parts[1:-1]] == [
        ("tools", "tool-started"),
        ("tools", "tool-finished"),
    ]
    assert (parts[1].data["tool_name"], parts[2].data["output"]["content"]) == ("search", "found rain")


async def test_a_subgraph_is_streamed_under_its_namespace_if_asked_for(client: Client) -> None:
    quiet = await collect(client.runs.stream(None, "nested", input={"seen": []}, stream_mode="updates"))
    assert names(quiet) == ["metadata", "updates", "end"]
    parts = await collect(
        client.runs.stream(None, "nested", input={"seen": []}, stream_mode="updates", stream_subgraphs=True)
    )
    inner = [name.partition("|")[2].partition(":")[0] for name in names(parts) if "|" in name]
    assert (inner, names(parts)[-2]) == (["inner", "inner"], "updates")


async def test_the_start_and_the_end_of_each_subgraph_are_streamed_with_the_call_that_started_it(
    client: Client,
) -> None:
    parts = await collect(client.runs.stream(None, "nested", input={"seen": []}, stream_mode="lifecycle"))
    assert [part.data["event"] for part in parts[1:-1]] == ["started", "completed"]
    assert names(parts)[1] == f"lifecycle|{parts[1].data['namespace'][0]}"
    beside = await collect(client.runs.stream(None, "nested", input={"seen": []}, stream_mode=["lifecycle", "tasks"]))
    assert [name.partition("|")[0] for name in names(beside)[1:-1]] == ["tasks", "lifecycle", "lifecycle", "tasks"]
    parts = await collect(client.runs.stream(None, "delegating", input={"messages": []}, stream_mode="lifecycle"))
    assert [(part.data["event"], part.data["tool_call_id"]) for part in parts[1:-1]] == [
        ("started", "call-1"),
        ("completed", "call-1"),
    ]
    failing: Any = {"seen": [], "fail": True}
    parts = await collect(client.runs.stream(None, "nested", input=failing, stream_mode="lifecycle"))
    assert [part.event.partition("|")[0] for part in parts[1:]] == ["lifecycle", "lifecycle", "error", "end"]
    assert (parts[2].data["event"], "the second node fails" in parts[2].data["error"]["message"]) == ("failed", True)


async def test_a_failed_run_tells_its_error_to_every_client(client: Client) -> None:
    thread = await new_thread(client)
    failing: Any = {"seen": [], "fail": True}
    parts = await collect(client.runs.stream(thread, "trail", input=failing))
    problem = {"error": "ValueError", "message": "the second node fails"}
    assert (parts[-2].event, parts[-2].data) == ("error", problem)
    assert (parts[-1].event, parts[-1].data["status"]) == ("end", "error")
    assert (await client.runs.wait(None, "trail", input=failing, raise_error=False))["__error__"] == problem
    assert [run["status"] for run in await client.runs.list(thread)] == ["error"]
    assert (await client.threads.get(thread))["status"] == "error"


async def test_a_stream_continues_after_the_last_event_that_the_client_has(client: Client) -> None:
    thread = await new_thread(client)
    parts = await collect(client.runs.stream(thread, "trail", input={"seen": []}, stream_resumable=True))
    run = parts[0].data["run_id"]
    rest = await collect(client.runs.join_stream(thread, run, last_event_id=parts[1].id))
    assert rest[1:] == parts[2:]
    everything = await collect(client.runs.join_stream(thread, run, last_event_id="-1"))
    assert names(everything) == names(parts)
    assert names(await collect(client.runs.join_stream(thread, run))) == ["metadata", "end"]


async def test_a_joined_stream_shows_the_modes_that_it_names(client: Client) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "trail", input=SLOW, stream_mode=["values", "updates"])
    parts = await collect(client.runs.join_stream(thread, run["run_id"], stream_mode="updates", last_event_id="-1"))
    assert names(parts) == ["metadata", "updates", "updates", "end"]


async def test_a_cancelled_run_is_interrupted_and_its_thread_free(client: Client) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "trail", input=LONG)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"
    result = await client.runs.wait(thread, "trail", input={"seen": ["b"], "delay": 0})
    assert result["seen"][-3:] == ["b", "first", "second"]


async def test_a_run_that_is_rolled_back_leaves_nothing(client: Client) -> None:
    thread = await new_thread(client)
    await client.runs.wait(thread, "trail", input={"seen": ["kept"]})
    run = await client.runs.create(thread, "trail", input=LONG)
    await client.runs.cancel(thread, run["run_id"], wait=True, action="rollback")
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run["run_id"])
    assert (await client.threads.get_state(thread))["values"] == {"seen": ["kept", "first", "second"]}


async def test_an_ended_run_is_deleted_and_its_thread_stays(client: Client) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "trail", input={"seen": []})
    await client.runs.join(thread, run["run_id"])
    await client.runs.delete(thread, run["run_id"])
    with pytest.raises(NotFoundError):
        await client.runs.get(thread, run["run_id"])
    assert (await client.threads.get(thread))["thread_id"] == thread


async def test_runs_of_a_busy_thread_wait_for_each_other(client: Client) -> None:
    thread = await new_thread(client)
    await client.runs.create(thread, "trail", input={"seen": ["a"], "delay": 0.5})
    second = await client.runs.create(thread, "trail", input={"seen": ["b"]}, multitask_strategy="enqueue")
    third = await client.runs.create(thread, "trail", input={"seen": ["c"]})
    assert (second["status"], (await client.threads.get(thread))["status"]) == ("pending", "busy")
    result = await client.runs.join(thread, third["run_id"])
    assert result["seen"] == [word for start in "abc" for word in (start, "first", "second")]
    assert {run["status"] for run in await client.runs.list(thread)} == {"success"}


async def test_a_run_rejects_a_busy_thread_if_the_client_says_so(client: Client) -> None:
    thread = await new_thread(client)
    busy = await client.runs.create(thread, "trail", input=SLOW)
    with pytest.raises(ConflictError):
        await client.runs.create(thread, "trail", input={"seen": []}, multitask_strategy="reject")
    await client.runs.join(thread, busy["run_id"])
    assert len(await client.runs.list(thread)) == 1


async def test_a_run_interrupts_or_rolls_back_the_active_one(client: Client) -> None:
    thread, fresh = await new_thread(client), await new_thread(client)
    stopped = await client.runs.create(thread, "trail", input=LONG)
    after: Any = {"seen": ["b"], "delay": 0}
    result = await client.runs.wait(thread, "trail", input=after, multitask_strategy="interrupt")
    assert result["seen"][-3:] == ["b", "first", "second"]
    assert (await client.runs.get(thread, stopped["run_id"]))["status"] == "interrupted"
    removed = await client.runs.create(fresh, "trail", input=LONG)
    result = await client.runs.wait(fresh, "trail", input={"seen": ["b"]}, multitask_strategy="rollback")
    assert result == {"seen": ["b", "first", "second"]}
    with pytest.raises(NotFoundError):
        await client.runs.get(fresh, removed["run_id"])


async def test_a_missing_thread_is_reported_or_created(client: Client) -> None:
    name = "01980000-0000-7000-8000-0000000000ff"
    with pytest.raises(NotFoundError):
        await client.runs.create(name, "trail", input={"seen": []})
    await client.runs.wait(name, "trail", input={"seen": []}, if_not_exists="create")
    assert (await client.threads.get(name))["values"] == {"seen": ["first", "second"]}


async def test_a_delayed_run_starts_later(client: Client) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "trail", input={"seen": []}, after_seconds=2)
    assert run["status"] == "pending"
    assert await client.runs.join(thread, run["run_id"]) == {"seen": ["first", "second"]}


async def test_a_batch_makes_several_runs(client: Client) -> None:
    runs = await client.runs.create_batch([{"assistant_id": "trail", "input": {"seen": [word]}} for word in "ab"])
    assert len({run["run_id"] for run in runs}) == 2


async def test_durability_decides_what_history_keeps(client: Client) -> None:
    for durability, state_count in (("sync", 4), ("async", 4), ("exit", 1)):
        thread = await new_thread(client)
        result = await client.runs.wait(thread, "trail", input={"seen": []}, durability=durability)
        assert result == {"seen": ["first", "second"]}
        assert len(await client.threads.get_history(thread)) == state_count


async def test_runs_of_a_thread_are_listed_by_page_and_by_status(client: Client) -> None:
    thread = await new_thread(client)
    run_ids = [(await client.runs.create(thread, "trail", input={"seen": [word]}))["run_id"] for word in "abc"]
    await client.runs.join(thread, run_ids[-1])
    newest_first = [run["run_id"] for run in await client.runs.list(thread)]
    assert newest_first == run_ids[::-1]
    for status in (None, "success"):
        page = await client.runs.list(thread, limit=1, offset=1, status=status)
        assert [run["run_id"] for run in page] == [run_ids[1]]
    assert await client.runs.list(thread, status="error") == []


async def test_what_is_not_supported_is_rejected_by_its_name(client: Client) -> None:
    thread = await new_thread(client)
    for field, value in (("webhook", "http://127.0.0.1:9/"), ("feedback_keys", ["a"]), ("stream_mode", ["everything"])):
        body: Any = {"assistant_id": "trail", "input": {}, field: value}
        response = await client.http.client.post(f"/threads/{thread}/runs", json=body)
        assert response.status_code == 422
        assert field in response.json()["detail"]
    with pytest.raises(UnprocessableEntityError):
        await client.runs.create(thread, "agentflow", command={"resume": "yes"})
    with pytest.raises(NotFoundError):
        await client.runs.create(thread, "nowhere", input={})
    assert await client.runs.list(thread) == []


async def test_a_run_of_a_client_is_a_run_of_the_record(client: Client, base: str) -> None:
    thread = await new_thread(client)
    run = await client.runs.create(thread, "trail", input={"seen": ["input"]})
    await client.runs.join(thread, run["run_id"])
    headers = {"Authorization": f"Bearer {client.http.client.headers['x-api-key']}"}
    seen = await client.http.client.get(f"{base}/api/v1/runs/{run['run_id']}", headers=headers)
    assert (seen.json()["status"], seen.json()["graph"]) == ("done", "trail")
