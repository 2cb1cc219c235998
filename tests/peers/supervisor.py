"""langgraph-supervisor: a supervisor that hands over to agents, all of which share one model."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import warnings

from langchain.agents import create_agent
from langgraph_supervisor import create_supervisor

from offing.langchain import OffingChatModel, plain_graph
from tests.peers.playing import Heard, Peer, calls, says
from tests.wire.replies import Reply

model = OffingChatModel("agent")


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def web_search(query: str) -> str:
    """Search the web."""
    return "Lund has 94 thousand inhabitants, Visby has 24 thousand."


math_agent = create_agent(model, [add], name="math_expert", system_prompt="You are a math expert.")
research_agent = create_agent(model, [web_search], name="research_expert", system_prompt="You are a researcher.")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    workflow = create_supervisor([research_agent, math_agent], model=model, prompt="You supervise two experts.")

graph = plain_graph("supervisor", workflow.compile(), code=__file__)


def lines(heard: Heard) -> Reply:
    if "math expert" in heard.told:
        return says("Together 118 thousand.") if "118.0" in heard.last else calls("add", a=94, b=24)
    if "researcher" in heard.told:
        found = "inhabitants" in heard.last
        return says("94 and 24 thousand.") if found else calls("web_search", query="Lund Visby")
    if "118" in heard.everything:
        return says(
            "More than a hundred thousand." if "And roughly?" in heard.everything else "They have 118 thousand."
        )
    return calls("transfer_to_math_expert" if "94 and 24" in heard.everything else "transfer_to_research_expert")


peer = Peer(
    name="supervisor",
    question="How many people live in Lund and Visby together?",
    says=lines,
    answer="They have 118 thousand.",
    follow="And roughly?",
    follow_answer="More than a hundred thousand.",
    tools=("add", "transfer_to_math_expert", "transfer_to_research_expert", "web_search"),
    askers=("math_expert", "research_expert", "supervisor"),
)
