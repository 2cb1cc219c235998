"""langmem: an agent with tools that keep and search memories in LangGraph's store."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

import warnings

from langchain.agents import create_agent

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from langmem import create_manage_memory_tool, create_search_memory_tool

from offing.langchain import OffingChatModel, register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says

agent = create_agent(
    OffingChatModel("agent"),
    [create_manage_memory_tool(namespace=("memories",)), create_search_memory_tool(namespace=("memories",))],
)

graph = register_langgraph("memories", agent, code_path=__file__)


def lines(received: ReceivedPrompt) -> Reply:
    if "Remember" in received.last:
        return calls("manage_memory", content="Ada likes tea.")
    if "What does Ada like?" in received.last:
        return calls("search_memory", query="Ada")
    return says("She likes tea." if "Ada likes tea." in received.last else "I keep that.")


peer = Peer(
    name="memories",
    question="Remember that Ada likes tea.",
    says=lines,
    answer="I keep that.",
    follow="What does Ada like?",
    follow_answer="She likes tea.",
    tools=("manage_memory",),
)
