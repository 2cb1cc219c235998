"""Agents of other packages that wait for a person are carried over to another version, and hear the answer there.

Their models are LangChain's own scripted ones, each with the lines that are left for its version.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false

import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.storage.builders import claimed
from tests.storage.graph_upgrade import UpgradableRun

APPROVED = {"decisions": [{"type": "approve"}]}


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self


def model(*lines: AIMessage) -> Scripted:
    return Scripted(messages=iter(lines))


def calls(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": name}])


@tool
def book(city: str) -> str:
    """Book a journey."""
    return f"booked {city}"


BOOK, DONE, ALL_DONE = calls("book", city="Rome"), AIMessage("done"), AIMessage("all done")


def booker(*lines: AIMessage, tools: tuple[Any, ...] = ()) -> Any:
    asks = HumanInTheLoopMiddleware(interrupt_on={"book": True})
    return create_agent(model(*lines), [book, *tools], middleware=[asks], name="booker")


def supervisor(first: tuple[AIMessage, ...], second: tuple[AIMessage, ...]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return create_supervisor([booker(*first)], model=model(*second)).compile()


def swarm(first: tuple[AIMessage, ...], second: tuple[AIMessage, ...]) -> Any:
    host = create_agent(model(*second), [create_handoff_tool(agent_name="booker")], name="host")
    return create_swarm([host, booker(*first)], default_active_agent="host").compile()


def deep(*lines: AIMessage) -> Any:
    return create_deep_agent(model=model(*lines), tools=[book], interrupt_on={"book": True})


def deeper(first: tuple[AIMessage, ...], second: tuple[AIMessage, ...]) -> Any:
    """Its subagent asks, in a graph that a tool runs."""
    says = {"name": "booker", "description": "Books.", "system_prompt": "Book.", "model": model(*first)}
    subagent: Any = {**says, "tools": [book], "interrupt_on": {"book": True}}
    return create_deep_agent(model=model(*second), tools=[], subagents=[subagent])


HAND = calls("transfer_to_booker")
TASK = calls("task", description="Book Rome", subagent_type="booker")

VERSIONS: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "create_agent": (lambda: booker(BOOK), lambda: booker(DONE), "done"),
    "supervisor": (lambda: supervisor((BOOK,), (HAND,)), lambda: supervisor((DONE,), (ALL_DONE,)), "all done"),
    "swarm": (lambda: swarm((BOOK,), (HAND,)), lambda: swarm((DONE,), ()), "done"),
    "deepagents": (lambda: deep(BOOK), lambda: deep(DONE), "done"),
}


@pytest.fixture
async def held(app_url: str) -> AsyncIterator[UpgradableRun]:
    async with Database(app_url, max_connections=4) as pool:
        yield UpgradableRun(pool, (await claimed(pool, LOCAL_TENANT)).fence)


@pytest.mark.parametrize("name", VERSIONS)
async def test_an_agent_that_asks_hears_the_answer_in_another_version(held: UpgradableRun, name: str) -> None:
    first, second, last = VERSIONS[name]
    before, after = first(), second()
    waiting = await held.play(lambda: before, {"messages": [("user", "Book Rome")]})
    assert await held.carry(lambda: after, lambda _, state: {**state, "messages": [*state["messages"]]}) == ""
    ended = await held.answer(lambda: after, waiting, APPROVED)
    messages = [str(message.text) for message in ended["messages"]]
    assert (messages[0], messages[-1]) == ("Book Rome", last)


async def test_a_subagent_that_a_tool_runs_and_that_asks_stays_in_its_version(held: UpgradableRun) -> None:
    before, after = deeper((BOOK,), (TASK,)), deeper((DONE,), (ALL_DONE,))
    waiting = await held.play(lambda: before, {"messages": [("user", "Book Rome")]})
    why = await held.carry(lambda: after)
    assert (
        why == "it waits in a graph that its node 'tools' called, which the new version does not declare as a subgraph"
    )
    assert (await held.play(lambda: before, None)).interrupts == waiting.interrupts != ()
