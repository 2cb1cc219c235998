"""The check finds each kind of fault where it is planted, names place and remedy, and finds none in our own graphs."""

import operator
import random
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from random import choice
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from offing.core.step import StepDraft, StepKind
from offing.sdk import Graph, Headline, Message, ReportDraft, Role, RunContext, RunInfo, StopReason, ToolCall
from offing.services.graphs import open_registry
from offing.testing.graph_checks import ERROR, WARNING, GraphIssue, find_graph_issues
from tests.workers.graphs import SPEAKER, Ask, Count, Say, counting, untyped

OURS = ("agentflow", "hiper", "iterresearch", "memact", "supo")


class Heap(TypedDict):
    turn: int
    stop: str
    heap: Annotated[list[str], operator.add]


async def _write(state: Any, runtime: Any) -> dict[str, Any]:
    await runtime.context.submit_report(ReportDraft(title="Done", sections=()), StopReason.ANSWERED)
    return {}


async def _until_stopped(state: Any) -> str:
    return "write" if state["stop"] else "work"


def looping(work: Any, state: Any = Count, **changes: Any) -> Graph:
    """A graph that loops over one node."""

    def build() -> Any:
        graph = untyped(state, context_schema=RunContext)
        graph.add_node("work", work)
        graph.add_node("write", _write)
        graph.add_edge("__start__", "work")
        graph.add_conditional_edges("work", _until_stopped, ["work", "write"])
        graph.add_edge("write", "__end__")
        return graph

    return replace(counting, build=build, **changes)


async def _turn(state: Any, runtime: Any) -> dict[str, Any]:
    ctx: RunContext = runtime.context
    turn = state["turn"] + 1
    await ctx.begin_turn(turn)
    return {"stop": reason.value} if (reason := ctx.stop_reason()) else {"turn": turn}


async def good(state: Any, runtime: Any) -> dict[str, Any]:
    return await _turn(state, runtime)


async def by_the_clock(state: Any, runtime: Any) -> dict[str, Any]:
    if datetime.now(UTC).year < 1999:
        return {}
    return await _turn(state, runtime)


async def by_chance(state: Any, runtime: Any) -> dict[str, Any]:
    choice([1, 2])
    return await _turn(state, runtime)


async def by_its_own_import(state: Any, runtime: Any) -> dict[str, Any]:
    import time as clock

    clock.time()
    return await _turn(state, runtime)


def _deeper() -> str:
    return str(uuid.uuid4())


async def by_an_inner_call(state: Any, runtime: Any) -> dict[str, Any]:
    _deeper()
    return await _turn(state, runtime)


async def by_the_network(state: Any, runtime: Any) -> dict[str, Any]:
    import urllib.request

    if state["turn"] > 1_000:
        urllib.request.urlopen("https://example.org")  # noqa: ASYNC210
    return await _turn(state, runtime)


async def by_a_set(state: Any, runtime: Any) -> dict[str, Any]:
    for word in {"a", "b"}:
        str(word)
    return await _turn(state, runtime)


async def with_a_seed(state: Any, runtime: Any) -> dict[str, Any]:
    random.Random(runtime.context.run.seed).random()
    return await _turn(state, runtime)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (by_the_clock, "datetime.datetime.now"),
        (by_chance, "random"),
        (by_its_own_import, "time.time"),
        (by_an_inner_call, "uuid.uuid4"),
        (by_the_network, "urllib.request.urlopen"),
        (by_a_set, "set"),
    ],
)
async def test_what_is_not_the_same_twice_is_found_in_code(node: Any, message: str) -> None:
    results = [f for f in await find_graph_issues(looping(node)) if f.rule == "unsafe-to-repeat"]
    assert [message in f.explanation for f in results] == [True]
    assert results[0].location.startswith("testing/test_graph_checks.py:")
    assert results[0].remedy


@pytest.mark.parametrize("node", [good, with_a_seed])
async def test_a_good_loop_has_no_fault(node: Any) -> None:
    assert await find_graph_issues(looping(node)) == ()


def _heaped(_: RunInfo) -> dict[str, Any]:
    return {"turn": 0, "stop": "", "heap": []}


def _without_last(_: RunInfo) -> dict[str, Any]:
    return {"turn": 0, "stop": ""}


async def test_state_that_grows_is_an_error_in_a_loop() -> None:
    async def pile(state: Any, runtime: Any) -> dict[str, Any]:
        return {**await _turn(state, runtime), "heap": ["x" * 3_000]}

    graph = looping(pile, Heap, initial_state=_heaped)
    issues = await find_graph_issues(graph)
    assert kinds(issues) == {("growing-state", ERROR), ("state-size", ERROR)}
    assert "'heap'" in issues[0].location


