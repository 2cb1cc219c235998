"""The shape of LangGraph's memory agent, which is no package: memories of a user, found before the model is asked, and
kept by a node of their own.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
import uuid
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.tools import InjectedToolArg, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from offing.langchain import OffingChatModel, register_langgraph
from offing.sdk import RunInfo
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says

model = OffingChatModel("agent")


@dataclass(frozen=True)
class Whose:
    """The graph's runtime context."""

    user: str


@tool
async def upsert_memory(
    content: str,
    *,
    memory_id: uuid.UUID | None = None,
    user: Annotated[str, InjectedToolArg],
    store: Annotated[BaseStore, InjectedToolArg],
) -> str:
    """Keep something about the user, or change what is kept under `memory_id`."""
    key = str(memory_id or uuid.uuid4())
    await store.aput(("memories", user), key, {"content": content})
    return f"Kept as {key}."


async def call_model(state: MessagesState, runtime: Runtime[Whose]) -> dict[str, Any]:
    assert runtime.store is not None, "no store"
    about = "\n".join(str(m.content) for m in state["messages"][-3:])
    items = await runtime.store.asearch(("memories", runtime.context.user), query=about, limit=10)
    known = "\n".join(f"- {item.value['content']}" for item in items)
    system = {"role": "system", "content": f"You remember of {runtime.context.user}:\n{known}"}
    return {"messages": [await model.bind_tools([upsert_memory]).ainvoke([system, *state["messages"]])]}


async def store_memory(state: MessagesState, runtime: Runtime[Whose]) -> dict[str, Any]:
    requests: list[dict[str, Any]] = getattr(state["messages"][-1], "tool_calls", [])
    injected = {"user": runtime.context.user, "store": runtime.store}
    stored = await asyncio.gather(*(upsert_memory.ainvoke({**call["args"], **injected}) for call in requests))
    messages = zip(requests, stored, strict=True)
    return {"messages": [{"role": "tool", "content": text, "tool_call_id": call["id"]} for call, text in messages]}


def route(state: MessagesState) -> str:
    return "store_memory" if getattr(state["messages"][-1], "tool_calls", None) else END


builder = StateGraph(MessagesState, context_schema=Whose)
builder.add_node(call_model)
builder.add_node(store_memory)
builder.add_edge(START, "call_model")
builder.add_conditional_edges("call_model", route, ["store_memory", END])
builder.add_edge("store_memory", "call_model")


def whose(run: RunInfo) -> Whose:
    return Whose("ada")


graph = register_langgraph("memory_agent", builder.compile(), code_path=__file__, context=whose)


def lines(received: ReceivedPrompt) -> Reply:
    if "I like tea" in received.last:
        return calls("upsert_memory", content="likes tea")
    if "What do I like?" in received.last:
        return says("You like tea." if "likes tea" in received.system_text else "I do not know.")
    return says("I keep that.")


peer = Peer(
    name="memory_agent",
    question="I like tea.",
    says=lines,
    answer="I keep that.",
    follow="What do I like?",
    follow_answer="You like tea.",
    tools=("upsert_memory",),
)
