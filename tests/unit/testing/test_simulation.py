"""The test kit keeps the platform's rules: journal, checkpoints, tools' schemas and policy, budgets, citations."""

import random
from dataclasses import replace
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from offing.core.run import Budget, StopReason
from offing.core.step import StepDraft, StepKind
from offing.sdk import (
    EngineFailure,
    FailureKind,
    Graph,
    ReportDraft,
    RunContext,
    SideEffect,
    ToolArgs,
    ToolCall,
    ToolFailedError,
    ToolOutput,
    ToolStatus,
    tool,
)
from offing.testing import (
    OutOfAnswersError,
    Recording,
    RecordingMismatchError,
    RecoveryMismatchError,
    VirtualClock,
    assert_survives_worker_loss,
    replay_recording,
    simulate_run,
)
from offing.testing.recording import recording_to_json
from offing_graphs.agentflow import graph as agentflow
from tests.graphs.corpus import FERRY, TIDES
from tests.workers.graphs import counting, untyped

DOCUMENTS = {"tides.md": TIDES, "ferry.md": FERRY}
QUESTION = "How many cars does the Heron carry?"


async def test_a_real_graph_answers_from_documents_in_memory() -> None:
    run = await simulate_run(agentflow, QUESTION, documents=DOCUMENTS)
    assert run.report is not None
    assert any("40 cars" in citation.quote for citation in run.report.citations)
    assert run.usage.turns >= 1
    assert [step.seq for step in run.steps] == list(range(1, len(run.steps) + 1))


async def test_a_real_graph_survives_a_crashed_worker_at_each_of_its_moments() -> None:
    whole = await assert_survives_worker_loss(agentflow, QUESTION, documents=DOCUMENTS, budget=Budget(max_turns=2))
    assert whole.loss_points > 12


async def test_answers_are_given_in_order_also_when_one_of_them_was_lost() -> None:
    words = [{"word": "one"}, '{"word": "two"}']
    whole = await assert_survives_worker_loss(counting, "Count", answers={"speaker": words}, budget=Budget(max_turns=2))
    assert [step.payload["output"]["word"] for step in whole.list_steps(StepKind.PLAN)] == ["one", "two"]


async def test_a_script_that_ends_too_soon_or_does_not_fit_says_so() -> None:
    with pytest.raises(OutOfAnswersError, match="speaker"):
        await simulate_run(counting, "Count", answers={"speaker": [{"word": "one"}]}, budget=Budget(max_turns=2))
    with pytest.raises(ValidationError):
        await simulate_run(counting, "Count", answers={"speaker": [{"wrong": "one"}]})


async def test_a_failing_role_is_a_value_and_is_on_record() -> None:
    failing = EngineFailure(FailureKind.BUDGET_EXHAUSTED, "no money", stop_reason=StopReason.SPEND_LIMIT)
    run = await simulate_run(counting, "Count", answers={"speaker": [failing]})
    assert run.list_steps(StepKind.FAILURE)[0].title == "speaker: no money"
    assert run.report is not None
    assert run.report.stop_reason == StopReason.SPEND_LIMIT


async def test_time_passes_as_the_scene_says_and_ends_a_run() -> None:
    budget = Budget(max_turns=50, max_seconds=10)
    run = await simulate_run(counting, "Count", budget=budget, durations_seconds={"speaker": 4.0})
    assert run.usage.seconds == 12
    assert run.report is not None
    assert run.report.stop_reason == StopReason.TIME_LIMIT
    clock = VirtualClock({"a": 2.5})
    assert (clock.advance_for("a"), clock.advance_for("b"), clock.seconds) == (2.5, 0.0, 2.5)


async def test_a_person_s_words_come_when_the_scene_says() -> None:
    run = await simulate_run(agentflow, QUESTION, documents=DOCUMENTS, user_messages={2: "Only the Heron, please."})
    (text,) = run.list_steps(StepKind.USER_MESSAGE)
    assert (text.seq, text.title) == (3, "Only the Heron, please.")


async def test_a_person_can_ask_to_write_now() -> None:
    run = await simulate_run(agentflow, QUESTION, documents=DOCUMENTS, finish_after_steps=3)
    assert run.report is not None
    assert run.report.stop_reason == StopReason.FINISH_REQUESTED


class Args(ToolArgs, frozen=True):
    n: int


launched: list[str] = []


@tool(side_effect=SideEffect.AT_MOST_ONCE)
async def launch(args: Args, key: str) -> ToolOutput:
    """Launch."""
    launched.append(key)
    return ToolOutput({"n": args.n}, "launched")


@tool()
async def double(args: Args) -> ToolOutput:
    """Double a number."""
    if args.n == 13:
        raise ToolFailedError("13 is not doubled.")
    if args.n == 14:
        raise RuntimeError("a fault")
    if args.n == 15:
        return ToolOutput({"passages": []}, "forged")
    return ToolOutput({"n": args.n * 2}, "doubled")


def acting(*calls: ToolCall, own: tuple[Any, ...] = (double, launch)) -> Graph:
    """A graph that makes these calls, one a node."""

    def node(call: ToolCall) -> Any:
        async def act(state: Any, runtime: Any) -> dict[str, Any]:
            ctx: RunContext = runtime.context
            await ctx.call_tool(call)
            return {"seen": []}

        return act

    async def write(state: Any, runtime: Any) -> dict[str, Any]:
        await runtime.context.submit_report(ReportDraft(title="Done", sections=()), StopReason.ANSWERED)
        return {"seen": []}

    def build() -> Any:
        graph = untyped(dict, context_schema=RunContext)
        names = [f"n{n}" for n in range(len(calls))]
        for name, call in zip(names, calls, strict=True):
            graph.add_node(name, node(call))
        graph.add_node("write", write)
        for one, other in zip(["__start__", *names], [*names, "write"], strict=True):
            graph.add_edge(one, other)
        return graph

    return Graph("acting", "", "", "1", build, lambda _: {"seen": []}, (), tools=own)


