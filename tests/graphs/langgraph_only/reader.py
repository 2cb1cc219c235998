"""A prebuilt agent that reads the platform's library through the platform's own tools."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportDeprecated=false

import warnings

from langgraph.prebuilt import create_react_agent

from offing.langchain import OffingChatModel, offing_tools, register_langgraph

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    agent = create_react_agent(OffingChatModel("reader"), offing_tools("search_library"))

graph = register_langgraph("plain_reader", agent, code_path=__file__, models=("reader",))
