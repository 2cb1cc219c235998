"""langgraph-supervisor: a supervisor that hands over to agents, all of which share one model."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import warnings

from langchain.agents import create_agent
from langgraph_supervisor import create_supervisor

from offing.langchain import OffingChatModel, register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says

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

graph = register_langgraph("supervisor", workflow.compile(), code_path=__file__)


def lines(received: ReceivedPrompt) -> Reply:
    if "math expert" in received.system_text:
        return says("Together 118 thousand.") if "118.0" in received.last else calls("add", a=94, b=24)
    if "researcher" in received.system_text:
        result = "inhabitants" in received.last
        return says("94 and 24 thousand.") if result else calls("web_search", query="Lund Visby")
    if "118" in received.everything:
        return says(
            "More than a hundred thousand." if "And roughly?" in received.everything else "They have 118 thousand."
        )
    return calls("transfer_to_math_expert" if "94 and 24" in received.everything else "transfer_to_research_expert")


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
