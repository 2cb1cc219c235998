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
from offing.core.policy import Condition, Policy, Rule, findings
from offing.core.step import Step, StepKind
from offing.core.tool import Effect
from offing.langchain import plain_graph
from offing.langchain.tool_calls import effect_of
from offing.sdk import Graph
from offing.testing import Rehearsal, rehearse
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
        said: list[str] = []
        for n, friend in enumerate(friends):
            args = {"to": friend if isinstance(friend, str) else friend()}
            call = {"type": "tool_call", "id": f"call {n}", "name": tool.name, "args": args}
            result = await tool.ainvoke(call if as_model else args)
            said.append(result.text if isinstance(result, ToolMessage) else str(result))
        return {"messages": [AIMessage("; ".join(said))]}

    builder = untyped(MessagesState)
    builder.add_node("write", write)
    builder.add_edge("__start__", "write")
    return plain_graph("writing", builder, code=__file__)


def policy(*rules: Rule) -> Policy:
    return Policy(rules=rules)


async def rehearsed(graph: Graph, **more: Any) -> Rehearsal:
    return await rehearse(graph, "Write", **more)


def calls(run: Rehearsal) -> list[Step]:
    return [step for step in run.steps if step.kind is StepKind.TOOL]


def statuses(run: Rehearsal) -> list[str]:
    return [step.payload["status"] for step in calls(run)]


async def test_a_tool_that_no_rule_names_is_allowed() -> None:
    run = await rehearsed(writing(letter(), "Ann"), policy=policy(Rule(tool="send", effect="forbid")))
    assert (sent, statuses(run)) == (["Ann"], ["ok"])


async def test_a_rule_that_forbids_a_tool_of_the_graph_holds_and_the_model_reads_why() -> None:
    forbids = Rule(tool="graph:send", effect="forbid", reason="No letters.", name="letters")
    run = await rehearsed(writing(letter(), "Ann"), policy=policy(forbids))
    assert (sent, statuses(run)) == ([], ["denied"])
    assert calls(run)[0].payload["rule"] == "letters"
    assert "send is not allowed: Rule 'letters' forbids it. No letters." in run.state["messages"][-1].text


async def test_code_that_calls_a_denied_tool_without_a_model_has_an_exception() -> None:
    forbids = policy(Rule(tool="graph:send", effect="forbid"))
    with pytest.raises(ToolException, match="not allowed"):
        await rehearsed(writing(letter(), "Ann", as_model=False), policy=forbids)


async def test_an_allow_rule_limits_arguments_and_calls() -> None:
    allows = Rule(tool="graph:send", when=(Condition(arg="to", one_of=("Ann", "Bob")),), most=2)
    run = await rehearsed(writing(letter(), "Ann", "Eve", "Bob", "Ann"), policy=policy(allows))
    assert (sent, statuses(run)) == (["Ann", "Bob"], ["ok", "denied", "ok", "denied"])


@pytest.mark.parametrize(("approves", "letters"), [(True, ["Ann"]), (False, [])])
async def test_a_person_decides_where_a_rule_says_ask(approves: bool, letters: list[str]) -> None:
    asks = policy(Rule(tool="graph:send", effect="ask", others=True))
    run = await rehearsed(writing(ONCE, "Ann"), policy=asks, approves=approves)
    assert sent == letters
    assert statuses(run) == ["ok" if approves else "denied"]


async def test_what_the_policy_said_holds_after_a_loss() -> None:
    allows = policy(Rule(tool="graph:send", others=True, most=1))
    whole = await rehearsed(writing(letter(), "Ann", "Bob"), policy=allows)
    for moment in range(whole.moments):
        lost = await rehearsed(writing(letter(), "Ann", "Bob"), policy=allows, lose_at=moment)
        assert statuses(lost) == ["ok", "denied"], moment


async def test_a_declared_effect_happens_once_at_most() -> None:
    whole = await rehearsed(writing(ONCE, "Ann"))
    seen: set[str] = set()
    for moment in range(whole.moments):
        sent.clear()
        lost = await rehearsed(writing(ONCE, "Ann"), lose_at=moment)
        assert len(sent) <= 1, moment
        seen |= set(statuses(lost))
    assert seen == {"ok", "unknown_outcome"}


async def test_another_effect_in_place_of_a_recorded_one_ends_the_run() -> None:
    draws = count()
    graph = writing(ONCE, lambda: f"friend {next(draws)}", "Bob")
    whole = await rehearsed(graph)
    differed = 0
    for moment in range(whole.moments):
        sent.clear()
        try:
            await rehearsed(graph, lose_at=moment)
        except NonDeterminismError:
            differed += 1
        assert len([to for to in sent if to.startswith("friend")]) <= 1, moment
    assert differed


async def test_a_call_without_an_effect_is_made_anew_and_its_step_says_so() -> None:
    draws = count()
    graph = writing(letter(), lambda: f"friend {next(draws)}", "Bob")
    whole = await rehearsed(graph)
    runs = [await rehearsed(graph, lose_at=moment) for moment in range(whole.moments)]
    assert any("anew" in step.payload for run in runs for step in calls(run))


async def test_a_tool_that_must_not_run_twice_may_not_interrupt_itself() -> None:
    with pytest.raises(InvalidInput, match="interrupts itself"):
        await rehearsed(writing(letter(_ask_and_send, effect="at_most_once"), "Ann"))
    assert sent == []


@pytest.mark.parametrize(
    ("metadata", "effect"),
    [
        ({}, Effect.PURE),
        ({"effect": "idempotent"}, Effect.IDEMPOTENT),
        ({"destructiveHint": None, "readOnlyHint": None}, Effect.PURE),
        ({"readOnlyHint": True}, Effect.PURE),
        ({"readOnlyHint": False}, Effect.AT_MOST_ONCE),
        ({"destructiveHint": True}, Effect.AT_MOST_ONCE),
        ({"destructiveHint": True, "idempotentHint": True}, Effect.IDEMPOTENT),
    ],
)
def test_an_effect_is_read_from_metadata_and_from_annotations_of_mcp(metadata: Any, effect: Effect) -> None:
    assert effect_of(letter(**metadata)) is effect


def test_an_unknown_effect_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="at_most_once") as refused:
        effect_of(letter(effect="harmless"))
    assert refused.value.field == "send.metadata.effect"


def test_a_rule_about_a_tool_of_the_graph_passes_the_checks_without_a_substitute() -> None:
    message = Rule(tool="graph:send", effect="replace", message="Use the phone.")
    assert findings(policy(message), {}) == ()
    instead = Rule.model_validate(
        {"tool": "graph:send", "effect": "replace", "instead": {"tool": "calculate", "args": []}}
    )
    (found,) = findings(policy(instead), {})
    assert found.field == "rules.0.instead"
