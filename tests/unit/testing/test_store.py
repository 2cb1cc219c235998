"""LangGraph's store in the test kit: in memory, begun with given items, and read back after a crash."""

from offing.testing import assert_survives_worker_loss, simulate_run
from tests.graphs.langgraph_only.store import SHARED, graph, native, tools

OLD = [(SHARED, "old", {"text": "tea"})]


async def test_a_graph_finds_what_it_was_given_and_what_it_put() -> None:
    run = await simulate_run(graph, "new", store_items=OLD)
    assert run.state["messages"][-1].text == "1 before, then new; there are old, new"


async def test_nothing_is_there_that_another_run_put() -> None:
    await simulate_run(graph, "other")
    run = await simulate_run(graph, "new")
    assert run.state["messages"][-1].text == "0 before, then new; there are new"


async def test_a_graph_that_stores_survives_a_crashed_worker_at_each_moment() -> None:
    whole = await assert_survives_worker_loss(graph, "new", store_items=OLD)
    assert whole.loss_points > 8


async def test_a_tool_in_a_thread_is_given_the_store() -> None:
    run = await simulate_run(tools, "What do I like?")
    there = [set(message.text.split(", ")) for message in run.state["messages"][-2:]]
    assert {"tea", "boat"} in there


async def test_a_graph_that_knows_the_sdk_has_the_store_too() -> None:
    run = await simulate_run(native, "new", store_items=OLD)
    assert run.state["there"] == ["old", "new"]
