"""A graph that keeps what it is asked in LangGraph's store, and tells what is there."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import uuid
from typing import Annotated, Any, cast

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.config import get_store
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedStore, ToolNode
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from typing_extensions import TypedDict

from offing.langchain import register_langgraph
from offing.sdk import Graph, RunContext

SHARED = ("shared",)


async def keep(state: MessagesState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Looks, puts, and looks again."""
    assert runtime.store is not None
    text = str(state["messages"][-1].content)
    before = await runtime.store.asearch(SHARED)
    await runtime.store.aput(SHARED, text, {"text": text})
    one = await runtime.store.aget(SHARED, text)
    assert one is not None
    return {"messages": [("ai", f"{len(before)} before, then {one.value['text']}")]}


def tell(state: MessagesState) -> dict[str, Any]:
    """In a thread."""
    store = get_store()
    store.put(("told",), "last", {"text": str(state["messages"][-1].content)})
    there = ", ".join(item.key for item in store.search(SHARED))
    return {"messages": [("ai", f"{state['messages'][-1].content}; there are {there}")]}


async def wait_for_itself(state: MessagesState, runtime: Runtime[Any]) -> dict[str, Any]:
    assert runtime.store is not None
    runtime.store.get(SHARED, "x")
    return {}


async def note(state: MessagesState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Puts under a key that is drawn anew each time."""
    assert runtime.store is not None
    key = str(uuid.uuid4())
    await runtime.store.aput(("notes",), key, {"text": "tea"})
    await runtime.store.aput(("notes",), "other", {"text": "boat"})
    return {"messages": [("ai", key)]}


@tool
def remember(text: str, store: Annotated[BaseStore, InjectedStore()]) -> str:
    """Keep a text."""
    store.put(("kept",), text, {"text": text})
    return ", ".join(item.key for item in store.search(("kept",)))


def choose(state: MessagesState) -> dict[str, Any]:
    calls = [{"name": "remember", "args": {"text": text}, "id": text} for text in ("tea", "boat")]
    return {"messages": [AIMessage("", tool_calls=calls)]}


def builder(*nodes: Any) -> Any:
    built: Any = StateGraph(MessagesState)
    for before, node in zip((None, *nodes), nodes, strict=False):
        built.add_node(node)
        built.add_edge(before.__name__ if before else START, node.__name__)
    built.add_edge(nodes[-1].__name__, END)
    return built


def tooled() -> Any:
    built: Any = StateGraph(MessagesState)
    built.add_node("choose", choose)
    built.add_node("tools", ToolNode([remember]))
    built.add_edge(START, "choose")
    built.add_edge("choose", "tools")
    return built


class Kept(TypedDict):
    there: list[str]


async def keep_natively(state: Kept, runtime: Runtime[Any]) -> dict[str, Any]:
    assert runtime.store is not None
    await runtime.store.aput(SHARED, runtime.context.run.question, {})
    return {"there": [item.key for item in await runtime.store.asearch(SHARED)]}


def native_builder() -> Any:
    built: Any = StateGraph(Kept, cast(Any, RunContext))
    built.add_node("keep", keep_natively)
    built.add_edge(START, "keep")
    return built


tools = register_langgraph("tools", tooled(), code_path=__file__)
native = Graph("native", "Native", "Uses the store.", "1", native_builder, lambda run: {"there": []}, ())
graph = register_langgraph("storing", builder(keep, tell), code_path=__file__)
blocked = register_langgraph("blocked", builder(wait_for_itself), code_path=__file__)
noting = register_langgraph("noting", builder(note), code_path=__file__)
