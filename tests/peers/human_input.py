"""Graphs that ask a person: in tools, several at once, twice in a node, in an agent that a tool runs, with a form."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from typing import Any, Literal

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from offing.langchain import OffingChatModel, register_langgraph
from offing.sdk import Graph
from tests.model_provider.replies import Reply
from tests.peers.peer_case import Peer, ReceivedPrompt, calls, says, together

model = OffingChatModel("agent")


def registered(name: str, builder: Any) -> Graph:
    return register_langgraph(name, builder, code_path=__file__)


def input_peer(name: str, says: Any, answer: str, *replies: str, **more: Any) -> Peer:
    return Peer(name, "Begin.", says, answer, replies=replies, module="human_input", **more)


@tool
def book(what: str) -> str:
    """Book something, once a person agrees."""
    text = interrupt({"question": f"Book {what}?"})
    return f"{what}: {text}"


booker = registered("booker", create_agent(model, [book]))


def book_lines(received: ReceivedPrompt) -> Reply:
    return says(f"Done, {received.last}.") if received.answered else calls("book", what="a bed")


both = registered("both", create_agent(model, [book]))


def both_lines(received: ReceivedPrompt) -> Reply:
    messages = [text for speaker, text in received.messages if speaker == "tool"]
    return says(" ".join(messages)) if messages else together(calls("book", what="bed"), calls("book", what="car"))


def twice(state: MessagesState) -> dict[str, Any]:
    name = interrupt("Your name?")
    age = interrupt(f"And your age, {name}?")
    return {"messages": [AIMessage(f"{name} is {age}.")]}


asked_twice = registered("asked_twice", StateGraph(MessagesState).add_node(twice).add_edge(START, "twice").compile())

clerk = create_agent(model, [book], name="clerk", system_prompt="You are the clerk.")


@tool
async def ask_clerk(request: str) -> str:
    """Have the clerk do something."""
    result = await clerk.ainvoke({"messages": [{"role": "user", "content": request}]})
    return result["messages"][-1].text


nested = registered("nested", create_agent(model, [ask_clerk], name="boss", system_prompt="You are the boss."))


def nested_lines(received: ReceivedPrompt) -> Reply:
    if "clerk" in received.system_text:
        return book_lines(received)
    return says(f"I hear: {received.last}") if received.answered else calls("ask_clerk", request="A bed, please.")


class Decided(BaseModel):
    """What a person decides."""

    decision: Literal["yes", "no"]
    reason: str = ""


def decide(state: MessagesState) -> dict[str, Any]:
    decided: Decided = interrupt("Shall I?", response_schema=Decided)
    return {"messages": [AIMessage(f"{decided.decision}, since {decided.reason}")]}


formed = registered("formed", StateGraph(MessagesState).add_node(decide).add_edge(START, "decide").compile())


@tool
def send(to: str) -> str:
    """Send it."""
    return f"Sent to {to}."


def sending(mode: Any) -> Any:
    return create_agent(model, [send], middleware=[HumanInTheLoopMiddleware({"send": True}, interrupt_mode=mode)])


batched = registered("batched", sending("batched"))
per_call = registered("per_call", sending("per_call"))

deep_asking = registered(
    "deep_asking",
    create_deep_agent(
        model,
        [send],
        subagents=[
            {
                "name": "clerk",
                "description": "Sends.",
                "system_prompt": "You are the clerk.",
                "tools": [send],
                "interrupt_on": {"send": True},
            }
        ],
    ),
)


def send_lines(received: ReceivedPrompt) -> Reply:
    return says(received.last) if received.answered else calls("send", to="Ada")


@tool
def drop(page: int) -> str:
    """Drop it."""
    return f"Dropped {page}."


def with_two_tools(mode: Any) -> Any:
    request = HumanInTheLoopMiddleware(
        {"send": True, "drop": {"allowed_decisions": ["approve", "reject"]}}, interrupt_mode=mode
    )
    return create_agent(model, [send, drop], middleware=[request])


two_batched = registered("two_batched", with_two_tools("batched"))
two_per_call = registered("two_per_call", with_two_tools("per_call"))


def two_lines(received: ReceivedPrompt) -> Reply:
    messages = [text for speaker, text in received.messages if speaker == "tool"]
    return says(" ".join(messages)) if messages else together(calls("send", to="Ada"), calls("drop", page=7))


class Inbox(TypedDict):
    """LangGraph's `HumanInterrupt`, whose own class warns that it has moved to a package that does not exist yet."""

    action_request: dict[str, Any]
    config: dict[str, bool]
    description: str


def triage(state: MessagesState) -> dict[str, Any]:
    config = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": False}
    action = {"action": "send", "args": {"to": "Ada"}}
    request = Inbox(action_request=action, config=config, description="A letter to **Ada**.")
    response = interrupt([request])[0]
    return {"messages": [AIMessage(f"{response['type']} {response['args']}")]}


inbox = registered("inbox", StateGraph(MessagesState).add_node(triage).add_edge(START, "triage").compile())


def deep_lines(received: ReceivedPrompt) -> Reply:
    if "the clerk" in received.system_text:
        return send_lines(received)
    return (
        says(f"I hear: {received.last}")
        if received.answered
        else calls("task", description="Go.", subagent_type="clerk")
    )


APPROVED = '{"decisions": [{"type": "approve"}]}'
REJECTED = '{"decisions": [{"type": "reject", "message": "not now"}]}'
EDITED = '{"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": {"to": "Bo"}}}]}'

PEOPLE = (
    input_peer("booker", book_lines, "Done, a bed: yes.", "yes"),
    input_peer("both", both_lines, "bed: yes car: no", "yes", "no", heeds=("bed", "car")),
    input_peer("asked_twice", says, "Ada is 36.", "Ada", "36"),
    input_peer("nested", nested_lines, "I hear: Done, a bed: yes.", "yes"),
    input_peer("formed", says, "yes, since I like it", '{"decision": "yes", "reason": "I like it"}'),
    input_peer("batched", send_lines, "Sent to Ada.", APPROVED),
    input_peer("per_call", send_lines, "Sent to Ada.", '{"type": "approve"}'),
    input_peer("deep_asking", deep_lines, "I hear: Sent to Ada.", APPROVED),
    input_peer("two_batched", two_lines, "Sent to Ada. Dropped 7.", "approve"),
    input_peer("two_per_call", two_lines, "Sent to Ada. Dropped 7.", "approve", "approve"),
    input_peer("inbox", says, "edit {'action': 'send', 'args': {'to': 'Bo'}}", 'edit: {"to": "Bo"}'),
)

WRONG = (
    input_peer("formed", says, "yes, since I like it", "approve", '{"decision": "yes", "reason": "I like it"}'),
    input_peer("batched", send_lines, "Sent to Ada.", "approve it please", APPROVED),
    input_peer("per_call", send_lines, "Sent to Ada.", "approve it please", '{"type": "approve"}'),
)
"""A person types something that is no answer, and is asked again."""

SHORT = (
    input_peer("batched", send_lines, "Sent to Ada.", "approve"),
    input_peer("per_call", send_lines, "Sent to Ada.", "approve"),
)
"""One word says which of the choices is meant."""
