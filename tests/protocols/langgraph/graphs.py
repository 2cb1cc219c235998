"""Plain LangGraph graphs that clients of LangGraph's API run in tests."""

import asyncio
import operator
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import Runtime
from langgraph.stream import CustomTransformer, UpdatesTransformer
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict

from offing.langchain import OffingChatModel, register_langgraph

untyped: Any = StateGraph
"""Its stubs leave some types open."""


class Trail(TypedDict, total=False):
    seen: Annotated[list[str], operator.add]
    delay: float
    fail: bool


async def first(state: Trail) -> Trail:
    get_stream_writer()({"progress": "first"})
    await asyncio.sleep(state.get("delay", 0))
    return {"seen": ["first"]}


async def second(state: Trail) -> Trail:
    if state.get("fail"):
        raise ValueError("the second node fails")
    await asyncio.sleep(state.get("delay", 0))
    return {"seen": ["second"]}


def build_trail() -> Any:
    builder = untyped(Trail)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder.compile()


async def chat(state: MessagesState) -> Any:
    text = str(state["messages"][-1].content)
    model = GenericFakeChatModel(messages=iter([AIMessage(f"You said {text} and so on")]))
    return {"messages": [await model.ainvoke(state["messages"])]}


def build_chat() -> Any:
    return untyped(MessagesState).add_node("chat", chat).add_edge(START, "chat").compile()


class Approval(TypedDict):
    topic: str
    decisions: Annotated[list[Any], operator.add]


def ask(state: Approval) -> Any:
    return {"decisions": [interrupt({"question": f"May I {state['topic']}?"})]}


def build_approval() -> Any:
    return untyped(Approval).add_node("ask", ask).add_edge(START, "ask").compile()


def ask_one(state: Any) -> Any:
    return {"decisions": [interrupt(state["topic"])]}


def build_several() -> Any:
    def fan_out(state: Approval) -> list[Send]:
        return [Send("ask_one", {"topic": topic}) for topic in state["topic"].split(",")]

    builder = untyped(Approval)
    builder.add_node("ask_one", ask_one)
    builder.add_conditional_edges(START, fan_out, ["ask_one"])
    return builder.compile()


def build_nested() -> Any:
    inner = build_trail()
    return untyped(Trail).add_node("inner", inner).add_edge(START, "inner").compile()


def count_words(texts: Sequence[str]) -> list[list[float]]:
    """Embed texts by their share of two words."""
    return [[float(text.count("tea")), float(text.count("sea"))] for text in texts]


INDEX = {"dims": 2, "embed": count_words, "fields": ["text"]}


