"""langgraph-swarm: two agents that hand the conversation over to each other; the thread remembers who has it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_swarm import create_handoff_tool, create_swarm

from offing.langchain import OffingChatModel, register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says

model = OffingChatModel("agent")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


alice = create_agent(
    model,
    [add, create_handoff_tool(agent_name="Bob", description="Transfer to Bob.")],
    system_prompt="You are Alice, an addition expert.",
    name="Alice",
)
bob = create_agent(
    model,
    [create_handoff_tool(agent_name="Alice", description="Transfer to Alice, she can help with math.")],
    system_prompt="You are Bob, you speak like a pirate.",
    name="Bob",
)
workflow = create_swarm([alice, bob], default_active_agent="Alice")

graph = register_langgraph("swarm", workflow.compile(checkpointer=InMemorySaver()), code_path=__file__)


def lines(received: ReceivedPrompt) -> Reply:
    if "pirate" in received.system_text:
        return calls("transfer_to_alice") if "5 + 7" in received.last else says("Ahoy, I am Bob!")
    if "12" in received.last:
        return says("5 + 7 is 12.")
    return calls("add", a=5, b=7) if "5 + 7" in received.everything else calls("transfer_to_bob")


peer = Peer(
    name="swarm",
    question="I would like to speak to Bob.",
    says=lines,
    answer="Ahoy, I am Bob!",
    follow="What is 5 + 7?",
    follow_answer="5 + 7 is 12.",
    tools=("transfer_to_bob",),
    askers=("Alice", "Bob"),
)
