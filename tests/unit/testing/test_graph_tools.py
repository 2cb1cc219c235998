"""Tools of a graph's own under the tool policy, and with the effect that their author declares."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.graph import MessagesState
from langgraph.types import interrupt

import offing.kernel.recorded_calls
from offing.core.errors import InvalidInput, NonDeterminismError
from offing.core.step import Step, StepKind
from offing.core.tool import SideEffect
from offing.core.tool_policy import Condition, ToolPolicy, ToolRule, find_issues
from offing.langchain import register_langgraph
from offing.langchain.tool_calls import get_side_effect
from offing.sdk import Graph
from offing.testing import SimulatedRun, simulate_run
from tests.workers.graphs import untyped

sent: list[str] = []


async def _send(to: str) -> str:
    sent.append(to)
    return f"sent to {to}"


async def _ask_and_send(to: str) -> str:
    interrupt(f"Send to {to}?")
    return await _send(to)


def letter(work: Callable[[str], Awaitable[str]] = _send, **metadata: Any) -> BaseTool:
    return StructuredTool.from_function(
        coroutine=work, name="send", description="Send a letter.", metadata=metadata or None
    )


ONCE = letter(effect="at_most_once")


@pytest.fixture(autouse=True)
def nothing_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent.clear()
    monkeypatch.setattr(offing.kernel.recorded_calls, "GRACE_SECONDS", 0.05)


def writing(tool: BaseTool, *friends: str | Callable[[], str], as_model: bool = True) -> Graph:
    """A graph of one node that sends letters one after the other."""

    async def write(_: MessagesState) -> dict[str, Any]:
        messages: list[str] = []
        for n, friend in enumerate(friends):
            args = {"to": friend if isinstance(friend, str) else friend()}
            call = {"type": "tool_call", "id": f"call {n}", "name": tool.name, "args": args}
            result = await tool.ainvoke(call if as_model else args)
            messages.append(result.text if isinstance(result, ToolMessage) else str(result))
        return {"messages": [AIMessage("; ".join(messages))]}

    builder = untyped(MessagesState)
    builder.add_node("write", write)
    builder.add_edge("__start__", "write")
    return register_langgraph("writing", builder, code_path=__file__)


def policy(*rules: ToolRule) -> ToolPolicy:
    return ToolPolicy(rules=rules)


async def simulate(graph: Graph, **more: Any) -> SimulatedRun:
    return await simulate_run(graph, "Write", **more)


def calls(run: SimulatedRun) -> list[Step]:
    return [step for step in run.steps if step.kind is StepKind.TOOL_RESULT]


def statuses(run: SimulatedRun) -> list[str]:
    return [step.payload["status"] for step in calls(run)]


async def test_a_tool_that_no_rule_names_is_allowed() -> None:
    run = await simulate(writing(letter(), "Ann"), tool_policy=policy(ToolRule(tool="send", effect="forbid")))
    assert (sent, statuses(run)) == (["Ann"], ["ok"])


async def test_a_rule_that_forbids_a_tool_of_the_graph_holds_and_the_model_reads_why() -> None:
    forbids = ToolRule(tool="graph:send", effect="forbid", reason="No letters.", name="letters")
    run = await simulate(writing(letter(), "Ann"), tool_policy=policy(forbids))
    assert (sent, statuses(run)) == ([], ["denied"])
    assert calls(run)[0].payload["rule"] == "letters"
    assert "send is not allowed: Rule 'letters' forbids it. No letters." in run.state["messages"][-1].text


async def test_code_that_calls_a_denied_tool_without_a_model_has_an_exception() -> None:
    forbids = policy(ToolRule(tool="graph:send", effect="forbid"))
    with pytest.raises(ToolException, match="not allowed"):
        await simulate(writing(letter(), "Ann", as_model=False), tool_policy=forbids)


async def test_an_allow_rule_limits_arguments_and_calls() -> None:
    allows = ToolRule(tool="graph:send", when=(Condition(arg="to", one_of=("Ann", "Bob")),), max_calls=2)
    run = await simulate(writing(letter(), "Ann", "Eve", "Bob", "Ann"), tool_policy=policy(allows))
    assert (sent, statuses(run)) == (["Ann", "Bob"], ["ok", "denied", "ok", "denied"])


@pytest.mark.parametrize(("approves", "letters"), [(True, ["Ann"]), (False, [])])
async def test_a_person_decides_where_a_rule_says_ask(approves: bool, letters: list[str]) -> None:
    asks = policy(ToolRule(tool="graph:send", effect="ask", allow_other_args=True))
    run = await simulate(writing(ONCE, "Ann"), tool_policy=asks, approves_tools=approves)
    assert sent == letters
    assert statuses(run) == ["ok" if approves else "denied"]


async def test_what_the_policy_said_holds_after_a_crash() -> None:
    allows = policy(ToolRule(tool="graph:send", allow_other_args=True, max_calls=1))
    whole = await simulate(writing(letter(), "Ann", "Bob"), tool_policy=allows)
    for moment in range(whole.loss_points):
        crashed = await simulate(writing(letter(), "Ann", "Bob"), tool_policy=allows, crash_at=moment)
        assert statuses(crashed) == ["ok", "denied"], moment


async def test_a_declared_effect_happens_once_at_most() -> None:
    whole = await simulate(writing(ONCE, "Ann"))
    seen: set[str] = set()
    for moment in range(whole.loss_points):
        sent.clear()
        crashed = await simulate(writing(ONCE, "Ann"), crash_at=moment)
        assert len(sent) <= 1, moment
        seen |= set(statuses(crashed))
    assert seen == {"ok", "unknown_outcome"}


async def test_another_effect_in_place_of_a_recorded_one_ends_the_run() -> None:
    draws = count()
    graph = writing(ONCE, lambda: f"friend {next(draws)}", "Bob")
    whole = await simulate(graph)
    differed = 0
    for moment in range(whole.loss_points):
        sent.clear()
        try:
            await simulate(graph, crash_at=moment)
        except NonDeterminismError:
            differed += 1
        assert len([to for to in sent if to.startswith("friend")]) <= 1, moment
    assert differed


async def test_a_call_without_an_effect_is_made_anew_and_its_step_says_so() -> None:
    draws = count()
    graph = writing(letter(), lambda: f"friend {next(draws)}", "Bob")
    whole = await simulate(graph)
    runs = [await simulate(graph, crash_at=moment) for moment in range(whole.loss_points)]
    assert any("anew" in step.payload for run in runs for step in calls(run))


async def test_a_tool_that_must_not_run_twice_may_not_interrupt_itself() -> None:
    with pytest.raises(InvalidInput, match="interrupts itself"):
        await simulate(writing(letter(_ask_and_send, effect="at_most_once"), "Ann"))
    assert sent == []


@pytest.mark.parametrize(
    ("metadata", "effect"),
    [
        ({}, SideEffect.PURE),
        ({"effect": "idempotent"}, SideEffect.IDEMPOTENT),
        ({"destructiveHint": None, "readOnlyHint": None}, SideEffect.PURE),
        ({"readOnlyHint": True}, SideEffect.PURE),
        ({"readOnlyHint": False}, SideEffect.AT_MOST_ONCE),
        ({"destructiveHint": True}, SideEffect.AT_MOST_ONCE),
        ({"destructiveHint": True, "idempotentHint": True}, SideEffect.IDEMPOTENT),
    ],
)
def test_an_effect_is_read_from_metadata_and_from_annotations_of_mcp(metadata: Any, effect: SideEffect) -> None:
    assert get_side_effect(letter(**metadata)) is effect


def test_an_unknown_effect_is_rejected_by_name() -> None:
    with pytest.raises(InvalidInput, match="at_most_once") as error:
        get_side_effect(letter(effect="harmless"))
    assert error.value.field == "send.metadata.effect"


def test_a_rule_about_a_tool_of_the_graph_passes_the_checks_without_a_substitute() -> None:
    message = ToolRule(tool="graph:send", effect="replace", message="Use the phone.")
    assert find_issues(policy(message), {}) == ()
    instead = ToolRule.model_validate(
        {"tool": "graph:send", "effect": "replace", "substitute": {"tool": "calculate", "args": []}}
    )
    (result,) = find_issues(policy(instead), {})
    assert result.field == "rules.0.substitute"
