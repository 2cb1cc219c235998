"""Tools of a graph's own, and what they leave: counted, failing, asking, injected, in threads, with agents within."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportMissingTypeStubs=false

import random
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain.tools import InjectedState, ToolRuntime, tool
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from offing.langchain import OffingChatModel, register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says, together

model = OffingChatModel("agent")

executed: list[str] = []
"""What tools really did."""


def registered(name: str, builder: Any) -> Any:
    return register_langgraph(name, builder, code_path=__file__)


def tooled(name: str, lines: Any, answer: str, *tools: str, **more: Any) -> Peer:
    return Peer(name, "Begin.", lines, answer, tools=tools, module="tools", **more)


@tool
def draw(of: str) -> str:
    """Draw a number, which is another one each time."""
    executed.append(f"draw {of}")
    return f"{of} {random.random()}"


@tool
async def draw_slowly(of: str, state: Annotated[Any, InjectedState], runtime: ToolRuntime[Any, Any]) -> Command[Any]:
    """The same, as a command, with all that LangGraph injects."""
    executed.append(f"draw_slowly {of}")
    message = ToolMessage(f"{of} {len(state['messages'])} {random.random()}", tool_call_id=runtime.tool_call_id or "")
    return Command(update={"messages": [message]})


drawn = registered("drawn", create_agent(model, [draw, draw_slowly]))


def drawn_lines(received: ReceivedPrompt) -> Reply:
    if received.answered:
        return says("Drawn.")
    return together(calls("draw", of="a"), calls("draw", of="b"), calls("draw_slowly", of="c"))


node_builder = StateGraph(MessagesState)


async def ask_to_draw(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await model.bind_tools([draw]).ainvoke(state["messages"])]}


def tell(state: MessagesState) -> dict[str, Any]:
    drawn = [m.text for m in state["messages"] if isinstance(m, ToolMessage)]
    return {"messages": [AIMessage("Twice the same." if len(set(drawn)) < len(drawn) else "Drawn.")]}


node_builder.add_node(ask_to_draw).add_node("tools", ToolNode([draw])).add_node(tell)
node_builder.add_edge(START, "ask_to_draw").add_edge("ask_to_draw", "tools").add_edge("tools", "tell")
in_threads = registered("in_threads", node_builder.compile())


def twice_lines(received: ReceivedPrompt) -> Reply:
    return together(calls("draw", of="a"), calls("draw", of="a"))


@tool
def shaky(of: str) -> str:
    """Fails at first."""
    executed.append(f"shaky {of}")
    if len(executed) == 1:
        raise ConnectionError("not yet")
    return f"{of} at last"


retrying: list[Any] = [ToolRetryMiddleware(max_retries=2, initial_delay=0.01)]
retried = registered("retried", create_agent(model, [shaky], middleware=retrying))


def shaky_lines(received: ReceivedPrompt) -> Reply:
    return says(f"I see {received.last}.") if received.answered else calls("shaky", of="it")


@dataclass
class Odd:
    """A value that is no plain data."""

    n: int


@tool(response_format="content_and_artifact")
def odd(of: str) -> tuple[str, Odd]:
    """Give something that has no form."""
    executed.append(f"odd {of}")
    return f"{of} is odd", Odd(3)


oddly = registered("oddly", create_agent(model, [odd]))


def odd_lines(received: ReceivedPrompt) -> Reply:
    return says(f"I see {received.last}.") if received.answered else calls("odd", of="it")


TOOLED = (
    tooled("drawn", drawn_lines, "Drawn.", "draw", "draw", "draw_slowly"),
    tooled("in_threads", twice_lines, "Drawn.", "draw", "draw"),
    tooled("retried", shaky_lines, "I see it at last.", "shaky"),
    tooled("oddly", odd_lines, "I see it is odd.", "odd"),
)
