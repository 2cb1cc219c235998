"""Prompts that only grow while everything fits a known window, and that say what they leave out where it does not."""

from itertools import pairwise, takewhile
from typing import Any

from offing.core.run import Budget
from offing_graphs.agentflow import graph
from tests.graphs.agentflow.test_calls import QUESTION, planner, stops_after
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import InMemoryContext, carry_out

SEARCHES = (
    "tide gauge",
    "calibration provisional",
    "alarms delay",
    "Heron car ferry",
    "Tern electric ferry",
    "tickets bicycle",
    "timetable departure",
    "harbour board records",
)


async def run_searches(context_tokens: int | None) -> InMemoryContext:
    searches: list[dict[str, Any] | None] = [{"query": words} for words in SEARCHES]
    engines = {"planner": planner(*searches), "verifier": stops_after(len(SEARCHES))}
    ctx = InMemoryContext(harbour(), QUESTION, Budget(max_turns=12), engines=engines, context_tokens=context_tokens)
    await carry_out(ctx, graph)
    return ctx


def list_prompts(ctx: InMemoryContext, role: str) -> list[str]:
    return ["\n".join(message.text for message in messages) for name, messages in ctx.prompts if name == role]


def measure_reuse(prompts: list[str]) -> float:
    """The share of all prompts that stands at the beginning of the prompt before."""
    return sum(count_common_characters(*pair) for pair in pairwise(prompts)) / sum(map(len, prompts))


def count_common_characters(first: str, second: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


async def test_in_a_known_window_seven_tenths_of_the_prompts_repeat_the_prompt_before() -> None:
    ctx = await run_searches(128_000)
    for role in ("planner", "verifier"):
        prompts = list_prompts(ctx, role)
        assert len(prompts) == len(SEARCHES)
        assert measure_reuse(prompts) > 0.7, role


async def test_every_passage_is_shown_once_and_under_the_step_that_brought_it() -> None:
    ctx = await run_searches(128_000)
    last = list_prompts(ctx, "verifier")[-1]
    ids = [line.split()[1] for line in last.splitlines() if line.startswith("Passage E")]
    assert sorted(ids) == sorted({e.id for e in await ctx.get_evidence(240)})
    assert last.index("Step 1: ") < last.index("Passage E1 ") < last.index("Step 2: ")
    assert "retrieved passages are not shown here" not in last


async def test_a_window_that_does_not_hold_everything_shows_a_selection_and_says_what_it_omits() -> None:
    ctx = await run_searches(3_000)
    last = list_prompts(ctx, "planner")[-1]
    assert "retrieved passages are not shown here" in last
