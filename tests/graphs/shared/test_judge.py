"""The JUDGE step: what is discarded is in no later prompt, what was kept elsewhere stays, and judging never loops."""

from typing import Any

import pytest

from offing.core.run import Budget
from offing.sdk import InvalidOutput
from offing_graphs.research_team import graph
from offing_graphs.research_team.graph import configure_graph
from offing_graphs.research_team.nodes import TeamConfig
from offing_graphs.shared import judge
from offing_graphs.shared.judge import JudgeInput, Judgment, filter_discarded
from offing_graphs.shared.schemas import MemoryRecord, RetrievedPassage
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import Engine, InMemoryContext, carry_out

QUESTION = "How often is the tide gauge calibrated?"


def passage(id: str, text: str, title: str = "Notes") -> RetrievedPassage:
    return RetrievedPassage(id=id, source="s", text_id="a", start=0, end=len(text), title=title, text=text)


def record(turn: int, *evidence: str, value: str = "") -> MemoryRecord:
    return MemoryRecord(
        turn=turn,
        sub_goal="g",
        tool="search_library",
        args={},
        status="ok",
        finding="What was found.",
        evidence=evidence,
        value=value,
    )


def observed(*pieces: RetrievedPassage, value: str = "") -> JudgeInput:
    return JudgeInput(
        question=QUESTION, goal="Find it", tool="search_library", status="ok", passages=pieces, value=value
    )


def judging(*message: Judgment) -> Engine:
    """A judge that says these, then the last again and again."""
    left = list(message)
    return lambda _inputs: left.pop(0) if len(left) > 1 else left[0]


def test_passages_without_a_word_of_the_question_are_discarded() -> None:
    text = judge.judge_by_words(
        observed(passage("E1", "The gauge is calibrated in March."), passage("E2", "Herring is smoked."))
    )
    assert (text.helps, text.discard) == (True, ("E2",))


def test_an_observation_without_any_is_discarded_whole() -> None:
    text = judge.judge_by_words(observed(passage("E2", "Herring is smoked.")))
    assert (text.helps, text.discard) == (False, ("E2",))
    assert not judge.judge_by_words(observed()).helps
    assert judge.judge_by_words(observed(value="6 * 7 = 42")).helps


def test_a_discarded_passage_is_deleted_unless_another_turn_kept_it() -> None:
    useless = Judgment(why="Off the subject.", helps=False)
    memory = (record(1, "E1", "E2", value="v"), record(2, "E2", "E3"))
    rendered, out = filter_discarded(memory, {1: useless, 2: Judgment(why="", helps=True, discard=("E3",))})
    assert out == {"E1", "E3"}
    assert [r.evidence for r in rendered] == [("E2",), ("E2",)]
    assert (rendered[0].finding, rendered[0].value) == ("Set aside: Off the subject.", "")
    assert rendered[1].finding == "What was found."


def test_a_judge_cannot_discard_what_its_turn_did_not_bring() -> None:
    _, out = filter_discarded(
        (record(1, "E1"), record(2, "E2")), {2: Judgment(why="", helps=True, discard=("E1", "E9"))}
    )
    assert out == frozenset()


def test_without_judgments_nothing_changes() -> None:
    memory = (record(1, "E1"),)
    assert filter_discarded(memory, {}) == (memory, frozenset())


@pytest.mark.parametrize(
    "message", [Judgment(why="It says so.", helps=True, discard=("E1", "E2")), Judgment(why="No.", helps=False)]
)
def test_the_text_format_reads_what_it_writes(message: Judgment) -> None:
    assert judge.parse_output(judge.render_output(message, observed()), observed()) == message


@pytest.mark.parametrize("helps", ["yes", "TRUE", "", "true false"])
def test_the_text_format_guesses_nothing(helps: str) -> None:
    text = f"<why>w</why>\n<helps>{helps}</helps>\n<discard></discard>"
    assert isinstance(judge.parse_output(text, observed()), InvalidOutput)


def inputs_after(ctx: InMemoryContext, role: str) -> list[Any]:
    return [inputs for name, inputs in ctx.role_inputs if name == role]


async def test_what_is_discarded_is_in_no_later_prompt_and_not_in_the_report() -> None:
    nothing_helps = judging(Judgment(why="Nothing of it helps.", helps=False))
    ctx = InMemoryContext(harbour(), QUESTION, budget=Budget(max_turns=3), engines={"judge": nothing_helps})
    await carry_out(ctx, graph)
    assert ctx.collected
    for role in ("planner", "verifier", "generator"):
        assert all(not inputs.evidence for inputs in inputs_after(ctx, role))
    assert not ctx.report.citations


async def test_after_a_useless_observation_the_planner_hears_why() -> None:
    first = Judgment(why="These are other gauges.", helps=False)
    ctx = InMemoryContext(harbour(), QUESTION, engines={"judge": judging(first, Judgment(why="Good.", helps=True))})
    await carry_out(ctx, graph)
    planner = inputs_after(ctx, "planner")[1]
    assert planner.memory[0].finding == "Set aside: These are other gauges."
    assert ctx.report.citations


async def test_each_call_is_judged_once() -> None:
    ctx = InMemoryContext(harbour(), QUESTION, engines={"judge": judging(Judgment(why="No.", helps=False))})
    await carry_out(ctx, graph)
    assert len(inputs_after(ctx, "judge")) == len(ctx.calls) == ctx.turns


async def test_a_variant_does_without_the_judge() -> None:
    ctx = InMemoryContext(harbour(), QUESTION)
    await carry_out(ctx, configure_graph("unjudged", TeamConfig(judge=False)))
    assert not inputs_after(ctx, "judge")
    assert ctx.report.citations
