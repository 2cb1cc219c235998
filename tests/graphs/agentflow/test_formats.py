"""AgentFlow asked in text instead of JSON, and its roles answered by rules in a synthetic world."""

from itertools import pairwise
from typing import Any

import pytest

from offing.core.trajectory import SegmentTail, find_boundary
from offing.sdk import InvalidOutput, ReportDraft, SpanKind
from offing.tools.environment import extend_role
from offing_graphs.agentflow import graph, prompts
from offing_graphs.agentflow.roles import ANALYST, EXECUTOR, GENERATOR, PLANNER, VERIFIER
from offing_graphs.agentflow.schemas import AnalystInput, Command, PlannerInput, Verdict, VerifierInput
from offing_graphs.shared.schemas import Analysis, Coverage, MemoryRecord, Plan
from offing_world.agentflow import compact_format
from offing_world.compact_notation import VOCABULARY
from offing_world.question_solver import extract_entities
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import InMemoryContext, carry_out
from tests.graphs.world_runs import accuracy, held_out, trial, trials

PLAIN = {role.name: "text" for role in graph.roles}
ANY: Any = None
VERIFYING = VerifierInput(
    question="q", analysis=Analysis(summary="s", sub_questions=("q",)), tools=(), turn=1, remaining=1
)
"""For parsers that do not look at their input."""
QUESTION = "Who taught Velan Torsk?"


def planner_input(question: str = QUESTION, **more: Any) -> PlannerInput:
    analysis = Analysis(summary="s", sub_questions=(question,))
    return PlannerInput(question=question, analysis=analysis, tools=(), turn=1, remaining=3, **more)


def look_up_record(values: str, turn: int = 1, status: str = "ok") -> MemoryRecord:
    args = {"relation": "teacher", "entity": "Velan Torsk"}
    return MemoryRecord(turn=turn, sub_goal="g", tool="birch", args=args, status=status, finding="", value=values)


@pytest.mark.slow
@pytest.mark.parametrize("planner", ["", "text", "compact"])
async def test_an_oracle_answers_the_questions_of_a_held_out_world(planner: str) -> None:
    prompt_formats, count = ({"planner": planner}, 40) if planner else ({}, 100)
    assert await accuracy(graph, "oracle", count, prompt_formats=prompt_formats) >= 0.95


@pytest.mark.slow
async def test_a_random_planner_answers_less_than_a_quarter_of_them() -> None:
    assert await accuracy(graph, "random", prompt_formats={"planner": "compact"}) < 0.25


async def test_every_role_in_plain_text_answers_as_in_json() -> None:
    for task in held_out(5):
        done = await trial(graph, task, "oracle", prompt_formats=PLAIN)
        assert done.right, task.question
        assert {text.role for text in done.ctx.role_calls if text.text} == set(PLAIN)


async def test_a_run_over_documents_in_plain_text_gives_the_report_that_it_gives_in_json() -> None:
    question = "Compare the Heron and the Tern"
    text, json = InMemoryContext(harbour(), question, prompt_formats=PLAIN), InMemoryContext(harbour(), question)
    await carry_out(text, graph)
    await carry_out(json, graph)
    assert text.report.answer == json.report.answer
    assert text.report.citations == json.report.citations
    assert not [r for s in text.report.sentences() for r in s.rejected]


async def test_the_compact_prompt_only_grows_by_what_was_said_and_seen() -> None:
    (done,) = await trials(graph, "random", held_out(1, (4, 4)), prompt_formats={"planner": "compact"})
    messages = [s for s in done.ctx.role_calls if s.role == "planner"]
    assert len(messages) > 3
    for before, after in pairwise(messages):
        tail = SegmentTail(1, 1, before.seq, before.messages, before.text, None)
        assert find_boundary(tail, after.messages, None) is None
        assert len(after.messages) == len(before.messages) + 2
        assert [m.turn for m in after.messages if m.role == "assistant"] == [
            s.seq for s in messages[: messages.index(after)]
        ]


async def test_a_four_hop_rollout_of_the_compact_planner_adds_at_most_128_tokens() -> None:
    for done in await trials(graph, "oracle", held_out(20, (4, 4)), prompt_formats={"planner": "compact"}):
        last = [s for s in done.ctx.role_calls if s.role == "planner"][-1]
        words = [word for m in last.messages for word in m.text.split()] + last.text.split()
        assert set(words) <= set(VOCABULARY)
        marks = 4 * (len(last.messages) + 1)  # what a chat template may put around a message
        assert len(words) + marks <= 128


@pytest.mark.parametrize("text", ["t1 r0 e0", " t1 r0 e0\n"])
def test_a_compact_plan_is_a_look_up(text: str) -> None:
    plan = compact_format.parse_compact_plan(text, planner_input())
    assert plan == Plan(
        justification="",
        context='{"entity": "Velan Torsk", "relation": "teacher"}',
        sub_goal="Find the teacher of Velan Torsk",
        tool="birch",
    )
    assert not isinstance(plan, InvalidOutput)
    assert compact_format.render_compact_plan(plan, planner_input()) == "t1 r0 e0"


