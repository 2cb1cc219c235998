"""deepagents: an agent with a plan, files in its state, and subagents behind a tool."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from deepagents import create_deep_agent

from offing.langchain import OffingChatModel, register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says, together

model = OffingChatModel("agent")


def internet_search(query: str) -> str:
    """Search the web."""
    return f"About {query}: built in 1907."


agent = create_deep_agent(
    model,
    [internet_search],
    system_prompt="You are an expert researcher.",
    subagents=[
        {
            "name": "historian",
            "description": "Finds out when things were built.",
            "system_prompt": "You are a historian.",
            "tools": [internet_search],
        },
        {
            "name": "critic",
            "description": "Checks a claim.",
            "system_prompt": "You are a critic.",
            "tools": [],
        },
    ],
)

graph = register_langgraph("deep", agent, code_path=__file__)


def lines(received: ReceivedPrompt) -> Reply:
    if "historian" in received.system_text:
        if "Updated file" in received.last or "Wrote" in received.last or "notes.md" in received.last:
            return says("It was built in 1907.")
        if received.answered:
            return calls("write_file", file_path="/notes.md", content="1907, says the web.")
        return calls("internet_search", query="the hall")
    if "critic" in received.system_text:
        return says("I believe it.")
    if "What did the notes say?" in received.last:
        return calls("read_file", file_path="/notes.md")
    if "1907, says the web." in received.last:
        return says("They say 1907.")
    if received.answered:
        return says("The hall was built in 1907.")
    return together(
        calls("task", description="When was the hall built?", subagent_type="historian"),
        calls("task", description="Is it old?", subagent_type="critic"),
    )


peer = Peer(
    name="deep",
    question="When was the hall built?",
    says=lines,
    answer="The hall was built in 1907.",
    follow="What did the notes say?",
    follow_answer="They say 1907.",
    tools=("internet_search", "task", "task", "write_file"),
    askers=("critic", "historian"),
)
