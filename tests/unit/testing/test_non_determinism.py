"""A node that asks for something else after a crash: no new side effect, and no silence about what is made anew."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

import offing.kernel.recorded_calls
from offing.core.errors import NonDeterminismError
from offing.core.step import CallKey, StepDraft, StepKind, step_from_draft
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.kernel.call_key import NodeCall, digest_request
from offing.kernel.recorded_calls import CallsSinceCheckpoint, Intent
from offing.sdk import Graph, RunContext, SideEffect, ToolArgs, ToolCall, ToolOutput, tool
from offing.testing import SimulatedRun, simulate_run
from tests.workers.graphs import untyped


class Args(ToolArgs, frozen=True):
    to: str


sent: list[str] = []


@tool(side_effect=SideEffect.AT_MOST_ONCE)
async def send(args: Args) -> ToolOutput:
    """Send a letter."""
    sent.append(args.to)
    return ToolOutput({"to": args.to}, "sent")


@tool()
async def look_up(args: Args) -> ToolOutput:
    """Look somebody up."""
    await asyncio.sleep(0)
    return ToolOutput({"to": args.to}, "found")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    sent.clear()
    monkeypatch.setattr(offing.kernel.recorded_calls, "GRACE_SECONDS", 0.05)


def doing(act: Callable[[RunContext], Awaitable[object]]) -> Graph:
    """A graph of one node."""

    async def node(state: Any, runtime: Any) -> dict[str, Any]:
        await act(runtime.context)
        return {"done": True}

    def build() -> Any:
        graph = untyped(dict, context_schema=RunContext)
        graph.add_node("act", node)
        graph.add_edge("__start__", "act")
        return graph

    return Graph("doing", "", "", "1", build, lambda _: {"done": False}, (), tools=(send, look_up))


FREELY = ToolPolicy(
    rules=(ToolRule(tool="send", allow_other_args=True), ToolRule(tool="look_up", allow_other_args=True))
)
"""Nobody is asked."""


async def simulate_each_loss(graph: Callable[[], Graph]) -> list[SimulatedRun | NonDeterminismError]:
    """What becomes of a run whose worker crashes at each of its moments in turn."""
    whole = await simulate_run(graph(), "Write", tool_policy=FREELY)
    results: list[SimulatedRun | NonDeterminismError] = []
    for moment in range(whole.loss_points):
        sent.clear()
        try:
            results.append(await simulate_run(graph(), "Write", tool_policy=FREELY, crash_at=moment))
        except NonDeterminismError as error:
            results.append(error)
        assert len(sent) <= 1, f"crashed at point {moment}, letters to {sent}"
    return results


draws = count()


def sending_to_somebody_else_each_time() -> Graph:

    async def act(ctx: RunContext) -> None:
        await ctx.call_tool(ToolCall("send", {"to": f"friend {next(draws)}"}))

    return doing(act)


async def test_an_effect_is_not_had_a_second_time_under_other_arguments() -> None:
    errors = [e for e in await simulate_each_loss(sending_to_somebody_else_each_time) if isinstance(e, Exception)]
    # Lost once the effect was declared, once it was had, once it was recorded, and before the end of its node was kept.
    assert len(errors) == 4
    for error in errors:
        request, recorded = re.findall(r'send\(\{"to":"friend (\d+)"\}\)', str(error))
        assert int(request) == int(recorded) + 1


async def test_a_person_who_allowed_one_call_has_not_allowed_another() -> None:
    """The node that waited runs again; asking for the next letter each time, it would ask for ever."""
    with pytest.raises(NonDeterminismError, match=r"May the run use send\?.*friend"):
        await simulate_run(sending_to_somebody_else_each_time(), "Write", approves_tools=True)
    assert sent == []


async def test_a_pure_call_is_made_anew_and_its_step_says_so() -> None:
    draws = count()

    async def act(ctx: RunContext) -> None:
        await ctx.call_tool(ToolCall("look_up", {"to": f"friend {next(draws)}"}))
        await ctx.call_tool(ToolCall("look_up", {"to": "the same"}))

    run = await simulate_run(doing(act), "Find", crash_at=3)
    first, same, again = run.steps
    assert again.payload["args"] != first.payload["args"]
    assert again.payload["anew"]["instead_of"] == [first.seq]
    assert "repeated, because step 1 recorded a different request" in again.detail
    assert "anew" not in same.payload


async def test_calls_side_by_side_may_come_in_another_order_after_a_crash() -> None:
    """The one with an effect waits for its neighbors to ask for what is on record, and is then made."""
    orders = count()

    def graph() -> Graph:
        async def act(ctx: RunContext) -> None:
            calls = [ToolCall("look_up", {"to": "a"}), ToolCall("send", {"to": "b"}), ToolCall("look_up", {"to": "c"})]
            turned = calls[::-1] if next(orders) % 2 else calls
            await asyncio.gather(*(ctx.call_tool(call) for call in turned))

        return doing(act)

    for run in await simulate_each_loss(graph):
        assert isinstance(run, SimulatedRun), run
        assert sorted(r.args["to"] for r in run.tool_results) == ["a", "b", "c"]
        assert not any("anew" in step.payload for step in run.steps)


def letter(to: str) -> NodeCall:
    request = ("send", {"to": to})
    return NodeCall(CallKey(1, "act", 0, digest_request(request)), request, "act/0")


@pytest.mark.parametrize("kind", [StepKind.TOOL_RESULT, StepKind.INPUT_REQUEST])
async def test_what_another_version_recorded_is_read_back_and_is_no_difference(kind: StepKind) -> None:
    payload = {"tool": "send", "args": {"to": "Ada"}, "prompt": "Send it?", "detail": ""}
    draft = StepDraft(kind, "Ada", payload, call_key=letter("Ada").key)
    steps = {letter("Ada").key: step_from_draft(draft, 7, datetime.now(UTC), 1)}
    checks = [CallsSinceCheckpoint.check_side_effect, CallsSinceCheckpoint.check_input_request]
    check = checks[kind is StepKind.INPUT_REQUEST]
    with pytest.raises(NonDeterminismError):
        await check(CallsSinceCheckpoint(steps, upgraded_at=6), letter("Bob"))
    await check(CallsSinceCheckpoint(steps, upgraded_at=8), letter("Bob"))
    assert CallsSinceCheckpoint(steps, upgraded_at=8).take_step(letter("Ada"), frozenset({kind})) is not None


async def test_a_side_effect_that_had_begun_in_another_version_is_a_difference() -> None:
    calls = CallsSinceCheckpoint({}, [Intent(letter("Ada").key, "send", {"to": "Ada"})], upgraded_at=8)
    with pytest.raises(NonDeterminismError):
        await calls.check_side_effect(letter("Bob"))


def test_a_call_that_another_version_recorded_before_keys_had_digests_is_not_read_back() -> None:
    key = replace(letter("Ada").key, digest="")
    steps = {key: step_from_draft(StepDraft(StepKind.TOOL_RESULT, "Ada", {}, call_key=key), 7, datetime.now(UTC), 1)}
    assert (
        CallsSinceCheckpoint(steps, upgraded_at=8).take_step(letter("Bob"), frozenset({StepKind.TOOL_RESULT})) is None
    )
    assert (
        CallsSinceCheckpoint(steps, upgraded_at=6).take_step(letter("Bob"), frozenset({StepKind.TOOL_RESULT}))
        is not None
    )
