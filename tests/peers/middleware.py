"""langchain's `create_agent` with middleware: a plan, a person's approval, summaries, limits and retries."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
)
from langchain.tools import tool

from offing.langchain import OffingChatModel, register_langgraph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says

model = OffingChatModel("agent")


@tool
def read_email(number: int) -> str:
    """Read an email."""
    return "Ada asks whether the hall is free on Friday."


@tool
def send_email(to: str, body: str) -> str:
    """Send an email."""
    return f"Sent to {to}."


used: list[Any] = [
    TodoListMiddleware(),
    SummarizationMiddleware(model, trigger=("messages", 10), keep=("messages", 4)),
    HumanInTheLoopMiddleware(interrupt_on={"send_email": True, "read_email": False}),
    ModelCallLimitMiddleware(run_limit=20),
    ToolRetryMiddleware(max_retries=1),
]

agent = create_agent(model, [read_email, send_email], system_prompt="You answer email.", middleware=used)

graph = register_langgraph("middleware", agent, code_path=__file__)


def lines(received: ReceivedPrompt) -> Reply:
    if not received.tools:
        return says("Ada was told that the hall is free.")
    if "And Bo?" in received.last:
        return calls("send_email", to="bo@example.org", body="Also yes.")
    if "Sent to" in received.last:
        return says("Both are told." if "bo@" in received.last else "Ada is told.")
    if "Ada asks" in received.last:
        return calls("send_email", to="ada@example.org", body="Yes.")
    if "Updated todo list" in received.last:
        return calls("read_email", number=1)
    return calls("write_todos", todos=[{"content": "Answer Ada", "status": "in_progress"}])


APPROVED = '{"decisions": [{"type": "approve"}]}'

peer = Peer(
    name="middleware",
    question="Answer my email.",
    says=lines,
    answer="Ada is told.",
    follow="And Bo?",
    follow_answer="Both are told.",
    tools=("read_email", "send_email", "write_todos"),
    replies=(APPROVED,),
)
