"""A prebuilt agent that uses two functions as tools."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportDeprecated=false

import warnings

from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent

from offing.langchain import OffingChatModel, register_langgraph


@tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return {"Oslo": "4 degrees and rain", "Rome": "19 degrees and sun"}.get(city, "unknown")


@tool
async def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # LangGraph calls the prebuilt agent old
    agent = create_react_agent(
        OffingChatModel("agent"), [get_weather, add], prompt="You are a helpful guide. Use your tools."
    )

graph = register_langgraph("plain_react", agent, code_path=__file__)
