"""AgentFlow asked in text instead of JSON, and its roles answered by rules in a made-up world."""

from itertools import pairwise
from typing import Any

import pytest

from offing.core.trajectory import Tail, goes_on
from offing.sdk import ReportDraft, SpanKind, Unusable
from offing.world.compact import VOCABULARY
from offing.world.solving import entities_in
from offing_graphs.agentflow import forms, graph
from offing_graphs.agentflow.roles import ANALYST, EXECUTOR, GENERATOR, PLANNER, VERIFIER
from offing_graphs.agentflow.shapes import AnalystInput, Command, PlannerInput, Verdict
from offing_graphs.parts.shapes import Analysis, Coverage, Plan, Record
from tests.graphs.corpus import harbour
from tests.graphs.stand_in import StandIn, carry_out
from tests.graphs.world_trials import accuracy, held_out, trial, trials

PLAIN = {role.name: "plain" for role in graph.roles}
ANY: Any = None
"""For parsers that do not look at their input."""
QUESTION = "Who taught Velan Torsk?"


def planner_input(question: str = QUESTION, **more: Any) -> PlannerInput:
    analysis = Analysis(summary="s", sub_questions=(question,))
    return PlannerInput(question=question, analysis=analysis, tools=(), turn=1, remaining=3, **more)


def look_up_record(values: str, turn: int = 1, status: str = "ok") -> Record:
    args = {"relation": "teacher", "entity": "Velan Torsk"}
    return Record(turn=turn, sub_goal="g", tool="birch", args=args, status=status, finding="", value=values)


@pytest.mark.slow
@pytest.mark.parametrize("planner", ["", "plain", "compact"])
async def test_an_oracle_answers_the_questions_of_a_held_out_world(planner: str) -> None:
    forms, count = ({"planner": planner}, 60) if planner else ({}, 200)
    assert await accuracy(graph, "oracle", count, forms=forms) >= 0.95


@pytest.mark.slow
async def test_a_random_planner_answers_less_than_a_quarter_of_them() -> None:
    assert await accuracy(graph, "random", forms={"planner": "compact"}) < 0.25


async def test_every_role_in_plain_text_answers_as_in_json() -> None:
    for task in held_out(5):
        done = await trial(graph, task, "oracle", forms=PLAIN)
        assert done.right, task.question
        assert {said.role for said in done.ctx.said if said.text} == set(PLAIN)


async def test_a_run_over_documents_in_plain_text_gives_the_report_that_it_gives_in_json() -> None:
    question = "Compare the Heron and the Tern"
    text, json = StandIn(harbour(), question, forms=PLAIN), StandIn(harbour(), question)
    await carry_out(text, graph)
    await carry_out(json, graph)
    assert text.report.answer == json.report.answer
    assert text.report.citations == json.report.citations
    assert not [r for s in text.report.sentences() for r in s.rejected]


async def test_the_compact_prompt_only_grows_by_what_was_said_and_seen() -> None:
    (done,) = await trials(graph, "random", held_out(1, (4, 4)), forms={"planner": "compact"})
    said = [s for s in done.ctx.said if s.role == "planner"]
    assert len(said) > 3
    for before, after in pairwise(said):
        tail = Tail(1, 1, before.seq, before.messages, before.text, None)
        assert goes_on(tail, after.messages, None) is None
        assert len(after.messages) == len(before.messages) + 2
        assert [m.turn for m in after.messages if m.role == "assistant"] == [s.seq for s in said[: said.index(after)]]


async def test_a_four_hop_rollout_of_the_compact_planner_adds_at_most_128_tokens() -> None:
    for done in await trials(graph, "oracle", held_out(20, (4, 4)), forms={"planner": "compact"}):
        last = [s for s in done.ctx.said if s.role == "planner"][-1]
        words = [word for m in last.messages for word in m.text.split()] + last.text.split()
        assert set(words) <= set(VOCABULARY)
        marks = 4 * (len(last.messages) + 1)  # what a chat template may put around a message
        assert len(words) + marks <= 128


@pytest.mark.parametrize("text", ["t1 r0 e0", " t1 r0 e0\n"])
def test_a_compact_plan_is_a_look_up(text: str) -> None:
    plan = forms.compact_plan(text, planner_input())
    assert plan == Plan(
        justification="",
        context='{"entity": "Velan Torsk", "relation": "teacher"}',
        sub_goal="Find the teacher of Velan Torsk",
        tool="birch",
    )
    assert not isinstance(plan, Unusable)
    assert forms.write_compact(plan, planner_input()) == "t1 r0 e0"


@pytest.mark.parametrize(
    "text", ["", "t1 r0", "t1 r0 e1", "t9 r0 e0", "t1 e0 r0", "t1 r0 e0 e0", "birch r0 e0", "stop"]
)
def test_a_compact_plan_with_any_other_words_is_refused(text: str) -> None:
    assert isinstance(forms.compact_plan(text, planner_input()), Unusable)


