"""A graph that fails, for a view of a failed run."""

# pyright: reportUnknownMemberType=false

from typing import Any

from langgraph.graph import END, START, MessagesState, StateGraph

from offing.langchain import register_langgraph


def collect(state: MessagesState) -> dict[str, Any]:
    raise ValueError("The archive has no entry for this question.")


builder = StateGraph(MessagesState)
builder.add_node("collect", collect)
builder.add_edge(START, "collect")
builder.add_edge("collect", END)

graph = register_langgraph("failing", builder.compile(), code_path=__file__)
