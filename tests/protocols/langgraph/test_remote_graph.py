"""LangGraph's `RemoteGraph` drives a graph of the API like a local one."""

from typing import Any

from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client

__all__ = ["ENVIRONMENT"]


def remote(client: Client, assistant: str) -> Any:
    """Return the graph behind the assistant. Its own types are those of any graph."""
    return RemoteGraph(assistant, client=client)


async def in_new_thread(client: Client) -> Any:
    return {"configurable": {"thread_id": (await client.threads.create())["thread_id"]}}


async def test_a_remote_graph_is_invoked_and_keeps_the_state_of_its_thread(client: Client) -> None:
    graph, config = remote(client, "trail"), await in_new_thread(client)
    assert await graph.ainvoke({"seen": []}, config) == {"seen": ["first", "second"]}
    state = await graph.aget_state(config)
    assert (state.values, state.next) == ({"seen": ["first", "second"]}, ())
    await graph.aupdate_state(config, {"seen": ["told"]}, as_node="first")
    assert await graph.ainvoke(None, config) == {"seen": ["first", "second", "told", "second"]}


async def test_a_remote_graph_streams_updates_and_values(client: Client) -> None:
    graph, config = remote(client, "trail"), await in_new_thread(client)
    parts = [part async for part in graph.astream({"seen": []}, config, stream_mode=["updates", "values"])]
    assert [part.data for part in parts if part.event == "updates"] == [
        {"first": {"seen": ["first"]}},
        {"second": {"seen": ["second"]}},
    ]
    assert [part.data for part in parts if part.event == "values"][-1] == {"seen": ["first", "second"]}


async def test_an_interrupt_of_a_remote_graph_is_resumed(client: Client) -> None:
    graph, config = remote(client, "approval"), await in_new_thread(client)
    stopped = await graph.ainvoke({"topic": "go"}, config)
    (interrupt,) = stopped["__interrupt__"]
    assert interrupt["value"] == {"question": "May I go?"}
    state = await graph.aget_state(config)
    assert state.next == ("ask",)
    assert await graph.ainvoke(Command(resume="yes"), config) == {"topic": "go", "decisions": ["yes"]}
