"""deepagents: an agent with a plan, files in its state, and subagents behind a tool."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from deepagents import create_deep_agent

from offing.langchain import OffingChatModel, plain_graph
from tests.peers.playing import Heard, Peer, calls, says, together
from tests.wire.replies import Reply

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

graph = plain_graph("deep", agent, code=__file__)


def lines(heard: Heard) -> Reply:
    if "historian" in heard.told:
        if "Updated file" in heard.last or "Wrote" in heard.last or "notes.md" in heard.last:
            return says("It was built in 1907.")
        if heard.answered:
            return calls("write_file", file_path="/notes.md", content="1907, says the web.")
        return calls("internet_search", query="the hall")
    if "critic" in heard.told:
        return says("I believe it.")
    if "What did the notes say?" in heard.last:
        return calls("read_file", file_path="/notes.md")
    if "1907, says the web." in heard.last:
        return says("They say 1907.")
    if heard.answered:
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
