"""The router: the mode that is worth most, on record with its reasons, and the way on where less was not enough."""

from typing import Any

from offing.core.model import FailureKind
from offing.core.run import Budget, StopReason
from offing.core.step import StepKind
from offing.sdk import Unusable
from offing_graphs.parts.shapes import Card
from offing_graphs.router import graph, roles
from offing_graphs.router.modes import Mode, Offer, offers, weighed
from offing_graphs.router.roles import Chance, Route, RouterInput
from tests.graphs.corpus import harbour
from tests.graphs.stand_in import Engine, StandIn, carry_out, failing
from tests.graphs.world_trials import accuracy

SIMPLE = "How often is the tide gauge calibrated?"
TWO_PARTS = "What does a berth cost and how can one pay?"
NOWHERE = "How many chess clubs are there on the moon?"
SEARCH = Card(name="search_library", description="", parameters={})


def says(**chances: float) -> Engine:
    """A router with these estimates."""
    known = tuple(Chance(mode=Mode(mode), chance=chance) for mode, chance in chances.items())
    return lambda _given: Route(why="So it seems.", chances=known)


async def asked(question: str, **more: Any) -> StandIn:
    ctx = StandIn(harbour(), question, **more)
    await carry_out(ctx, graph)
    return ctx


def notes(ctx: StandIn) -> list[str]:
    return [step.title for step in ctx.steps if step.kind is StepKind.NOTE]


def roles_of(ctx: StandIn) -> list[str]:
    return [name for name, _ in ctx.given]


async def test_a_simple_question_is_answered_at_once() -> None:
    ctx = await asked(SIMPLE)
    assert (notes(ctx), ctx.turns, roles_of(ctx)) == (["Mode: instant"], 1, ["router", "generator"])
    assert ctx.report.answer
    assert "twice a year" in ctx.report.answer.text
    assert ctx.report.answer.supported


async def test_a_question_in_parts_gets_a_look_for_each() -> None:
    ctx = await asked(TWO_PARTS)
    assert notes(ctx) == ["Mode: reasoning"]
    assert (len(ctx.calls), roles_of(ctx)) == (2, ["router", "analyst", "generator"])
    assert ctx.report.citations


async def test_what_one_look_does_not_answer_goes_on_in_the_loop() -> None:
    ctx = await asked(NOWHERE)
    assert notes(ctx) == ["Mode: instant", "Goes on as agentic"]
    assert {"planner", "executor", "verifier"} <= set(roles_of(ctx))
    assert ctx.report.reason in {StopReason.NOTHING_FOUND, StopReason.TURN_LIMIT}


async def test_the_loop_goes_on_from_what_was_looked_up() -> None:
    ctx = await asked(NOWHERE)
    first = next(given for name, given in ctx.given if name == "planner")
    assert [record.turn for record in first.memory] == [1]
    assert first.turn == 2


async def test_a_model_that_expects_little_of_a_look_is_given_the_loop() -> None:
    ctx = await asked(SIMPLE, engines={"router": says(instant=0.1, agentic=0.9)})
    assert notes(ctx) == ["Mode: agentic"]
    assert "verifier" in roles_of(ctx)


async def test_the_choice_is_on_record_with_what_was_weighed() -> None:
    ctx = await asked(SIMPLE, engines={"router": says(instant=0.8, agentic=0.8)})
    (chosen,) = (step for step in ctx.steps if step.kind is StepKind.NOTE)
    assert chosen.payload["mode"] == "instant"
    assert chosen.payload["why"] == "So it seems."
    assert [w["mode"] for w in chosen.payload["weighed"]] == ["instant", "agentic"]


async def test_a_router_that_fails_ends_in_a_report_that_says_so() -> None:
    ctx = await asked(SIMPLE, engines={"router": failing(FailureKind.OVERLOADED)})
    assert ctx.report.reason == StopReason.PROVIDER_DOWN


async def test_without_a_turn_nothing_is_chosen() -> None:
    ctx = await asked(SIMPLE, budget=Budget(turns=0))
    assert (notes(ctx), ctx.report.reason) == ([], StopReason.TURN_LIMIT)


async def test_a_follow_up_starts_from_what_its_thread_has_quoted() -> None:
    first = await asked(SIMPLE)
    spans = tuple(citation.span for citation in first.report.citations)
    ctx = await asked("And who does it?", earlier=((SIMPLE, "Twice a year."),), quoted_earlier=spans)
    assert ctx.looked_back == ["And who does it?"]
    assert [e.span for e in ctx.found][: len(spans)] == list(spans)
    assert first.looked_back == []


def test_dear_modes_must_promise_more() -> None:
    offered = (Offer(mode=Mode.INSTANT, calls=2), Offer(mode=Mode.AGENTIC, calls=42))
    assert weighed(offered, {Mode.INSTANT: 0.6, Mode.AGENTIC: 0.75})[0].mode is Mode.INSTANT
    assert weighed(offered, {Mode.INSTANT: 0.6, Mode.AGENTIC: 0.85})[0].mode is Mode.AGENTIC


def test_a_mode_without_an_estimate_is_never_chosen_before_one_that_has_some() -> None:
    offered = offers(2, 12, (SEARCH,))
    assert weighed(offered, {Mode.AGENTIC: 0.5})[0].mode is Mode.AGENTIC


def test_only_what_the_tools_and_turns_allow_is_offered() -> None:
    assert [o.mode for o in offers(3, 12, (SEARCH,))] == [Mode.INSTANT, Mode.REASONING, Mode.AGENTIC]
    assert [o.mode for o in offers(3, 2, (SEARCH,))] == [Mode.INSTANT, Mode.AGENTIC]
    assert [o.mode for o in offers(1, 12, (Card(name="amber", description="", parameters={}),))] == [Mode.AGENTIC]


def test_the_plain_form_reads_what_it_writes_and_guesses_nothing() -> None:
    given = RouterInput(question=SIMPLE, parts=(SIMPLE,), offers=offers(1, 12, (SEARCH,)))
    said = roles.by_words(given)
    assert roles.read(roles.write(said, given), given) == said
    for chances in ("instant maybe", "instant 1.5", "perhaps 0.5", "instant", ""):
        assert isinstance(roles.read(f"<why>w</why>\n<chances>{chances}</chances>", given), Unusable)


async def test_in_a_world_the_oracle_is_right_and_chance_is_not() -> None:
    assert await accuracy(graph, "oracle", 40) >= 0.95
    assert await accuracy(graph, "random", 40) < 0.4