async def test_state_over_the_limit_is_found() -> None:
    async def pile(state: Any, runtime: Any) -> dict[str, Any]:
        return {**await _turn(state, runtime), "last": "x" * 300_000}

    assert ("state-size", ERROR) in kinds(await find_graph_issues(looping(pile)))


async def test_a_loop_without_limits_is_found() -> None:
    async def endless(state: Any, runtime: Any) -> dict[str, Any]:
        return {"turn": state["turn"] + 1, "stop": "answered" if state["turn"] > 2 else ""}

    issues = await find_graph_issues(looping(endless, turn_counter=""))
    assert kinds(issues) == {("no-limit", ERROR), ("turn-key", WARNING)}


async def test_keys_that_a_run_does_not_begin_with_are_found() -> None:
    (result,) = await find_graph_issues(looping(good, initial_state=_without_last))
    assert (result.rule, result.location) == ("start", "state key 'last'")


async def test_tools_and_roles_that_are_not_declared_are_found() -> None:
    async def strange(state: Any, runtime: Any) -> dict[str, Any]:
        if state["turn"] > 1_000:
            await runtime.context.call_tool(ToolCall("frobnicate", {}))
            await runtime.context.call_role(SPEAKER, Ask(turn=1))
        return await _turn(state, runtime)

    assert kinds(await find_graph_issues(looping(strange, roles=()))) == {
        ("undeclared-tool", ERROR),
        ("undeclared-role", ERROR),
    }


def _numbered(inputs: Ask) -> tuple[Message, ...]:
    return (Message("system", (f"Turn {inputs.turn} of the run. " + "Speak in one word. " * 20,)),)


def _appending(inputs: Ask) -> tuple[Message, ...]:
    text = " ".join(f"(turn {n})" for n in range(inputs.turn))
    return Message("system", ("Speak in one word. " * 20,)), Message("user", (text,))


@pytest.mark.parametrize(("render", "rules"), [(_numbered, {"prefix"}), (_appending, set[str]())])
async def test_prompts_that_share_nothing_with_the_turn_before_are_found(render: Any, rules: set[str]) -> None:
    role = Role(
        "speaker", Ask, Say, render, lambda s: Headline(s.word), StepKind.PLAN, extractive=lambda g: Say(word="w")
    )

    async def speak(state: Any, runtime: Any) -> dict[str, Any]:
        message = await _turn(state, runtime)
        if "turn" in message:
            await runtime.context.call_role(role, Ask(turn=message["turn"]), turn=message["turn"])
        return message

    assert {finding.rule for finding in await find_graph_issues(looping(speak, roles=(role,)))} == rules


async def test_a_node_that_draws_anew_in_a_way_that_code_does_not_show_is_found_by_losing_its_worker() -> None:
    drawn = iter(range(10**6))

    async def restless(state: Any, runtime: Any) -> dict[str, Any]:
        await runtime.context.append_steps(StepDraft(StepKind.NOTE, f"{next(drawn)}"))
        return await _turn(state, runtime)

    assert ("unsafe-to-repeat", ERROR) in kinds(await find_graph_issues(looping(restless)))


async def test_a_graph_that_cannot_be_built_or_raises_is_told() -> None:
    def fail() -> Any:
        raise RuntimeError("no graph")

    async def raise_(state: Any, runtime: Any) -> dict[str, Any]:
        await _turn(state, runtime)
        raise ValueError("a fault")

    (built,) = await find_graph_issues(replace(counting, build=fail))
    (raised,) = await find_graph_issues(looping(raise_))
    assert (built.rule, raised.rule) == ("build", "rehearsal")
    assert "no graph" in built.explanation
    assert "a fault" in raised.explanation


async def test_a_role_that_needs_a_model_leaves_the_simulation_out() -> None:
    class Dumb(BaseModel):
        word: str

    role = Role("dumb", Ask, Dumb, lambda _: (), lambda d: Headline(d.word))
    assert kinds(await find_graph_issues(looping(good, roles=(role,)))) == {("no-rehearsal", WARNING)}


@pytest.mark.parametrize("name", OURS)
async def test_our_own_graphs_have_no_errors(name: str) -> None:
    graphs: Mapping[str, Graph] = open_registry()
    assert [str(finding) for finding in await find_graph_issues(graphs[name]) if finding.level == ERROR] == []


def kinds(results: tuple[GraphIssue, ...]) -> set[tuple[str, str]]:
    return {(finding.rule, finding.level) for finding in results}
