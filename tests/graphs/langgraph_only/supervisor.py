"""A supervisor that sends the conversation to one of two agents, each of which is a graph of its own."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportReturnType=false

from typing import Any, Literal

from langchain_core.messages import SystemMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from pydantic import BaseModel

from offing.langchain import OffingChatModel, register_langgraph

model = OffingChatModel("supervisor")


class Route(BaseModel):
    """Who works next."""

    next: Literal["researcher", "mathematician", "FINISH"]


@tool
def look_up(subject: str) -> str:
    """Look a subject up in the almanac."""
    return f"The almanac says that {subject} has 17 moons."


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two whole numbers."""
    return a * b


def make_agent(name: str, instructions: str, tools: list[Any]) -> Any:
    llm = OffingChatModel(name).bind_tools(tools)

    async def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await llm.ainvoke([SystemMessage(instructions), *state["messages"]])]}

    builder = StateGraph(MessagesState)
    builder.add_node("call_model", call_model)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "call_model")
    builder.add_conditional_edges("call_model", tools_condition)
    builder.add_edge("tools", "call_model")
    return builder.compile()


async def supervisor(state: MessagesState) -> Command[Literal["researcher", "mathematician", "__end__"]]:
    message = SystemMessage("Decide who works next, or FINISH.")
    route: Any = await model.with_structured_output(Route).ainvoke([message, *state["messages"]])
    return Command(goto=END if route.next == "FINISH" else route.next)


builder = StateGraph(MessagesState)
builder.add_node("supervisor", supervisor)
builder.add_node("researcher", make_agent("researcher", "You look things up.", [look_up]))
builder.add_node("mathematician", make_agent("mathematician", "You calculate.", [multiply]))
builder.add_edge(START, "supervisor")
builder.add_edge("researcher", "supervisor")
builder.add_edge("mathematician", "supervisor")

graph = register_langgraph(
    "plain_supervisor", builder.compile(), code_path=__file__, models=("supervisor", "researcher", "mathematician")
)
