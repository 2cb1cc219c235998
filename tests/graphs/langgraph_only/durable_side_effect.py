"""A graph within a graph whose node does something before it asks its model: once kept in the journal, once not."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import os
from pathlib import Path
from typing import Any

from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph

from offing.langchain import OffingChatModel, durable_call, register_langgraph

model = OffingChatModel("agent")


def noted(word: str) -> str:
    """Write a line for the test, and say how many there are."""
    lines = Path(os.environ["NOTED"])
    with lines.open("a") as file:
        file.write(f"{word}\n")
    return f"{word} {len(lines.read_text().splitlines())}"


@durable_call
def kept(word: str) -> str:
    """As `noted`, once also when the node runs again."""
    return noted(word)


def begin(state: MessagesState) -> dict[str, Any]:
    """So that the steps of both graphs are not the same numbers."""
    return {}


def work(state: MessagesState) -> dict[str, Any]:
    get_stream_writer()("working")
    message = kept("kept")
    noted("again")
    return {"messages": [model.invoke([*state["messages"], ("user", message)])]}


inner = StateGraph(MessagesState)
inner.add_node("work", work)
inner.add_edge(START, "work")
inner.add_edge("work", END)
builder = StateGraph(MessagesState)
builder.add_node("begin", begin)
builder.add_node("inner", inner.compile())
builder.add_edge(START, "begin")
builder.add_edge("begin", "inner")
builder.add_edge("inner", END)

graph = register_langgraph("plain_keeping", builder.compile(), code_path=__file__)