@pytest.mark.parametrize(
    "text", ["", "t1 r0", "t1 r0 e1", "t9 r0 e0", "t1 e0 r0", "t1 r0 e0 e0", "birch r0 e0", "stop"]
)
def test_a_compact_plan_with_any_other_words_is_rejected(text: str) -> None:
    assert isinstance(compact_format.parse_compact_plan(text, planner_input()), InvalidOutput)


def test_what_a_tool_gave_is_seen_in_words_and_names_new_entities() -> None:
    message = '{"closed": true, "entity": "Velan Torsk", "relation": "teacher", "values": ["Mira Olden"]}'
    assert extract_entities(QUESTION) == ("Velan Torsk",)
    for value, status, seen in ((message, "ok", "e1"), ("", "ok", "none"), ("", "failed", "failed")):
        plan = compact_format.parse_compact_plan("t1 r0 e0", planner_input())
        inputs = planner_input(
            memory=(look_up_record(value, status=status),), past=({"seq": 3, "turn": 1, "plan": plan},)
        )
        assert [m.text for m in compact_format.render_compact_prompt(inputs)] == ["ask e0 r0", "t1 r0 e0", seen]


PLAN = Plan(justification="It is first.\nAnd last.", context="query: tide", sub_goal="Find it", tool="search_library")


def test_a_plan_in_sections_is_read_back() -> None:
    text = prompts.render_text_plan(PLAN, ANY)
    assert prompts.parse_text_plan(text, ANY) == PLAN
    (span,) = prompts.find_plan_spans(f"<think>hm</think>\n{text}\n")
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
def test_a_plan_of_another_form_is_rejected(text: str) -> None:
    assert isinstance(prompts.parse_text_plan(text, ANY), InvalidOutput)


def verdict(stop: str, coverage: str = "yes | q | E1, E2 | ") -> str:
    return f"<analysis>a</analysis><coverage>{coverage}</coverage><stop>{stop}</stop>"


def test_a_verdict_is_read_and_written() -> None:
    read = prompts.parse_text_verdict(verdict("true", "yes | q | E1, E2 | \nno | p || all of it"), VERIFYING)
    covered = Coverage(sub_question="q", covered=True, evidence=("E1", "E2"))
    missing = Coverage(sub_question="p", covered=False, missing="all of it")
    assert read == Verdict(analysis="a", coverage=(covered, missing), stop=True)
    assert not isinstance(read, InvalidOutput)
    assert prompts.parse_text_verdict(prompts.render_text_verdict(read, VERIFYING), VERIFYING) == read


@pytest.mark.parametrize("stop", ["", "TRUE", "True", "yes", "stop", "1", "not true", "true."])
def test_only_the_word_true_stops(stop: str) -> None:
    assert isinstance(prompts.parse_text_verdict(verdict(stop), VERIFYING), InvalidOutput)


@pytest.mark.parametrize("coverage", ["q", "maybe | q | E1 | ", "yes | q", "yes | a | b | c | d"])
def test_coverage_of_another_form_is_rejected(coverage: str) -> None:
    assert isinstance(prompts.parse_text_verdict(verdict("true", coverage), VERIFYING), InvalidOutput)


def test_a_command_is_read_and_written() -> None:
    command = Command(tool="search_library", args={"query": "a\n</b>", "limit": 2})
    assert prompts.parse_text_call(prompts.render_text_call(command, ANY), ANY) == command
    for broken in ("<tool>t</tool>", "<tool>t</tool><args>[1]</args>", "<tool>t</tool><args>{</args>"):
        assert isinstance(prompts.parse_text_call(broken, ANY), InvalidOutput)


def test_an_analysis_is_read_and_written() -> None:
    analysis = Analysis(summary="s", sub_questions=("a?", "b?"), relevant_tools=("t", "u"), considerations="c")
    assert prompts.parse_text_analysis(prompts.render_text_analysis(analysis, ANY), ANY) == analysis
    empty = "<summary>s</summary><sub_questions></sub_questions><tools></tools><considerations></considerations>"
    assert isinstance(prompts.parse_text_analysis(empty, ANY), InvalidOutput)


def test_a_report_in_text_takes_the_question_for_a_title_it_lacks() -> None:
    form = GENERATOR.find_format("text")
    assert form
    inputs = planner_input()
    draft = form.parse("It is blue.", ANY or inputs)  # type: ignore[arg-type]
    assert draft == ReportDraft(title=QUESTION, answer="It is blue.", sections=())
    assert isinstance(form.parse("<think>only</think>", ANY or inputs), InvalidOutput)  # type: ignore[arg-type]


def test_every_text_prompt_states_its_format_and_every_role_has_rules() -> None:
    assert [role.find_format("text") is not None for role in graph.roles] == [True] * 5
    assert set(extend_role(PLANNER).rules) == {"oracle", "random", "random-words"}
    others: list[Any] = [ANALYST, EXECUTOR, VERIFIER, GENERATOR]
    assert all(set(extend_role(role).rules) == {"world"} for role in others)
    form = ANALYST.find_format("text")
    assert form
    messages = form.render(AnalystInput(question=QUESTION, tools=()))
    assert "<sub_questions>" in messages[-1].text
    assert QUESTION in messages[-1].text
