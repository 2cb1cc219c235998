"""Two agents that hand the conversation over to each other by a tool."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportDeprecated=false

import warnings
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, create_react_agent
from langgraph.types import Command

from offing.langchain import OffingChatModel, register_langgraph


def make_handoff(to: str) -> Any:
    name = f"transfer_to_{to}"

    @tool(name, description=f"Hand the conversation over to {to}.")
    def handoff(state: Annotated[Any, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        message = ToolMessage(f"Handed over to {to}.", name=name, tool_call_id=tool_call_id)
        return Command(goto=to, graph=Command.PARENT, update={"messages": [*state["messages"], message]})

    return handoff


@tool
def book_flight(to: str) -> str:
    """Book a flight."""
    return f"Flight to {to} is booked."


@tool
def book_hotel(city: str) -> str:
    """Book a hotel."""
    return f"Hotel in {city} is booked."


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    flights = create_react_agent(
        OffingChatModel("flights"), [book_flight, make_handoff("hotels")], prompt="You book flights.", name="flights"
    )
    hotels = create_react_agent(
        OffingChatModel("hotels"), [book_hotel, make_handoff("flights")], prompt="You book hotels.", name="hotels"
    )

builder = StateGraph(MessagesState)
builder.add_node("flights", flights)
builder.add_node("hotels", hotels)
builder.add_edge(START, "flights")

graph = register_langgraph("plain_swarm", builder.compile(), code_path=__file__, models=("flights", "hotels"))
