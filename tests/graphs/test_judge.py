"""The JUDGE step: what is set aside is in no later prompt, what was kept elsewhere stays, and judging never loops."""

from typing import Any

import pytest

from offing.core.run import Budget
from offing.sdk import Unusable
from offing_graphs.parts import judge
from offing_graphs.parts.judge import JudgeInput, Judgement, sifted
from offing_graphs.parts.shapes import Piece, Record
from offing_graphs.research_team import graph
from offing_graphs.research_team.config import Config
from offing_graphs.research_team.graph import configured
from tests.graphs.corpus import harbour
from tests.graphs.stand_in import Engine, StandIn, carry_out

QUESTION = "How often is the tide gauge calibrated?"


def piece(id: str, text: str, title: str = "Notes") -> Piece:
    return Piece(id=id, source="s", artefact="a", start=0, end=len(text), title=title, text=text)


def record(turn: int, *evidence: str, value: str = "") -> Record:
    return Record(
        turn=turn,
        sub_goal="g",
        tool="search_library",
        args={},
        status="ok",
        finding="What was found.",
        evidence=evidence,
        value=value,
    )


def observed(*pieces: Piece, value: str = "") -> JudgeInput:
    return JudgeInput(question=QUESTION, goal="Find it", tool="search_library", status="ok", pieces=pieces, value=value)


def judging(*said: Judgement) -> Engine:
    """A judge that says these, then the last again and again."""
    left = list(said)
    return lambda _given: left.pop(0) if len(left) > 1 else left[0]


def test_passages_without_a_word_of_the_question_are_set_aside() -> None:
    said = judge.by_words(observed(piece("E1", "The gauge is calibrated in March."), piece("E2", "Herring is smoked.")))
    assert (said.helps, said.discard) == (True, ("E2",))


def test_an_observation_without_any_is_set_aside_whole() -> None:
    said = judge.by_words(observed(piece("E2", "Herring is smoked.")))
    assert (said.helps, said.discard) == (False, ("E2",))
    assert not judge.by_words(observed()).helps
    assert judge.by_words(observed(value="6 * 7 = 42")).helps


def test_a_discarded_passage_is_gone_unless_another_turn_kept_it() -> None:
    useless = Judgement(why="Off the subject.", helps=False)
    memory = (record(1, "E1", "E2", value="v"), record(2, "E2", "E3"))
    shown, out = sifted(memory, {1: useless, 2: Judgement(why="", helps=True, discard=("E3",))})
    assert out == {"E1", "E3"}
    assert [r.evidence for r in shown] == [("E2",), ("E2",)]
    assert (shown[0].finding, shown[0].value) == ("Set aside: Off the subject.", "")
    assert shown[1].finding == "What was found."


def test_a_judge_cannot_discard_what_its_turn_did_not_bring() -> None:
    _, out = sifted((record(1, "E1"), record(2, "E2")), {2: Judgement(why="", helps=True, discard=("E1", "E9"))})
    assert out == frozenset()


def test_without_judgements_nothing_changes() -> None:
    memory = (record(1, "E1"),)
    assert sifted(memory, {}) == (memory, frozenset())


@pytest.mark.parametrize(
    "said", [Judgement(why="It says so.", helps=True, discard=("E1", "E2")), Judgement(why="No.", helps=False)]
)
def test_the_plain_form_reads_what_it_writes(said: Judgement) -> None:
    assert judge.read(judge.write(said, observed()), observed()) == said


@pytest.mark.parametrize("helps", ["yes", "TRUE", "", "true false"])
def test_the_plain_form_guesses_nothing(helps: str) -> None:
    text = f"<why>w</why>\n<helps>{helps}</helps>\n<discard></discard>"
    assert isinstance(judge.read(text, observed()), Unusable)


def shown_after(ctx: StandIn, role: str) -> list[Any]:
    return [given for name, given in ctx.given if name == role]


async def test_what_is_set_aside_is_in_no_later_prompt_and_not_in_the_report() -> None:
    nothing_helps = judging(Judgement(why="Nothing of it helps.", helps=False))
    ctx = StandIn(harbour(), QUESTION, budget=Budget(turns=3), engines={"judge": nothing_helps})
    await carry_out(ctx, graph)
    assert ctx.found
    for role in ("planner", "verifier", "generator"):
        assert all(not given.evidence for given in shown_after(ctx, role))
    assert not ctx.report.citations


async def test_after_a_useless_observation_the_planner_hears_why() -> None:
    first = Judgement(why="These are other gauges.", helps=False)
    ctx = StandIn(harbour(), QUESTION, engines={"judge": judging(first, Judgement(why="Good.", helps=True))})
    await carry_out(ctx, graph)
    planner = shown_after(ctx, "planner")[1]
    assert planner.memory[0].finding == "Set aside: These are other gauges."
    assert ctx.report.citations


async def test_each_call_is_judged_once() -> None:
    ctx = StandIn(harbour(), QUESTION, engines={"judge": judging(Judgement(why="No.", helps=False))})
    await carry_out(ctx, graph)
    assert len(shown_after(ctx, "judge")) == len(ctx.calls) == ctx.turns


async def test_a_variant_does_without_the_judge() -> None:
    ctx = StandIn(harbour(), QUESTION)
    await carry_out(ctx, configured("unjudged", Config(judge=False)))
    assert not shown_after(ctx, "judge")
    assert ctx.report.citations