class Gated(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    gate: str
    """The file that a test creates when the node may end."""


def _wait_for_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


async def write_and_wait(state: Gated) -> Any:
    model = GenericFakeChatModel(messages=iter([AIMessage("This comes before the end")]))
    written = await model.ainvoke(state.get("messages", []))
    await asyncio.to_thread(_wait_for_file, Path(state.get("gate", __file__)))
    return {"messages": [written]}


def build_gated() -> Any:
    return untyped(Gated).add_node("write", write_and_wait).add_edge(START, "write").compile()


def ask_for_approval(_: Gated) -> Any:
    answer = interrupt({"question": "Is that fine?"})
    return {"messages": [AIMessage(f"You said {answer}")]}


def build_conversation() -> Any:
    builder = untyped(Gated).add_node("write", write_and_wait).add_node("approve", ask_for_approval)
    return builder.add_edge(START, "write").add_edge("write", "approve").compile()


@tool
def search(query: str) -> str:
    """Find something."""
    return f"found {query}"


def build_searcher() -> Any:
    def decide(_: MessagesState) -> Any:
        call = {"name": "search", "args": {"query": "rain"}, "id": "call-1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}  # pyright: ignore[reportArgumentType]

    builder = untyped(MessagesState).add_node("decide", decide).add_node("tools", ToolNode([search]))
    return builder.add_edge(START, "decide").add_edge("decide", "tools").compile()


def call_without_await(state: Trail) -> Any:
    get_stream_writer()({"name": "progress", "step": "calls"})
    return {"seen": build_blocking_trail().invoke({"seen": []})["seen"]}


def build_blocking_trail() -> Any:
    builder = untyped(Trail).add_node("inside", lambda _: {"seen": ["inside"]})  # pyright: ignore[reportUnknownLambdaType]
    return builder.add_edge(START, "inside").compile()


def build_caller() -> Any:
    """A graph whose node has no await, with transformers of its own."""
    builder = untyped(Trail).add_node("call", call_without_await).add_edge(START, "call")
    return builder.compile(transformers=[CustomTransformer, UpdatesTransformer])


def build_guide() -> Any:
    """An agent whose model is the run's engine, with a tool of its own."""
    model = OffingChatModel("agent").bind_tools([search])

    async def agent(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = untyped(MessagesState).add_node("agent", agent).add_node("tools", ToolNode([search]))
    builder.add_edge(START, "agent").add_edge("tools", "agent")
    return builder.add_conditional_edges("agent", tools_condition).compile()


@tool
async def delegate(query: str) -> str:
    """Let another graph work."""
    return str(await build_trail().ainvoke({"seen": [query]}))


def build_delegating() -> Any:
    """A graph whose tool calls another graph."""

    def decide(_: MessagesState) -> Any:
        call = {"name": "delegate", "args": {"query": "rain"}, "id": "call-1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}  # pyright: ignore[reportArgumentType]

    def call(state: MessagesState) -> list[Send]:
        message: Any = state["messages"][-1]
        of_agents = {"__type": "tool_call_with_context", "state": state}  # as langchain's agents call tools
        return [Send("tools", {**of_agents, "tool_call": one}) for one in message.tool_calls]

    builder = untyped(MessagesState).add_node("decide", decide).add_node("tools", ToolNode([delegate]))
    builder.add_edge(START, "decide").add_conditional_edges("decide", call, ["tools"])
    return builder.compile()


def build_nested_approval() -> Any:
    """A graph whose subgraph asks after a node of its own, which counts how often it runs."""

    async def prepare(_: Approval) -> Any:
        return {"decisions": ["prepared"]}

    inner = untyped(Approval).add_node("prepare", prepare).add_node("ask", ask)
    inner.add_edge(START, "prepare").add_edge("prepare", "ask")
    return untyped(Approval).add_node("inner", inner.compile()).add_edge(START, "inner").compile()


def build_dialogue() -> Any:
    """A model, a person who is asked, and the model again."""
    builder = untyped(MessagesState).add_node("open", chat).add_node("close", chat)
    builder.add_node("approve", lambda _: {"messages": [("user", interrupt({"question": "Is that fine?"}))]})  # pyright: ignore[reportUnknownLambdaType]
    return builder.add_edge(START, "open").add_edge("open", "approve").add_edge("approve", "close").compile()


class Whoami(TypedDict, total=False):
    seen: dict[str, Any]


def look(state: Whoami, config: RunnableConfig, runtime: Runtime[Any]) -> Whoami:
    """Return what a node learns of the user and of the request."""
    configurable: dict[str, Any] = config.get("configurable", {})
    user, server = configurable.get("langgraph_auth_user"), runtime.server_info
    known = server.user if server else None
    return {
        "seen": {
            "user": None if user is None else dict(user),
            "id": configurable.get("langgraph_auth_user_id"),
            "permissions": configurable.get("langgraph_auth_permissions"),
            "of_runtime": None if known is None else known.identity,
            "headers": {name: value for name, value in configurable.items() if name.startswith(("x-", "user-agent"))},
        }
    }


def build_whoami() -> Any:
    return untyped(Whoami).add_node("look", look).add_edge(START, "look").compile()


trail = register_langgraph("trail", build_trail, code_path=__file__, store_index=INDEX)
chatter = register_langgraph("chatter", build_chat, code_path=__file__)
approval = register_langgraph("approval", build_approval, code_path=__file__)
several = register_langgraph("several", build_several, code_path=__file__)
nested = register_langgraph("nested", build_nested, code_path=__file__)
gated = register_langgraph("gated", build_gated, code_path=__file__)
caller = register_langgraph("caller", build_caller, code_path=__file__)
conversation = register_langgraph("conversation", build_conversation, code_path=__file__)
searcher = register_langgraph("searcher", build_searcher, code_path=__file__)
whoami = register_langgraph("whoami", build_whoami, code_path=__file__)

dialogue = register_langgraph("dialogue", build_dialogue, code_path=__file__, own_models=True)
guide = register_langgraph("guide", build_guide, code_path=__file__)
delegating = register_langgraph("delegating", build_delegating, code_path=__file__)
nested_approval = register_langgraph("nested_approval", build_nested_approval, code_path=__file__)

NAMES = (
    "trail",
    "chatter",
    "approval",
    "several",
    "nested",
    "gated",
    "caller",
    "searcher",
    "conversation",
    "guide",
    "delegating",
    "nested_approval",
    "whoami",
    "dialogue",
)
GRAPHS = ",".join(f"{__name__}:{name}" for name in NAMES)
