"""Memory as action in the synthetic world: the compact form, facts in notes, oracle and random planner."""

from typing import Any

import pytest

from offing.core.step import StepKind
from offing.core.trajectory import BoundaryReason
from offing_graphs.memact import graph, supo
from offing_world.memact.facts import parse_facts, render_facts, select_needed_facts
from offing_world.question_solver import KnownFact
from tests.graphs.memact.builders import rows, summing, trained
from tests.graphs.world_runs import SPECS, Trial, accuracy, held_out, trial

FACTS = (
    KnownFact("teacher", "Karo", ("Mila",), True),
    KnownFact("works", "Mila", (), True),
    KnownFact("born", "X", ("9",), True),
)


def test_facts_in_a_note_are_read_back() -> None:
    assert parse_facts(render_facts(FACTS)) == FACTS
    assert parse_facts(render_facts(())) == ()
    assert parse_facts("The teacher of it: unclear") == ()


async def compact_trial(built_graph: Any = graph, hops: int = 4, **more: Any) -> Trial:
    task = next(t for t in held_out(200) if t.hops == hops)
    return await trial(built_graph, task, "oracle", prompt_formats={"agent": "compact"}, **more)


async def test_the_compact_form_only_appends_within_a_segment_and_is_short() -> None:
    done = await compact_trial()
    assert done.right
    segments = rows(done.ctx.role_calls)
    assert len(segments) == 2
    assert [text for row in segments for text in trained(row)] == [call.text for call in done.ctx.role_calls]
    words = sum(len(call.text.split()) for call in done.ctx.role_calls)
    new = words + sum(len(m.text.split()) for row in segments for m in row[-1].messages if m.role == "user")
    assert new <= 128


async def test_a_note_holds_what_the_oracle_still_needs_and_no_more() -> None:
    done = await compact_trial()
    (note,) = [s.payload["note"] for s in done.ctx.steps if s.kind is StepKind.MEMORY]
    facts = parse_facts(note)
    assert facts == select_needed_facts(done.task.question, facts)
    assert select_needed_facts(done.task.question, (*facts, KnownFact("home", "Nobody at all", ("x",), True))) == facts


async def test_the_world_can_be_summed_up() -> None:
    task = next(t for t in held_out(200) if t.hops == 4)
    for prompt_format in ("text", "compact"):
        built_graph = summing(250, question=task.question, specs=SPECS)
        done = await trial(built_graph, task, "oracle", prompt_formats={"agent": prompt_format}, turns=30)
        assert done.right, [c.text for c in done.ctx.role_calls]
        assert any(call.boundary_reason is BoundaryReason.COMPACTION for call in done.ctx.role_calls)
        rows(done.ctx.role_calls)


@pytest.mark.slow
@pytest.mark.parametrize("prompt_format", ["", "text", "compact"])
@pytest.mark.parametrize("built_graph", [graph, supo], ids=lambda g: g.name)
async def test_the_oracle_answers_and_a_random_planner_does_not(built_graph: Any, prompt_format: str) -> None:
    prompt_formats, count = ({"agent": prompt_format}, 40) if prompt_format else ({}, 100)
    assert await accuracy(built_graph, "oracle", count, prompt_formats=prompt_formats) >= 0.95
    assert await accuracy(built_graph, "random", count, prompt_formats=prompt_formats) < 0.25
