"""The chat model and the registration, without a run."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.langchain import OffingChatModel, offing_tools, register_langgraph
from offing.sdk import RunInfo
from offing.sdk.current_run import EventLoopBlockedError, NoCurrentRunError, get_current_run, run_blocking, use_run

CODE = Path(__file__)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def built(**how: Any) -> Any:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("a", lambda state: {})  # pyright: ignore[reportUnknownLambdaType]
    graph.add_edge(START, "a")
    graph.add_edge("a", END)
    return graph.compile(**how)


def test_outside_a_run_the_model_says_where_it_works() -> None:
    with pytest.raises(NoCurrentRunError, match="start a run"):
        OffingChatModel().invoke("hello")


def test_tools_are_bound_by_name_and_shape() -> None:
    bound: Any = OffingChatModel("planner").bind_tools([add], tool_choice="add")
    (shape,) = bound.kwargs["tools"]
    assert (shape["name"], shape["description"]) == ("add", "Add two numbers.")
    assert shape["parameters"]["required"] == ["a", "b"]
    assert bound.kwargs["tool_choice"] == "add"
    with pytest.raises(InvalidInput, match="sub"):
        OffingChatModel().bind_tools([add], tool_choice="sub")


class Sum(BaseModel):
    """A sum."""

    value: int


@pytest.mark.parametrize("method", ["function_calling", "json_schema", "json_mode"])
def test_a_structured_answer_is_a_call_with_any_method(method: Any) -> None:
    chain: Any = OffingChatModel().with_structured_output(Sum, method=method, strict=True)
    assert chain.first.kwargs["tool_choice"] == "any"
    assert [shape["name"] for shape in chain.first.kwargs["tools"]] == ["Sum"]


def test_what_a_package_asks_of_a_model_before_any_run_has_an_answer() -> None:
    model = OffingChatModel("agent", profile={"max_input_tokens": 100_000}, temperature=0)
    assert (model.profile or {}).get("max_input_tokens") == 100_000
    assert OffingChatModel().profile is None
    assert 0 < model.get_num_tokens_from_messages([HumanMessage("Hello there.")]) < 20
    assert model.get_num_tokens_from_messages([HumanMessage("Hello there.")], tools=[add]) > 20


def test_a_cache_of_langchains_own_is_passed_by() -> None:
    set_llm_cache(InMemoryCache())
    try:
        with pytest.raises(NoCurrentRunError):
            OffingChatModel().invoke("hello")
    finally:
        set_llm_cache(None)
    assert OffingChatModel().cache is False


@pytest.mark.parametrize("kind", ["web_search", "web_search_20250305"])
def test_a_tool_that_a_provider_runs_is_rejected_by_its_type(kind: str) -> None:
    with pytest.raises(InvalidInput, match=kind):
        OffingChatModel().bind_tools([{"type": kind, "name": "web_search"}])


def test_a_call_that_waits_is_rejected_on_the_event_loop() -> None:
    async def inside() -> None:
        with use_run(object()):  # type: ignore[arg-type]
            OffingChatModel().invoke("hello")

    with pytest.raises(EventLoopBlockedError, match="ainvoke"):
        asyncio.run(inside())


def test_a_thread_finds_the_run_and_waits_on_its_loop() -> None:
    async def where() -> object:
        return get_current_run()

    async def inside() -> object:
        context: Any = object()
        with use_run(context):
            return await asyncio.to_thread(lambda: run_blocking(where())) is context

    assert asyncio.run(inside())


def test_a_thread_that_waits_is_released_when_the_run_is_taken_away() -> None:
    async def inside() -> None:
        with use_run(object()):  # type: ignore[arg-type]
            begun = asyncio.Event()

            async def never() -> None:
                begun.set()
                await asyncio.Event().wait()

            waiting = asyncio.create_task(asyncio.to_thread(lambda: run_blocking(never())))
            await begun.wait()
        with pytest.raises(NoCurrentRunError, match="lost its claim"):
            await waiting

    asyncio.run(inside())


def test_a_compiled_graph_and_one_that_is_not_are_registered_alike() -> None:
    for graph in (built(), built, lambda: StateGraph(MessagesState)):
        registered = register_langgraph("mine", graph, code_path=CODE, models=("agent", "critic"), engine="litellm:a/b")
        assert registered.build().compile is not None
        assert [role.name for role in registered.roles] == ["agent", "critic"]
        assert registered.engines == {"agent": "litellm:a/b", "critic": "litellm:a/b"}
    inputs = registered.initial_state(RunInfo(UUID(int=1), "Why?"))  # pyright: ignore[reportPossiblyUnboundVariable]
    assert inputs["messages"][0].content == "Why?"


def test_breakpoints_for_a_debugger_are_rejected_with_what_to_write_instead() -> None:
    with pytest.raises(InvalidInput, match=r"interrupt\(\)"):
        register_langgraph("mine", built(interrupt_before=["a"]), code_path=CODE).build()


def test_a_model_must_be_named_once() -> None:
    with pytest.raises(InvalidInput, match="models"):
        register_langgraph("mine", built(), code_path=CODE, models=("a", "a"))


def test_our_tools_keep_their_declaration_and_an_unknown_one_is_rejected() -> None:
    (search, _) = offing_tools()
    assert (search.name, set(search.args)) == ("search_library", {"query", "limit"})
    with pytest.raises(InvalidInput, match="launch"):
        offing_tools("launch")
