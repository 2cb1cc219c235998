"""A loop whose messages are a DeltaChannel, and whose subgraph remembers from call to call what it noted."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import operator
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from offing.langchain import OffingChatModel, register_langgraph

thinker, noter = OffingChatModel("thinker"), OffingChatModel("noter")


def appended(messages: list[AnyMessage], new: Sequence[Any]) -> list[AnyMessage]:
    return [*messages, *(message for several in new for message in several)]


class Thinking(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(appended, snapshot_frequency=3)]


class Noting(TypedDict):
    messages: list[AnyMessage]
    notes: Annotated[list[str], operator.add]


async def think(state: Thinking) -> dict[str, Any]:
    return {"messages": [await thinker.ainvoke(state["messages"])]}


async def note(state: Noting) -> dict[str, Any]:
    text = await noter.ainvoke([("user", f"Notes so far: {', '.join(state.get('notes', [])) or 'none'}.")])
    return {"notes": [text.text]}


async def tell(state: Noting) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"Noted: {', '.join(state['notes'])}.")]}


def more(state: Thinking) -> str:
    return END if "Done" in state["messages"][-1].text else "notebook"


notebook: Any = StateGraph(Noting)
notebook.add_node("note", note)
notebook.add_node("tell", tell)
notebook.add_edge(START, "note")
notebook.add_edge("note", "tell")

builder: Any = StateGraph(Thinking)
builder.add_node("think", think)
builder.add_node("notebook", notebook.compile(checkpointer=True))
builder.add_edge(START, "think")
builder.add_conditional_edges("think", more, ["notebook", END])
builder.add_edge("notebook", "think")

graph = register_langgraph("plain_remembering", builder.compile(), code_path=__file__, models=("thinker", "noter"))
