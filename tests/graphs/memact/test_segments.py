"""Memory as action: every completion is in one segment, and segments end with their edit."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.core.tokens import SpanKind
from offing.core.trajectory import BoundaryReason
from offing_graphs.memact import graph
from offing_graphs.memact.context import EDITING_CONFIG, build_record_id
from offing_graphs.memact.graph import configure_graph
from offing_graphs.memact.schemas import Act
from tests.graphs.in_memory_context import carry_out
from tests.graphs.memact.builders import DONE, SEARCH, acts, prune, rows, run, trained, write

EDITED = (SEARCH, SEARCH, prune("r1", note="n"), prune("r77"), write("w"), SEARCH, prune("r3", "r2"), SEARCH, DONE)


@pytest.mark.parametrize("edit", [EDITED, (SEARCH, DONE), (SEARCH, prune("r1"), prune("r2"), DONE)])
async def test_every_completion_is_in_exactly_one_segment_and_segments_end_with_their_edit(
    edit: tuple[Act, ...],
) -> None:
    ctx = run(engines=acts(*edit), prompt_formats={"agent": "text"})
    await carry_out(ctx, graph)
    segments = rows(ctx.role_calls)
    assert [text for row in segments for text in trained(row)] == [call.text for call in ctx.role_calls]
    effective = [s for s in ctx.steps if s.kind is StepKind.MEMORY and s.payload["deleted"]]
    assert len(segments) == len(effective) + 1
    for row in segments[:-1]:
        assert [s.kind for s in row[-1].spans] == [SpanKind.MEMORY_EDIT]
    assert [row[0].boundary_reason for row in segments[1:]] == [BoundaryReason.MEMORY_EDIT] * len(effective)


async def test_a_message_names_its_turn_only_in_the_segment_in_which_it_was_sampled() -> None:
    ctx = run(engines=acts(*EDITED), prompt_formats={"agent": "text"})
    await carry_out(ctx, graph)
    for row in rows(ctx.role_calls):
        first = len(row[0].messages)
        for call in row:
            assert not any(m.turn for m in call.messages[:first])
            own = [m for m in call.messages[first:] if m.role == "assistant"]
            known = {c.seq: c.text for c in row}
            assert all(known[m.turn] == m.text for m in own)


async def test_each_record_says_how_many_steps_are_left_and_the_conversation_still_only_grows() -> None:
    text, engines = {"agent": "text"}, acts(SEARCH, SEARCH, write("w"), SEARCH)
    ctx = run(engines=engines, budget=Budget(max_turns=4), prompt_formats=text)
    state = await carry_out(ctx, graph)
    prompts = ["\n".join(m.text for m in call.messages) for call in ctx.role_calls]
    assert all("at most 4 steps" in prompt for prompt in prompts)
    assert re.findall(r"Steps left: (\d+) of 4", prompts[-1]) == ["3", "2", "1", "0"]
    assert len(rows(ctx.role_calls)) == 1
    assert state["stop"] == StopReason.TURN_LIMIT


async def test_an_agent_that_does_not_see_its_room_is_told_no_steps() -> None:
    hidden = configure_graph("blind", "", "", replace(EDITING_CONFIG, shows_room=False))
    ctx = run(engines=acts(SEARCH, DONE))
    await carry_out(ctx, hidden)
    assert not any("Steps left" in m.text for m in ctx.role_calls[-1].messages)
    assert "steps, and each" not in ctx.role_calls[-1].messages[0].text


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.just("search"), st.lists(st.integers(1, 8), max_size=3), st.text(max_size=3)), max_size=8))
async def test_any_sequence_of_actions_gives_segments_that_hold_each_completion_once(drawn: list[Any]) -> None:
    def act(one: Any) -> Act:
        if one == "search":
            return SEARCH
        return write(one) if isinstance(one, str) else prune(*map(build_record_id, one), note="n" * len(one))

    ctx = run(engines=acts(*map(act, drawn), DONE), prompt_formats={"agent": "text"})
    await carry_out(ctx, graph)
    segments = rows(ctx.role_calls)
    assert [text for row in segments for text in trained(row)] == [call.text for call in ctx.role_calls]
    assert ctx.report.stop_reason == StopReason.ANSWERED
