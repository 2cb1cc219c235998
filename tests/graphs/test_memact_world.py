"""Memory as action in the made-up world: the compact form, facts in notes, oracle and random planner."""

from typing import Any

import pytest

from offing.core.step import StepKind
from offing.core.trajectory import Fracture
from offing.world.solving import Known
from offing_graphs.memact import graph, supo
from offing_graphs.memact.facts import facts_in, facts_text, needed
from tests.graphs.memact_turns import rows, summing, trained
from tests.graphs.world_trials import SPECS, Trial, accuracy, held_out, trial

FACTS = (Known("teacher", "Karo", ("Mila",), True), Known("works", "Mila", (), True), Known("born", "X", ("9",), True))


def test_facts_in_a_note_are_read_back() -> None:
    assert facts_in(facts_text(FACTS)) == FACTS
    assert facts_in(facts_text(())) == ()
    assert facts_in("The teacher of it: unclear") == ()


async def compact_trial(flow: Any = graph, hops: int = 4, **more: Any) -> Trial:
    task = next(t for t in held_out(200) if t.hops == hops)
    return await trial(flow, task, "oracle", forms={"agent": "compact"}, **more)


async def test_the_compact_form_only_appends_within_a_segment_and_is_short() -> None:
    done = await compact_trial()
    assert done.right
    segments = rows(done.ctx.said)
    assert len(segments) == 2
    assert [text for row in segments for text in trained(row)] == [call.text for call in done.ctx.said]
    words = sum(len(call.text.split()) for call in done.ctx.said)
    new = words + sum(len(m.text.split()) for row in segments for m in row[-1].messages if m.role == "user")
    assert new <= 128


async def test_a_note_holds_what_the_oracle_still_needs_and_no_more() -> None:
    done = await compact_trial()
    (note,) = [s.payload["note"] for s in done.ctx.steps if s.kind is StepKind.MEMORY]
    facts = facts_in(note)
    assert facts == needed(done.task.question, facts)
    assert needed(done.task.question, (*facts, Known("home", "Nobody at all", ("x",), True))) == facts


async def test_the_world_can_be_summed_up() -> None:
    task = next(t for t in held_out(200) if t.hops == 4)
    for form in ("plain", "compact"):
        flow = summing(250, question=task.question, specs=SPECS)
        done = await trial(flow, task, "oracle", forms={"agent": form}, turns=30)
        assert done.right, [c.text for c in done.ctx.said]
        assert any(call.fracture is Fracture.COMPACTION for call in done.ctx.said)
        rows(done.ctx.said)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["", "plain", "compact"])
@pytest.mark.parametrize("flow", [graph, supo], ids=lambda g: g.name)
async def test_the_oracle_answers_and_a_random_planner_does_not(flow: Any, form: str) -> None:
    forms, count = ({"agent": form}, 60) if form else ({}, 200)
    assert await accuracy(flow, "oracle", count, forms=forms) >= 0.95
    assert await accuracy(flow, "random", count, forms=forms) < 0.25