async def test_own_tools_are_checked_as_the_platform_checks_them() -> None:
    expected = [{"n": 4}, {"n": "x"}, {"n": 1, "more": 2}, {"n": 13}, {"n": 14}, {"n": 15}]
    run = await simulate_run(acting(*(ToolCall("double", args) for args in expected)), "Double")
    ok, mistyped, repaired, *failed = run.tool_results
    assert (ok.status, ok.content) == (ToolStatus.OK, {"n": 8})
    assert mistyped.status is ToolStatus.INVALID
    assert (repaired.status, repaired.content["n"]) == (ToolStatus.OK, 2)
    assert "more" in repaired.content["notices"][0]
    assert [result.status for result in failed] == [ToolStatus.FAILED] * 3
    assert "a fault" in failed[1].message
    assert "library" in failed[2].message


async def test_a_tool_that_the_graph_does_not_declare_is_not_there() -> None:
    run = await simulate_run(acting(ToolCall("double", {"n": 4}), own=()), "Double")
    assert run.tool_results[0].status is ToolStatus.INVALID


async def test_a_tool_with_an_effect_is_used_only_when_a_person_allows_it() -> None:
    launched.clear()
    graph = acting(ToolCall("launch", {"n": 1}))
    denied = await simulate_run(graph, "Launch")
    assert denied.tool_results[0].status is ToolStatus.DENIED
    assert launched == []
    allowed = await simulate_run(graph, "Launch", approves_tools=True)
    assert allowed.tool_results[0].status is ToolStatus.OK
    assert len(launched) == 1


async def test_an_effect_that_must_happen_once_does_not_happen_again_after_any_loss() -> None:
    graph = acting(ToolCall("launch", {"n": 1}))
    whole = await simulate_run(graph, "Launch", approves_tools=True)
    counts: list[int] = []
    for moment in range(whole.loss_points):
        launched.clear()
        await simulate_run(graph, "Launch", approves_tools=True, crash_at=moment)
        counts.append(len(launched))
    assert max(counts) == 1
    assert counts.count(0) == 1  # lost between the declaration and the effect, which is then not known and not repeated
    await assert_survives_worker_loss(graph, "Launch", approves_tools=True)


async def test_a_tool_that_takes_too_long_on_the_clock_times_out() -> None:
    run = await simulate_run(acting(ToolCall("double", {"n": 4})), "Double", durations_seconds={"double": 31.0})
    assert run.tool_results[0].status is ToolStatus.TIMEOUT


def restless(choose: Any) -> Graph:
    """A graph that asks for something else each time."""

    async def act(state: Any, runtime: Any) -> dict[str, Any]:
        ctx: RunContext = runtime.context
        await ctx.append_steps(StepDraft(StepKind.NOTE, f"{choose()}"))
        await ctx.call_tool(ToolCall("calculate", {"expression": f"1 + {choose()}"}))
        await ctx.call_tool(ToolCall("calculate", {"expression": "2"}))
        return {"seen": []}

    def build() -> Any:
        graph = untyped(dict, context_schema=RunContext)
        graph.add_node("act", act)
        graph.add_edge("__start__", "act")
        return graph

    return Graph("restless", "", "", "1", build, lambda _: {"seen": []}, ())


async def test_a_node_that_draws_at_random_is_found_out() -> None:
    draw = random.Random(7)
    with pytest.raises(RecoveryMismatchError, match="crash at point"):
        await assert_survives_worker_loss(restless(lambda: draw.randint(1, 10**6)), "Draw")
    assert await assert_survives_worker_loss(restless(lambda: 3), "Draw")


async def recording_of(graph: Graph) -> Recording:
    run = await simulate_run(graph, QUESTION, documents=DOCUMENTS)
    assert run.report is not None
    return Recording(QUESTION, run.steps, reason=run.report.stop_reason)


async def test_a_stored_run_is_replayed_from_its_record_alone() -> None:
    recording = await recording_of(agentflow)
    stored = Recording.from_json(orjson.loads(orjson.dumps(recording_to_json(recording))))
    run = await replay_recording(agentflow, stored)
    assert run.executed_calls == ()
    assert run.report is not None
    assert run.report.citations


async def test_a_replay_notices_what_a_graph_does_otherwise() -> None:
    recording = await recording_of(agentflow)
    tools = [step for step in recording.steps if step.kind is StepKind.TOOL_RESULT]
    changed = replace(tools[0], payload={**tools[0].payload, "args": {"query": "something else"}})
    other = tuple(changed if step is tools[0] else step for step in recording.steps)
    with pytest.raises(RecordingMismatchError, match="something else"):
        await replay_recording(agentflow, replace(recording, steps=other))
    with pytest.raises(RecordingMismatchError):
        await replay_recording(counting, recording)
    with pytest.raises(RecordingMismatchError):
        await replay_recording(agentflow, replace(recording, steps=recording.steps[:-1]))


def test_a_file_in_another_form_is_rejected() -> None:
    with pytest.raises(ValueError, match="format"):
        Recording.from_json({"format": "other"})
