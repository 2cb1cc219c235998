"""langgraph-reflection: an assistant whose answers are judged, and which tries again as long as steps remain."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

import warnings
from typing import Any

from langchain.agents import create_agent
from langgraph.graph import START, MessagesState, StateGraph

from offing.langchain import OffingChatModel, register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from langgraph_reflection import create_reflection_graph


def finish(reason: str) -> str:
    """The answer is good."""
    return reason


judge_model = OffingChatModel("judge").bind_tools([finish])


def judge(state: MessagesState) -> dict[str, Any] | None:
    answered = judge_model.invoke([{"role": "system", "content": "You judge answers."}, *state["messages"]])
    return None if answered.tool_calls else {"messages": [{"role": "user", "content": answered.text}]}


assistant = create_agent(OffingChatModel("assistant"), [], name="assistant")
judging = StateGraph(MessagesState).add_node(judge).add_edge(START, "judge").compile()

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    reflecting = create_reflection_graph(assistant, judging, state_schema=MessagesState).compile()

graph = register_langgraph("reflection", reflecting, code_path=__file__, models=("assistant", "judge"))


def lines(received: ReceivedPrompt) -> Reply:
    if received.role == "judge":
        return calls("finish", reason="Polite.") if "please" in received.last else says("Say please.")
    return says("Close the door, please." if "please" in received.last else "Close the door.")


peer = Peer(
    name="reflection",
    question="How do I ask for quiet?",
    says=lines,
    answer="Close the door, please.",
    follow="And now again, please.",
    follow_answer="Close the door, please.",
    roles=("assistant", "judge"),
    askers=("assistant", "judge"),
)
