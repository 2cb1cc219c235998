"""Memory as action: limits, failures and stops, and the report that they leave."""

from dataclasses import replace
from typing import Any

import pytest

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing_graphs.memact import graph, supo
from offing_graphs.memact.context import EDITING_CONFIG
from offing_graphs.memact.graph import configure_graph
from offing_graphs.memact.schemas import Act, AgentInput
from offing_graphs.shared.token_estimate import estimate_tokens
from tests.graphs.in_memory_context import carry_out, failing
from tests.graphs.memact.builders import DONE, SEARCH, acts, prune, run


async def test_a_turn_limit_of_zero_goes_straight_to_the_report() -> None:
    ctx = run(budget=Budget(max_turns=0))
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT


async def test_at_the_turn_limit_the_agent_is_asked_once_more_for_an_answer() -> None:
    def agent(inputs: AgentInput) -> Act:
        return DONE if inputs.request == "answer" else SEARCH

    ctx = run(budget=Budget(max_turns=2), engines={"agent": agent})
    await carry_out(ctx, graph)
    assert ctx.turns == 2
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT
    assert ctx.report.status == "partial"
    assert ctx.report.answer
    assert ctx.report.answer.text == "Twice a year."


async def test_an_agent_that_does_not_answer_even_then_leaves_a_report_of_quotes() -> None:
    ctx = run(budget=Budget(max_turns=2), engines=acts(SEARCH))
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.TURN_LIMIT
    assert ctx.report.citations


async def test_a_context_over_its_window_ends_the_run_as_a_violation() -> None:
    small = configure_graph("small", "", "", replace(EDITING_CONFIG, max_context_tokens=3_000))
    ctx = run(engines=acts(SEARCH), budget=Budget(max_turns=50))
    await carry_out(ctx, small)
    assert ctx.report.stop_reason == StopReason.CONTEXT_LIMIT
    assert ctx.turns < 12
    assert max(estimate_tokens(*(p for m in messages for p in m.parts)) for _, messages in ctx.prompts) <= 3_000


async def test_an_agent_that_keeps_its_context_short_is_not_ended_by_its_window() -> None:
    def tidy(inputs: AgentInput) -> Act:
        if inputs.turn > 40:
            return DONE
        return prune(*(e.id for e in inputs.records)) if len(inputs.records) > 1 else SEARCH

    small = configure_graph("small", "", "", replace(EDITING_CONFIG, max_context_tokens=6_000))
    ctx = run(engines={"agent": tidy}, budget=Budget(max_turns=60))
    state = await carry_out(ctx, small)
    assert ctx.report.stop_reason == StopReason.ANSWERED
    assert len(state["records"]) <= 9


FAILURES = [
    (FailureKind.BUDGET_EXHAUSTED, "token_limit", StopReason.TOKEN_LIMIT),
    (FailureKind.INVALID_OUTPUT, "", StopReason.INVALID_OUTPUT),
    (FailureKind.OVERLOADED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.CONTEXT_TOO_LONG, "", StopReason.CONTEXT_LIMIT),
]


@pytest.mark.parametrize(("kind", "stop", "reason"), FAILURES)
@pytest.mark.parametrize("built_graph", [graph, supo], ids=lambda g: g.name)
async def test_after_any_failure_there_is_a_partial_report_with_the_reason(
    built_graph: Any, kind: FailureKind, stop: str, reason: StopReason
) -> None:
    ctx = run(engines={"agent": failing(kind, stop)})
    await carry_out(ctx, built_graph)
    assert ctx.report.stop_reason == reason
    assert ctx.report.status == "partial"


@pytest.mark.parametrize("nth_request", range(4))
async def test_every_node_asks_whether_to_stop_before_it_does_anything(nth_request: int) -> None:
    ctx = run(stops=[None] * nth_request + [StopReason.TOKEN_LIMIT], engines=acts(SEARCH))
    await carry_out(ctx, graph)
    expected = [StepKind.ROLE_CALL, StepKind.TOOL_RESULT] * 2
    assert [k for k in ctx.kinds() if k is not StepKind.REPORT] == expected[:nth_request]
    assert ctx.report.stop_reason == StopReason.TOKEN_LIMIT
