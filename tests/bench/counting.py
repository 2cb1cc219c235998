"""A graph for LangGraph alone: three nodes that count, which clients of LangGraph's API run."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from offing.langchain import register_langgraph


class Seen(TypedDict):
    seen: int


async def _count(state: Seen) -> Seen:
    return {"seen": state["seen"] + 1}


def build_counting() -> Any:
    builder: Any = StateGraph(Seen)
    for name in "abc":
        builder.add_node(name, _count)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    builder.add_edge("c", END)
    return builder


counting = register_langgraph("bench_counting", build_counting, code_path=__file__)
