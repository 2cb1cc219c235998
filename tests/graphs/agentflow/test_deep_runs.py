"""Deep runs: breadth, then depth, until nothing new comes. Standard runs know nothing of it."""

from typing import Any

import pytest

from offing.core.run import Budget, Depth, StopReason
from offing.core.step import StepKind
from offing_graphs.agentflow import graph
from offing_graphs.agentflow.nodes import EARLY_STOP_TITLE
from offing_graphs.agentflow.schemas import Verdict
from offing_graphs.shared.schemas import Analysis, Coverage, Plan
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import Engine, InMemoryContext, carry_out

PARTS = ("How often is the tide gauge calibrated?", "What does a berth cost?", "Who pilots the ferry?")
DEEP = Budget(max_turns=20, depth=Depth.DEEP)
BARREN = 3
"""Turns without anything new after which a deep run of 20 turns ends."""


def analysis(_inputs: Any) -> Analysis:
    return Analysis(summary="Three things.", sub_questions=PARTS)


def verdicts(*covered_counts: int, stop: bool) -> Engine:
    """A verifier that finds this many parts covered, then the last number again and again."""
    left = list(covered_counts)

    def answer(_inputs: Any) -> Verdict:
        count = left.pop(0) if len(left) > 1 else left[0]
        coverage = tuple(Coverage(sub_question=part, covered=n < count) for n, part in enumerate(PARTS))
        return Verdict(analysis="So it is.", coverage=coverage, stop=stop)

    return answer


def searches(*queries: str) -> Engine:
    """A planner that searches for these, then for the last again and again."""
    left = list(queries)

    def plan(_inputs: Any) -> Plan:
        query = left.pop(0) if len(left) > 1 else left[0]
        args = {"query": query, "limit": 2}
        return Plan(justification="next", context="", sub_goal=f"Find {query}", tool="search_library", args=args)

    return plan


def run(verifier: Engine, planner: Engine | None = None, budget: Budget = DEEP, **more: Any) -> InMemoryContext:
    engines: dict[str, Engine] = {
        "analyst": analysis,
        "planner": planner or searches("tide gauge"),
        "verifier": verifier,
    }
    return InMemoryContext(harbour(), "Tell me of the harbor.", budget=budget, engines=engines, **more)


def prompt_texts(ctx: InMemoryContext, role: str) -> list[str]:
    return ["\n".join(m.text for m in messages) for name, messages in ctx.prompts if name == role]


def early_stops(ctx: InMemoryContext) -> list[int]:
    return [step.turn for step in ctx.steps if step.kind is StepKind.NOTE and step.title == EARLY_STOP_TITLE]


async def test_a_deep_run_ends_when_the_latest_turns_bring_nothing_new_and_says_so() -> None:
    ctx = run(verdicts(1, stop=False), searches("tide gauge", "berth cost", "ferry", "ferry"))
    state = await carry_out(ctx, graph)
    assert (state["stop"], ctx.turns) == (StopReason.SATURATED, 3 + BARREN)
    assert ctx.report.stop_reason == StopReason.SATURATED
    assert ctx.report.status == "partial"


async def test_a_newly_covered_part_is_something_new() -> None:
    covered = (1, 1, 1, 2)
    ctx = run(verdicts(*covered, stop=False))
    state = await carry_out(ctx, graph)
    assert (state["stop"], ctx.turns) == (StopReason.SATURATED, len(covered) + BARREN)


async def test_breadth_is_finished_before_nothing_new_counts() -> None:
    parts = tuple(f"Part {n}?" for n in range(6))
    ctx = run(verdicts(0, stop=False), searches("zzz"))
    ctx.engines["analyst"] = lambda _inputs: Analysis(summary="Many.", sub_questions=parts)
    await carry_out(ctx, graph)
    assert ctx.turns == 6


async def test_a_verifier_cannot_end_a_deep_run_in_its_first_turns_while_parts_are_open() -> None:
    different = [f"{word} harbor" for word in ("tide", "berth", "ferry", "pilot", "crane", "quay", "tern", "heron")]
    ctx = run(verdicts(1, 1, 2, stop=True), searches(*different))
    state = await carry_out(ctx, graph)
    first_turns = len(PARTS) + BARREN
    assert early_stops(ctx) == list(range(1, first_turns))
    assert (state["stop"], ctx.turns) == (StopReason.ANSWERED, first_turns)


async def test_a_verifier_without_coverage_cannot_end_it_either() -> None:
    ctx = run(lambda _inputs: Verdict(analysis="Fine.", stop=True), searches("tide gauge", "berth", "ferry", "crane"))
    await carry_out(ctx, graph)
    assert early_stops(ctx)[:2] == [1, 2]


async def test_a_verifier_ends_a_deep_run_whose_parts_are_all_covered() -> None:
    ctx = run(verdicts(3, stop=True))
    state = await carry_out(ctx, graph)
    assert (state["stop"], ctx.turns, early_stops(ctx)) == (StopReason.ANSWERED, 1, [])


async def test_the_prompts_of_a_deep_run_tell_the_phase() -> None:
    ctx = run(verdicts(1, stop=False), searches("tide gauge", "berth cost", "ferry", "crane", "ferry"))
    await carry_out(ctx, graph)
    planner, verifier = prompt_texts(ctx, "planner"), prompt_texts(ctx, "verifier")
    assert ["first phase, breadth" in text for text in planner[:4]] == [True, True, True, False]
    assert ["second phase, depth" in text for text in planner[:4]] == [False, False, False, True]
    assert ["have had no step yet" in text for text in verifier[:3]] == [True, True, False]


@pytest.mark.parametrize("depth", [Depth.QUICK, Depth.STANDARD])
async def test_other_runs_end_as_their_verifier_says_and_know_no_phase(depth: Depth) -> None:
    ctx = run(verdicts(1, stop=True), budget=Budget(max_turns=20, depth=depth))
    state = await carry_out(ctx, graph)
    assert (state["stop"], ctx.turns, early_stops(ctx)) == (StopReason.ANSWERED, 1, [])
    assert "phase" not in "".join(prompt_texts(ctx, "planner") + prompt_texts(ctx, "verifier"))
    assert all("phase" not in inputs.model_dump() for _, inputs in ctx.role_inputs)


async def test_a_deep_run_that_finds_nothing_ends_with_nothing_found() -> None:
    ctx = run(verdicts(0, stop=False), searches("zzz"))
    state = await carry_out(ctx, graph)
    assert state["stop"] == StopReason.NOTHING_FOUND


async def test_a_deep_run_without_a_model_ends_by_itself() -> None:
    ctx = InMemoryContext(harbour(), "Who pilots the ferry to the moon?", budget=Budget(max_turns=40, depth=Depth.DEEP))
    state = await carry_out(ctx, graph)
    assert state["stop"] in {StopReason.SATURATED, StopReason.NOTHING_FOUND, StopReason.ANSWERED}
    assert ctx.turns < 20
