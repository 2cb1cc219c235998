"""The router: the mode that is worth most, on record with its reasons, and the way on where less was not enough."""

from typing import Any

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import InvalidOutput
from offing_graphs.router import extractive, graph, prompts
from offing_graphs.router.nodes import list_modes, rank_modes
from offing_graphs.router.schemas import Chance, Mode, ModeOption, Route, RouterInput
from offing_graphs.shared.schemas import ToolCard
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import Engine, InMemoryContext, carry_out, failing
from tests.graphs.world_runs import accuracy

SIMPLE = "How often is the tide gauge calibrated?"
TWO_PARTS = "What does a berth cost and how can one pay?"
NOWHERE = "How many chess clubs are there on the moon?"
SEARCH = ToolCard(name="search_library", description="", parameters={})


def says(**chances: float) -> Engine:
    """A router with these estimates."""
    known = tuple(Chance(mode=Mode(mode), chance=chance) for mode, chance in chances.items())
    return lambda _inputs: Route(why="So it seems.", chances=known)


async def routed(question: str, **more: Any) -> InMemoryContext:
    ctx = InMemoryContext(harbour(), question, **more)
    await carry_out(ctx, graph)
    return ctx


def notes(ctx: InMemoryContext) -> list[str]:
    return [step.title for step in ctx.steps if step.kind is StepKind.NOTE]


def roles_of(ctx: InMemoryContext) -> list[str]:
    return [name for name, _ in ctx.role_inputs]


async def test_a_simple_question_is_answered_at_once() -> None:
    ctx = await routed(SIMPLE)
    assert (notes(ctx), ctx.turns, roles_of(ctx)) == (["Mode: instant"], 1, ["router", "generator"])
    assert ctx.report.answer
    assert "twice a year" in ctx.report.answer.text
    assert ctx.report.answer.is_supported


async def test_a_question_in_parts_gets_a_look_for_each() -> None:
    ctx = await routed(TWO_PARTS)
    assert notes(ctx) == ["Mode: reasoning"]
    assert (len(ctx.calls), roles_of(ctx)) == (2, ["router", "analyst", "generator"])
    assert ctx.report.citations


async def test_what_one_look_does_not_answer_continues_in_the_loop() -> None:
    ctx = await routed(NOWHERE)
    assert notes(ctx) == ["Mode: instant", "Continues as agentic"]
    assert {"planner", "executor", "verifier"} <= set(roles_of(ctx))
    assert ctx.report.stop_reason in {StopReason.NOTHING_FOUND, StopReason.TURN_LIMIT}


async def test_the_loop_continues_from_what_was_looked_up() -> None:
    ctx = await routed(NOWHERE)
    first = next(inputs for name, inputs in ctx.role_inputs if name == "planner")
    assert [record.turn for record in first.memory] == [1]
    assert first.turn == 2


async def test_a_model_that_expects_little_of_a_look_is_given_the_loop() -> None:
    ctx = await routed(SIMPLE, engines={"router": says(instant=0.1, agentic=0.9)})
    assert notes(ctx) == ["Mode: agentic"]
    assert "verifier" in roles_of(ctx)


async def test_the_choice_is_on_record_with_what_was_weighed() -> None:
    ctx = await routed(SIMPLE, engines={"router": says(instant=0.8, agentic=0.8)})
    (chosen,) = (step for step in ctx.steps if step.kind is StepKind.NOTE)
    assert chosen.payload["mode"] == "instant"
    assert chosen.payload["why"] == "So it seems."
    assert [w["mode"] for w in chosen.payload["weighed"]] == ["instant", "agentic"]


async def test_a_router_that_fails_ends_in_a_report_that_says_so() -> None:
    ctx = await routed(SIMPLE, engines={"router": failing(FailureKind.OVERLOADED)})
    assert ctx.report.stop_reason == StopReason.PROVIDER_DOWN


async def test_without_a_turn_nothing_is_chosen() -> None:
    ctx = await routed(SIMPLE, budget=Budget(max_turns=0))
    assert (notes(ctx), ctx.report.stop_reason) == ([], StopReason.TURN_LIMIT)


async def test_a_follow_up_starts_from_what_its_thread_has_quoted() -> None:
    first = await routed(SIMPLE)
    spans = tuple(citation.span for citation in first.report.citations)
    ctx = await routed("And who does it?", earlier=((SIMPLE, "Twice a year."),), quoted_earlier=spans)
    assert ctx.looked_back == ["And who does it?"]
    assert [e.span for e in ctx.collected][: len(spans)] == list(spans)
    assert first.looked_back == []


def test_dear_modes_must_promise_more() -> None:
    offered = (ModeOption(mode=Mode.INSTANT, calls=2), ModeOption(mode=Mode.AGENTIC, calls=42))
    assert rank_modes(offered, {Mode.INSTANT: 0.6, Mode.AGENTIC: 0.75})[0].mode is Mode.INSTANT
    assert rank_modes(offered, {Mode.INSTANT: 0.6, Mode.AGENTIC: 0.85})[0].mode is Mode.AGENTIC


def test_a_mode_without_an_estimate_is_never_chosen_before_one_that_has_some() -> None:
    offered = list_modes(2, 12, (SEARCH,))
    assert rank_modes(offered, {Mode.AGENTIC: 0.5})[0].mode is Mode.AGENTIC


def test_only_what_the_tools_and_turns_allow_is_offered() -> None:
    assert [o.mode for o in list_modes(3, 12, (SEARCH,))] == [Mode.INSTANT, Mode.REASONING, Mode.AGENTIC]
    assert [o.mode for o in list_modes(3, 2, (SEARCH,))] == [Mode.INSTANT, Mode.AGENTIC]
    assert [o.mode for o in list_modes(1, 12, (ToolCard(name="amber", description="", parameters={}),))] == [
        Mode.AGENTIC
    ]


def test_a_deep_run_always_takes_the_loop() -> None:
    assert [o.mode for o in list_modes(3, 40, (SEARCH,), deep=True)] == [Mode.AGENTIC]


def test_the_text_format_reads_what_it_writes_and_guesses_nothing() -> None:
    inputs = RouterInput(question=SIMPLE, parts=(SIMPLE,), options=list_modes(1, 12, (SEARCH,)))
    text = extractive.estimate_by_words(inputs)
    assert prompts.parse_output(prompts.render_output(text, inputs), inputs) == text
    for chances in ("instant maybe", "instant 1.5", "perhaps 0.5", "instant", ""):
        assert isinstance(prompts.parse_output(f"<why>w</why>\n<chances>{chances}</chances>", inputs), InvalidOutput)


async def test_in_a_world_the_oracle_is_right_and_chance_is_not() -> None:
    assert await accuracy(graph, "oracle", 40) >= 0.95
    assert await accuracy(graph, "random", 40) < 0.4
