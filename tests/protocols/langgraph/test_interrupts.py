"""Interrupts through LangGraph's Python client."""

from typing import Any

import pytest
from httpx import HTTPStatusError

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]


async def test_an_interrupt_is_shown_and_resumed_by_a_command(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    stream = client.runs.stream(thread, "approval", input={"topic": "go"}, stream_mode="updates")
    parts = [part async for part in stream]
    (interrupt,) = parts[-2].data["__interrupt__"]
    assert interrupt["value"] == {"question": "May I go?"}
    waiting = await client.threads.get(thread)
    assert waiting["status"] == "interrupted"
    assert [one["value"] for raised in waiting["interrupts"].values() for one in raised] == [interrupt["value"]]
    state = await client.threads.get_state(thread)
    assert (state["next"], state["tasks"][0]["interrupts"][0]["id"]) == (["ask"], interrupt["id"])
    result = await client.runs.wait(thread, "approval", command={"resume": "yes"})
    assert result == {"topic": "go", "decisions": ["yes"]}
    assert (await client.threads.get(thread))["status"] == "idle"


async def test_several_interrupts_are_resumed_by_their_ids(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    result = await client.runs.wait(thread, "several", input={"topic": "a,b,c"})
    raised = {one["id"]: one["value"] for one in result["__interrupt__"]}
    assert sorted(raised.values()) == ["a", "b", "c"]
    some = {id: f"{value} is fine" for id, value in raised.items() if value != "b"}
    partly = await client.runs.wait(thread, "several", command={"resume": some})
    assert [one["value"] for one in partly["__interrupt__"]] == ["b"]
    rest = {one["id"]: "b is late" for one in partly["__interrupt__"]}
    done = await client.runs.wait(thread, "several", command={"resume": rest})
    assert sorted(done["decisions"]) == ["a is fine", "b is late", "c is fine"]


async def test_a_run_stops_before_and_after_nodes(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    before = await client.runs.wait(thread, "trail", input={"seen": []}, interrupt_before=["second"])
    assert before == {"seen": ["first"]}
    assert (await client.threads.get(thread))["status"] == "interrupted"
    assert await client.runs.wait(thread, "trail", input=None) == {"seen": ["first", "second"]}
    after = await client.runs.wait(thread, "trail", input={"seen": []}, interrupt_after="*")
    assert after == {"seen": ["first", "second", "first"]}


async def test_a_command_updates_the_state_and_goes_to_a_node(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "trail", input={"seen": []})
    jump = {"update": {"seen": ["told"]}, "goto": "second"}
    result = await client.runs.wait(thread, "trail", command=jump)
    assert result["seen"] == ["first", "second", "told", "second"]
    send: Any = {"goto": {"node": "second", "input": {"seen": []}}}
    result = await client.runs.wait(thread, "trail", command=send)
    assert (result["seen"][-1], len(result["seen"])) == ("second", 5)


async def test_an_empty_input_beside_a_command_stands_for_none(client: Client) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "approval", input={"topic": "go"})
    resumed = await client.runs.wait(thread, "approval", input={}, command={"resume": "yes"})
    assert resumed == {"topic": "go", "decisions": ["yes"]}
    with pytest.raises(HTTPStatusError, match="422"):
        await client.runs.wait(thread, "approval", input={"topic": "other"}, command={"resume": "yes"})
