"""Memory as action: limits, failures and stops, and the report that they leave."""

from dataclasses import replace
from typing import Any

import pytest

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing_graphs.memact import graph, supo
from offing_graphs.memact.config import EDITING
from offing_graphs.memact.graph import configured
from offing_graphs.memact.shapes import Act, AgentInput
from offing_graphs.parts.measuring import tokens_of
from tests.graphs.memact_turns import DONE, SEARCH, acts, prune, run
from tests.graphs.stand_in import carry_out, failing


async def test_a_turn_limit_of_zero_goes_straight_to_the_report() -> None:
    ctx = run(budget=Budget(turns=0))
    await carry_out(ctx, graph)
    assert ctx.kinds() == [StepKind.REPORT]
    assert ctx.report.reason == StopReason.TURN_LIMIT


async def test_at_the_turn_limit_the_agent_is_asked_once_more_for_an_answer() -> None:
    def agent(given: AgentInput) -> Act:
        return DONE if given.ask == "answer" else SEARCH

    ctx = run(budget=Budget(turns=2), engines={"agent": agent})
    await carry_out(ctx, graph)
    assert ctx.turns == 2
    assert ctx.report.reason == StopReason.TURN_LIMIT
    assert ctx.report.status == "partial"
    assert ctx.report.answer
    assert ctx.report.answer.text == "Twice a year."


async def test_an_agent_that_does_not_answer_even_then_leaves_a_report_of_quotes() -> None:
    ctx = run(budget=Budget(turns=2), engines=acts(SEARCH))
    await carry_out(ctx, graph)
    assert ctx.report.reason == StopReason.TURN_LIMIT
    assert ctx.report.citations


async def test_a_context_over_its_window_ends_the_run_as_a_violation() -> None:
    small = configured("small", "", "", replace(EDITING, window=3_000))
    ctx = run(engines=acts(SEARCH), budget=Budget(turns=50))
    await carry_out(ctx, small)
    assert ctx.report.reason == StopReason.CONTEXT_LIMIT
    assert ctx.turns < 12
    assert max(tokens_of(*(p for m in messages for p in m.parts)) for _, messages in ctx.prompts) <= 3_000


async def test_an_agent_that_keeps_its_context_short_is_not_ended_by_its_window() -> None:
    def tidy(given: AgentInput) -> Act:
        if given.turn > 40:
            return DONE
        return prune(*(e.id for e in given.records)) if len(given.records) > 1 else SEARCH

    small = configured("small", "", "", replace(EDITING, window=6_000))
    ctx = run(engines={"agent": tidy}, budget=Budget(turns=60))
    state = await carry_out(ctx, small)
    assert ctx.report.reason == StopReason.ANSWERED
    assert len(state["records"]) <= 9


FAILURES = [
    (FailureKind.OUT_OF_BUDGET, "token_limit", StopReason.TOKEN_LIMIT),
    (FailureKind.INVALID_OUTPUT, "", StopReason.INVALID_OUTPUT),
    (FailureKind.OVERLOADED, "", StopReason.PROVIDER_DOWN),
    (FailureKind.CONTEXT_TOO_LONG, "", StopReason.CONTEXT_LIMIT),
]


@pytest.mark.parametrize(("kind", "stop", "reason"), FAILURES)
@pytest.mark.parametrize("flow", [graph, supo], ids=lambda g: g.name)
async def test_whatever_fails_there_is_a_partial_report_with_the_reason(
    flow: Any, kind: FailureKind, stop: str, reason: StopReason
) -> None:
    ctx = run(engines={"agent": failing(kind, stop)})
    await carry_out(ctx, flow)
    assert ctx.report.reason == reason
    assert ctx.report.status == "partial"


@pytest.mark.parametrize("asked", range(4))
async def test_every_node_asks_whether_to_stop_before_it_does_anything(asked: int) -> None:
    ctx = run(stops=[None] * asked + [StopReason.TOKEN_LIMIT], engines=acts(SEARCH))
    await carry_out(ctx, graph)
    expected = [StepKind.TURN, StepKind.TOOL] * 2
    assert [k for k in ctx.kinds() if k is not StepKind.REPORT] == expected[:asked]
    assert ctx.report.reason == StopReason.TOKEN_LIMIT
