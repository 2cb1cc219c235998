"""Memory as action that sums up a full context: what is kept, left out and recorded."""

import pytest

from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tokens import SpanKind
from offing.core.trajectory import BoundaryReason
from offing_graphs.memact import supo
from offing_graphs.memact.context import MIN_SUMMARY_TOKENS, SUMMARIZING_CONFIG, ContextConfig
from offing_graphs.memact.graph import configure_graph
from offing_graphs.memact.schemas import EDIT_ACTIONS
from offing_graphs.shared.token_estimate import estimate_tokens
from tests.graphs.in_memory_context import carry_out
from tests.graphs.memact.builders import DONE, SEARCH, acts, limits, prune, rows, run, summarizing, summing, trained


async def test_a_full_context_is_summed_up_and_work_continues_from_question_and_latest_summary() -> None:
    graph = summing(1_200)
    ctx = run(engines=summarizing(10), prompt_formats={"agent": "text"})
    state = await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.ANSWERED
    assert state["summaries"] >= 2
    resets = [call for call in ctx.role_calls if call.boundary_reason is BoundaryReason.COMPACTION]
    assert len(resets) == state["summaries"]
    start = ctx.role_calls[0].messages
    for n, call in enumerate(resets, 1):
        assert len(call.messages) == 2
        assert call.messages[0] == start[0]
        assert call.messages[1].text.startswith(start[1].text)
        assert f"summary {n} of" in call.messages[1].text
        assert f"summary {n - 1} of" not in call.messages[1].text


async def test_no_prompt_is_longer_than_the_window_and_no_action_is_asked_for_in_a_full_context() -> None:
    for room in (500, 900, 2_000, 4_000):
        config = limits(room)
        ctx = run(engines=summarizing(12), budget=Budget(max_turns=14))
        await carry_out(ctx, configure_graph("small", "", "", config))
        for (_, request), (_, messages) in zip(ctx.role_inputs, ctx.prompts, strict=True):
            length = estimate_tokens(*(p for m in messages for p in m.parts))
            assert length <= (config.max_context_tokens if request.request == "summary" else config.max_prompt_tokens)


async def test_the_pair_that_did_not_fit_is_on_record_and_its_tool_ran_once() -> None:
    ctx = run(engines=summarizing(10), prompt_formats={"agent": "text"})
    await carry_out(ctx, summing(1_200))
    left_out = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert left_out
    assert {p["op"] for p in left_out} == {"discard"}
    for payload in left_out:
        assert not payload["trainable"]
        pair = [ctx.steps[int(payload[name]) - 1].kind for name in ("action", "observation")]
        assert pair == [StepKind.ROLE_CALL, StepKind.TOOL_RESULT]
    assert len(ctx.calls) == sum(1 for call in ctx.role_calls if call.text.startswith("<action>"))


async def test_summaries_close_their_segment_and_every_completion_is_in_one_segment() -> None:
    ctx = run(engines=summarizing(10), prompt_formats={"agent": "text"})
    state = await carry_out(ctx, summing(1_200))
    segments = rows(ctx.role_calls)
    assert [text for row in segments for text in trained(row)] == [call.text for call in ctx.role_calls]
    kinds = [[s.kind for call in row for s in call.spans] for row in segments]
    assert sum(k.count(SpanKind.SUMMARY) for k in kinds) == state["summaries"]
    assert all(SpanKind.SUMMARY not in k[:-1] for k in kinds)


async def test_after_the_last_summary_a_full_context_is_the_end() -> None:
    ctx = run(engines=summarizing(99), budget=Budget(max_turns=40))
    state = await carry_out(ctx, summing(1_200, summaries=2))
    assert state["summaries"] == 2
    assert ctx.report.stop_reason == StopReason.CONTEXT_LIMIT
    assert ctx.turns < 40


async def test_without_an_overflow_it_is_a_plain_loop_with_one_segment() -> None:
    ctx = run(engines=summarizing(4), prompt_formats={"agent": "text"})
    state = await carry_out(ctx, supo)
    assert state["summaries"] == 0
    assert len(rows(ctx.role_calls)) == 1


async def test_something_else_than_the_summary_that_was_asked_for_ends_the_run() -> None:
    ctx = run(engines=acts(SEARCH), budget=Budget(max_turns=40))
    await carry_out(ctx, summing(1_200))
    assert ctx.report.stop_reason == StopReason.INVALID_OUTPUT


async def test_who_sums_up_has_no_edits() -> None:
    ctx = run(engines=acts(SEARCH, prune("r1"), DONE))
    await carry_out(ctx, supo)
    assert not [t for t in ctx.role_inputs[0][1].tools if t.name in EDIT_ACTIONS]
    assert [e.id for e in ctx.role_inputs[-1][1].records] == ["r1", "r2"]
    assert not ctx.role_inputs[-1][1].records[1].ok


def test_a_context_too_small_for_the_summary_is_rejected() -> None:
    with pytest.raises(ValueError, match="window"):
        ContextConfig(
            max_context_tokens=1_000,
            max_observation_tokens=100,
            allows_edits=False,
            summarize_at_tokens=900,
            max_summaries=1,
        )
    assert SUMMARIZING_CONFIG.summarize_at_tokens
    assert SUMMARIZING_CONFIG.max_context_tokens - SUMMARIZING_CONFIG.summarize_at_tokens >= MIN_SUMMARY_TOKENS
