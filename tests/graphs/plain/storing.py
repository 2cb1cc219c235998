"""A graph that keeps what it is asked in LangGraph's store, and tells what is there."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import uuid
from typing import Any

from langgraph.config import get_store
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from offing.langchain import plain_graph

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


def builder(*nodes: Any) -> Any:
    built: Any = StateGraph(MessagesState)
    for before, node in zip((None, *nodes), nodes, strict=False):
        built.add_node(node)
        built.add_edge(before.__name__ if before else START, node.__name__)
    built.add_edge(nodes[-1].__name__, END)
    return built


graph = plain_graph("storing", builder(keep, tell), code=__file__)
blocked = plain_graph("blocked", builder(wait_for_itself), code=__file__)
noting = plain_graph("noting", builder(note), code=__file__)
