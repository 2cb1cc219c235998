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

from offing.langchain import OffingChatModel, plain_graph
from offing.sdk import Graph
from tests.peers.playing import Heard, Peer, calls, says, together
from tests.wire.replies import Reply

model = OffingChatModel("agent")


def registered(name: str, builder: Any) -> Graph:
    return plain_graph(name, builder, code=__file__)


def asking(name: str, says: Any, answer: str, *replies: str, **more: Any) -> Peer:
    return Peer(name, "Begin.", says, answer, replies=replies, module="people", **more)


@tool
def book(what: str) -> str:
    """Book something, once a person agrees."""
    said = interrupt({"question": f"Book {what}?"})
    return f"{what}: {said}"


booker = registered("booker", create_agent(model, [book]))


def book_lines(heard: Heard) -> Reply:
    return says(f"Done, {heard.last}.") if heard.answered else calls("book", what="a bed")


both = registered("both", create_agent(model, [book]))


def both_lines(heard: Heard) -> Reply:
    told = [text for speaker, text in heard.messages if speaker == "tool"]
    return says(" ".join(told)) if told else together(calls("book", what="bed"), calls("book", what="car"))


def twice(state: MessagesState) -> dict[str, Any]:
    name = interrupt("Your name?")
    age = interrupt(f"And your age, {name}?")
    return {"messages": [AIMessage(f"{name} is {age}.")]}


asked_twice = registered("asked_twice", StateGraph(MessagesState).add_node(twice).add_edge(START, "twice").compile())

clerk = create_agent(model, [book], name="clerk", system_prompt="You are the clerk.")


@tool
async def ask_clerk(wish: str) -> str:
    """Have the clerk do something."""
    result = await clerk.ainvoke({"messages": [{"role": "user", "content": wish}]})
    return result["messages"][-1].text


nested = registered("nested", create_agent(model, [ask_clerk], name="boss", system_prompt="You are the boss."))


def nested_lines(heard: Heard) -> Reply:
    if "clerk" in heard.told:
        return book_lines(heard)
    return says(f"I hear: {heard.last}") if heard.answered else calls("ask_clerk", wish="A bed, please.")


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


def send_lines(heard: Heard) -> Reply:
    return says(heard.last) if heard.answered else calls("send", to="Ada")


@tool
def drop(page: int) -> str:
    """Drop it."""
    return f"Dropped {page}."


def with_two_tools(mode: Any) -> Any:
    asked = HumanInTheLoopMiddleware(
        {"send": True, "drop": {"allowed_decisions": ["approve", "reject"]}}, interrupt_mode=mode
    )
    return create_agent(model, [send, drop], middleware=[asked])


two_batched = registered("two_batched", with_two_tools("batched"))
two_per_call = registered("two_per_call", with_two_tools("per_call"))


def two_lines(heard: Heard) -> Reply:
    told = [text for speaker, text in heard.messages if speaker == "tool"]
    return says(" ".join(told)) if told else together(calls("send", to="Ada"), calls("drop", page=7))


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


def deep_lines(heard: Heard) -> Reply:
    if "the clerk" in heard.told:
        return send_lines(heard)
    return says(f"I hear: {heard.last}") if heard.answered else calls("task", description="Go.", subagent_type="clerk")


APPROVED = '{"decisions": [{"type": "approve"}]}'
REJECTED = '{"decisions": [{"type": "reject", "message": "not now"}]}'
EDITED = '{"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": {"to": "Bo"}}}]}'

PEOPLE = (
    asking("booker", book_lines, "Done, a bed: yes.", "yes"),
    asking("both", both_lines, "bed: yes car: no", "yes", "no", heeds=("bed", "car")),
    asking("asked_twice", says, "Ada is 36.", "Ada", "36"),
    asking("nested", nested_lines, "I hear: Done, a bed: yes.", "yes"),
    asking("formed", says, "yes, since I like it", '{"decision": "yes", "reason": "I like it"}'),
    asking("batched", send_lines, "Sent to Ada.", APPROVED),
    asking("per_call", send_lines, "Sent to Ada.", '{"type": "approve"}'),
    asking("deep_asking", deep_lines, "I hear: Sent to Ada.", APPROVED),
    asking("two_batched", two_lines, "Sent to Ada. Dropped 7.", "approve"),
    asking("two_per_call", two_lines, "Sent to Ada. Dropped 7.", "approve", "approve"),
    asking("inbox", says, "edit {'action': 'send', 'args': {'to': 'Bo'}}", 'edit: {"to": "Bo"}'),
)

WRONG = (
    asking("formed", says, "yes, since I like it", "approve", '{"decision": "yes", "reason": "I like it"}'),
    asking("batched", send_lines, "Sent to Ada.", "approve it please", APPROVED),
    asking("per_call", send_lines, "Sent to Ada.", "approve it please", '{"type": "approve"}'),
)
"""A person types something that is no answer, and is asked again."""

SHORT = (
    asking("batched", send_lines, "Sent to Ada.", "approve"),
    asking("per_call", send_lines, "Sent to Ada.", "approve"),
)
"""One word says which of the choices is meant."""
