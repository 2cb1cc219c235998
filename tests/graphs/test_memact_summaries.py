"""Memory as action that sums up a full context: what is kept, left out and recorded."""

import pytest

from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tokens import SpanKind
from offing.core.trajectory import Fracture
from offing_graphs.memact import supo
from offing_graphs.memact.config import SUMMING_UP, TOKENS_FOR_A_SUMMARY, Config
from offing_graphs.memact.context import EDITS
from offing_graphs.memact.graph import configured
from offing_graphs.parts.measuring import tokens_of
from tests.graphs.memact_turns import DONE, SEARCH, acts, limits, prune, rows, run, summarising, summing, trained
from tests.graphs.stand_in import carry_out


async def test_a_full_context_is_summed_up_and_work_goes_on_from_question_and_latest_summary() -> None:
    flow = summing(1_200)
    ctx = run(engines=summarising(10), forms={"agent": "plain"})
    state = await carry_out(ctx, flow)
    assert ctx.report.reason == StopReason.ANSWERED
    assert state["summaries"] >= 2
    resets = [call for call in ctx.said if call.fracture is Fracture.COMPACTION]
    assert len(resets) == state["summaries"]
    start = ctx.said[0].messages
    for n, call in enumerate(resets, 1):
        assert len(call.messages) == 2
        assert call.messages[0] == start[0]
        assert call.messages[1].text.startswith(start[1].text)
        assert f"summary {n} of" in call.messages[1].text
        assert f"summary {n - 1} of" not in call.messages[1].text


async def test_no_prompt_is_longer_than_the_window_and_no_action_is_asked_for_in_a_full_context() -> None:
    for room in (500, 900, 2_000, 4_000):
        config = limits(room)
        ctx = run(engines=summarising(12), budget=Budget(turns=14))
        await carry_out(ctx, configured("small", "", "", config))
        for (_, asked), (_, messages) in zip(ctx.given, ctx.prompts, strict=True):
            length = tokens_of(*(p for m in messages for p in m.parts))
            assert length <= (config.window if asked.ask == "summary" else config.limit)


async def test_the_pair_that_did_not_fit_is_on_record_and_its_tool_ran_once() -> None:
    ctx = run(engines=summarising(10), forms={"agent": "plain"})
    await carry_out(ctx, summing(1_200))
    left_out = [s.payload for s in ctx.steps if s.kind is StepKind.MEMORY]
    assert left_out
    assert {p["op"] for p in left_out} == {"discard"}
    for payload in left_out:
        assert not payload["trainable"]
        pair = [ctx.steps[int(payload[name]) - 1].kind for name in ("action", "observation")]
        assert pair == [StepKind.TURN, StepKind.TOOL]
    assert len(ctx.calls) == sum(1 for call in ctx.said if call.text.startswith("<action>"))


async def test_summaries_close_their_segment_and_every_completion_is_in_one_segment() -> None:
    ctx = run(engines=summarising(10), forms={"agent": "plain"})
    state = await carry_out(ctx, summing(1_200))
    segments = rows(ctx.said)
    assert [text for row in segments for text in trained(row)] == [call.text for call in ctx.said]
    kinds = [[s.kind for call in row for s in call.spans] for row in segments]
    assert sum(k.count(SpanKind.SUMMARY) for k in kinds) == state["summaries"]
    assert all(SpanKind.SUMMARY not in k[:-1] for k in kinds)


async def test_after_the_last_summary_a_full_context_is_the_end() -> None:
    ctx = run(engines=summarising(99), budget=Budget(turns=40))
    state = await carry_out(ctx, summing(1_200, summaries=2))
    assert state["summaries"] == 2
    assert ctx.report.reason == StopReason.CONTEXT_LIMIT
    assert ctx.turns < 40


async def test_without_an_overflow_it_is_a_plain_loop_with_one_segment() -> None:
    ctx = run(engines=summarising(4), forms={"agent": "plain"})
    state = await carry_out(ctx, supo)
    assert state["summaries"] == 0
    assert len(rows(ctx.said)) == 1


async def test_something_else_than_the_summary_that_was_asked_for_ends_the_run() -> None:
    ctx = run(engines=acts(SEARCH), budget=Budget(turns=40))
    await carry_out(ctx, summing(1_200))
    assert ctx.report.reason == StopReason.INVALID_OUTPUT


async def test_who_sums_up_has_no_edits() -> None:
    ctx = run(engines=acts(SEARCH, prune("r1"), DONE))
    await carry_out(ctx, supo)
    assert not [t for t in ctx.given[0][1].tools if t.name in EDITS]
    assert [e.id for e in ctx.given[-1][1].records] == ["r1", "r2"]
    assert not ctx.given[-1][1].records[1].ok


def test_a_window_without_room_for_the_summary_is_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        Config(window=1_000, observation=100, edits=False, full=900, summaries=1)
    assert SUMMING_UP.full
    assert SUMMING_UP.window - SUMMING_UP.full >= TOKENS_FOR_A_SUMMARY