def test_what_a_tool_gave_is_seen_in_words_and_names_new_entities() -> None:
    told = '{"closed": true, "entity": "Velan Torsk", "relation": "teacher", "values": ["Mira Olden"]}'
    assert entities_in(QUESTION) == ("Velan Torsk",)
    for value, status, seen in ((told, "ok", "e1"), ("", "ok", "none"), ("", "failed", "failed")):
        plan = forms.compact_plan("t1 r0 e0", planner_input())
        given = planner_input(
            memory=(look_up_record(value, status=status),), past=({"seq": 3, "turn": 1, "plan": plan},)
        )
        assert [m.text for m in forms.compact_prompt(given)] == ["ask e0 r0", "t1 r0 e0", seen]


PLAN = Plan(justification="It is first.\nAnd last.", context="query: tide", sub_goal="Find it", tool="search_library")


def test_a_plan_in_sections_is_read_back() -> None:
    text = forms.write_plan(PLAN, ANY)
    assert forms.plain_plan(text, ANY) == PLAN
    (span,) = forms.plan_spans(f"<think>hm</think>\n{text}\n")
    assert span.kind is SpanKind.PLAN
    assert f"<think>hm</think>\n{text}\n"[span.start : span.end] == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "search_library",
        "Justification: a\nContext: b\nSub-Goal: c",
        "Justification: a\nContext: b\nSub-Goal:\nTool Name: t",
        "Sub-Goal: c\nJustification: a\nContext: b\nTool Name: t",
        "Sure!\nJustification: a\nContext: b\nSub-Goal: c\nTool Name: t",
        '{"justification": "a", "context": "b", "sub_goal": "c", "tool": "t"}',
    ],
)
def test_a_plan_of_another_form_is_refused(text: str) -> None:
    assert isinstance(forms.plain_plan(text, ANY), Unusable)


def verdict(stop: str, coverage: str = "yes | q | E1, E2 | ") -> str:
    return f"<analysis>a</analysis><coverage>{coverage}</coverage><stop>{stop}</stop>"


def test_a_verdict_is_read_and_written() -> None:
    read = forms.plain_verdict(verdict("true", "yes | q | E1, E2 | \nno | p || all of it"), ANY)
    covered = Coverage(sub_question="q", covered=True, evidence=("E1", "E2"))
    missing = Coverage(sub_question="p", covered=False, missing="all of it")
    assert read == Verdict(analysis="a", coverage=(covered, missing), stop=True)
    assert not isinstance(read, Unusable)
    assert forms.plain_verdict(forms.write_verdict(read, ANY), ANY) == read


@pytest.mark.parametrize("stop", ["", "TRUE", "True", "yes", "stop", "1", "not true", "true."])
def test_only_the_word_true_stops(stop: str) -> None:
    assert isinstance(forms.plain_verdict(verdict(stop), ANY), Unusable)


@pytest.mark.parametrize("coverage", ["q", "maybe | q | E1 | ", "yes | q", "yes | a | b | c | d"])
def test_coverage_of_another_form_is_refused(coverage: str) -> None:
    assert isinstance(forms.plain_verdict(verdict("true", coverage), ANY), Unusable)


def test_a_command_is_read_and_written() -> None:
    command = Command(tool="search_library", args={"query": "a\n</b>", "limit": 2})
    assert forms.plain_command(forms.write_command(command, ANY), ANY) == command
    for broken in ("<tool>t</tool>", "<tool>t</tool><args>[1]</args>", "<tool>t</tool><args>{</args>"):
        assert isinstance(forms.plain_command(broken, ANY), Unusable)


def test_an_analysis_is_read_and_written() -> None:
    analysis = Analysis(summary="s", sub_questions=("a?", "b?"), relevant_tools=("t", "u"), considerations="c")
    assert forms.plain_analysis(forms.write_analysis(analysis, ANY), ANY) == analysis
    empty = "<summary>s</summary><sub_questions></sub_questions><tools></tools><considerations></considerations>"
    assert isinstance(forms.plain_analysis(empty, ANY), Unusable)


def test_a_report_in_text_takes_the_question_for_a_title_it_lacks() -> None:
    form = GENERATOR.form("plain")
    assert form
    given = planner_input()
    draft = form.parse("It is blue.", ANY or given)  # type: ignore[arg-type]
    assert draft == ReportDraft(title=QUESTION, answer="It is blue.", sections=())
    assert isinstance(form.parse("<think>only</think>", ANY or given), Unusable)  # type: ignore[arg-type]


def test_every_plain_prompt_says_its_form_and_every_role_has_rules() -> None:
    assert [role.form("plain") is not None for role in graph.roles] == [True] * 5
    assert set(PLANNER.rules) == {"oracle", "random"}
    assert all(set(role.rules) == {"world"} for role in (ANALYST, EXECUTOR, VERIFIER, GENERATOR))
    form = ANALYST.form("plain")
    assert form
    messages = form.render(AnalystInput(question=QUESTION, tools=()))
    assert "<sub_questions>" in messages[-1].text
    assert QUESTION in messages[-1].text
