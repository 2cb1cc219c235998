"""The roles without a model: how questions come apart, how text is cut, what is found; every quote verifies."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.core.citation import verify_citations
from offing.core.report import Evidence
from offing.core.run import StopReason
from offing.core.tool import SourceSpan
from offing_graphs.agentflow import graph
from offing_graphs.agentflow.extractive import (
    analyze_task,
    build_tool_call,
    verify_coverage,
    write_report,
)
from offing_graphs.agentflow.schemas import ExecutorInput, VerifierInput
from offing_graphs.extractive.arguments import build_arguments
from offing_graphs.extractive.arithmetic import find_expression
from offing_graphs.extractive.question import extract_key_phrases, split_question
from offing_graphs.extractive.text_units import UnitKind, split_units, strip_markup
from offing_graphs.extractive.word_forms import drop_border_pairs, extract_stems, extract_terms
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.schemas import Plan, TaskContext, ToolCard, WriterInput
from tests.graphs.corpus import harbour
from tests.graphs.in_memory_context import NAMES, SPECS, InMemoryContext, Library, carry_out


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("What is a berth?", ["What is a berth"]),
        ("Could you please tell me what a berth is?", ["What a berth is"]),
        (
            "How do I validate bodies in fastify and what happens when validation fails?",
            ["How do I validate bodies in fastify", "What happens when validation fails (fastify)"],
        ),
        (
            "Compare Pool and BalancedPool in undici",
            ["Compare Pool and BalancedPool in undici", "Pool in undici", "BalancedPool in undici"],
        ),
        (
            "Compare trams with buses in terms of cost",
            ["Compare trams with buses in terms of cost", "trams: cost", "buses: cost"],
        ),
        (
            "What are the differences between onRequest and preHandler hooks?",
            ["What are the differences between onRequest and preHandler hooks", "onRequest hooks", "preHandler hooks"],
        ),
        (
            "What are the fees, rules and hours of the harbour?",
            [f"What are the {x} of the harbour" for x in ("fees", "rules", "hours")],
        ),
        ("How do hooks and decorators work?", ["How do hooks work", "How do decorators work"]),
        ("What does a berth cost? If it is not documented, say so.", ["What does a berth cost"]),
        ("What does a berth cost, and if no page is useful, say so.", ["What does a berth cost"]),
        ("What happens if the harbour is closed?", ["What happens if the harbour is closed"]),
        (
            "What is a berth? When does it say that it opens?",
            ["What is a berth", "When does it say that it opens (berth)"],
        ),
        ("What is a berth? If it is unknown, please say that it is.", ["What is a berth"]),
        (
            "If a ferry is late, does the page say that it waits?",
            ["If a ferry is late, does the page say that it waits"],
        ),
        (
            "Compare how fastify and undici handle timeouts, and which defaults do they use?",
            ["How fastify handles timeouts", "How undici handles timeouts", "Which defaults do they use (timeouts)"],
        ),
        ("Compare how cats and dogs sleep", ["How cats sleep", "How dogs sleep"]),
        ("How do I use it with certificates, cookies and interceptors?", None),
        (
            "What is the Tern? How many people does it carry?",
            ["What is the Tern", "How many people does it carry (Tern)"],
        ),
        ("What is headersTimeout? Also tell me about bodyTimeout.", ["What is headersTimeout", "bodyTimeout"]),
        ("We run fastify 5. How do we log?", ["How do we log"]),
        ("¿Cuál es la capital?", None),
        ("接続はどのように再利用されますか\uff1f", None),
        ("   ", None),
        ("???", None),
    ],
)
def test_a_question_comes_apart_into_what_can_be_looked_up(question: str, parts: list[str] | None) -> None:
    result = split_question(question)
    assert 1 <= len(result) <= 8
    if parts is not None:
        assert list(result) == parts


def test_a_follow_up_is_about_what_was_asked_before() -> None:
    assert split_question("And how fast is it?", ("What is the Heron?",)) == ("How fast is it (Heron)",)
    assert split_question("How fast is the Tern?", ("What is the Heron?",)) == ("How fast is the Tern",)


@given(st.text(max_size=200))
def test_any_question_gives_one_to_eight_parts(question: str) -> None:
    assert 1 <= len(split_question(question)) <= 8
    extract_key_phrases(question)
    find_expression(question)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is 12% of 350?", "12 / 100 * 350"),
        ("Calculate (3 + 4) * 2", "(3 + 4) * 2"),
        ("2^10 = ?", "2**10"),
        ("what is 7 times 6", "7 * 6"),
        ("1,200 / 4", "1200 / 4"),
        ("What changed between 1.2.3 and 1.2.4?", ""),
        ("What happened on 2023-04-05?", ""),
        ("What is HTTP/2?", ""),
        ("Which pages, 3-10, describe the gauge?", ""),
        ("How many pairs were counted in 2023?", ""),
    ],
)
def test_a_sum_is_found_where_one_is_asked_for(question: str, expected: str) -> None:
    assert find_expression(question) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It works, e.g. like this. Next.", ["It works, e.g. like this.", "Next."]),
        ("Dr. A. Reed et al. Say so. Fig. 3 shows it.", None),
        ("Use `a. B()` here. Then stop.", ["Use `a. B()` here.", "Then stop."]),
        ("Version 3.5 is out. It is new.", ["Version 3.5 is out.", "It is new."]),
        ("- one\n- two\n  goes on\n- three", ["one", "two\n  goes on", "three"]),
        ("# Head\n\nText here.\n\n| a | b |\n|---|---|\n| 1 | 2 |", ["# Head", "Text here.", "| a | b |", "| 1 | 2 |"]),
        ("Before:\n\n```js\nlet a = 1\n```\n\nAfter.", ["Before:", "let a = 1", "After."]),
        ("これは一つ。これは二つ。", ["これは一つ。", "これは二つ。"]),
        ("هل هذا سؤال؟ نعم.", ["هل هذا سؤال؟", "نعم."]),
        ("[ref]: https://example.org\n\nText.", ["Text."]),
    ],
)
def test_a_text_is_cut_where_a_reader_would(text: str, expected: list[str] | None) -> None:
    results = [text[u.start : u.end] for u in split_units(text)]
    if expected is not None:
        assert results == expected


def test_code_that_begins_before_the_passage_does_is_no_prose() -> None:
    text = "  })\n  done()\n}, preHandler: function (request, reply, done) {\n  done()\n}\n"
    assert {u.kind for u in split_units(text)} == {UnitKind.CODE}


MARKED = st.text(alphabet=st.sampled_from("ab. \n#-*`|[]()!>1_é😀。"), max_size=120)


@given(st.one_of(MARKED, st.text(max_size=120)))
def test_units_are_exact_ordered_and_apart(text: str) -> None:
    end = 0
    for unit in split_units(text):
        assert end <= unit.start < unit.end <= len(text)
        assert text[unit.start : unit.end].strip()
        end = unit.end


@pytest.mark.parametrize(
    ("marked", "seen"),
    [
        ("See [the **report**](./report.md#top) now", "See the report now"),
        ("Use `__proto__` and *never* __this__", "Use __proto__ and never this"),
        ("A `Promise<void>` is <b>bold</b>", "A Promise<void> is bold"),
        ("![alt](x.png) after", "alt after"),
        ("snake_case_name stays", "snake_case_name stays"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("| a | `b` |", "a · b"),
        ("&lt;tag&gt; &amp; more", "<tag> & more"),
    ],
)
def test_a_reader_sees_the_words_without_the_marks(marked: str, seen: str) -> None:
    assert strip_markup(marked) == seen


def test_words_are_the_same_in_all_their_forms() -> None:
    (keep_alive,) = (t for t in extract_terms("keep-alive") if t.parts)
    assert keep_alive.match(extract_stems("the keepAliveTimeout option")) == 0.9
    assert keep_alive.match(extract_stems("keep_alive")) == 1.0
    assert keep_alive.match(extract_stems("keep it alive")) == 0.9
    assert keep_alive.match(extract_stems("keep it")) == 0.25
    (pool,) = extract_terms("pools")
    assert pool.match(extract_stems("a Pool")) == 1.0
    assert 0 < pool.match(extract_stems("a MockPool")) < 1
    assert [t.text for t in extract_terms("what is it?")] == ["what", "is", "it"]


def test_a_chinese_question_has_no_pairs_with_function_words() -> None:
    assert [t.text for t in extract_terms("黄河的长度是多少")] == ["黄河", "长度"]
    assert extract_terms("这是什么")


def test_pairs_across_the_border_of_two_words_are_left_out() -> None:
    question_terms = extract_terms("首都北京")
    vocabulary = frozenset({"首都", "北京"})
    assert [t.text for t in drop_border_pairs(question_terms, vocabulary)] == ["首都", "北京"]
    assert len(drop_border_pairs(question_terms, frozenset({"首都"}))) == 3


RIVERS = "# 河流\n\n黄河全长约5464公里\uff0c发源于青海省。长江全长约6300公里\uff0c注入东海。\n"


@pytest.mark.parametrize(
    ("question", "answer"),
    [("黄河全长是多少", "5464"), ("长江注入哪里", "东海")],
)
async def test_a_chinese_question_is_answered(question: str, answer: str) -> None:
    context = InMemoryContext(Library([("rivers.md", RIVERS)]), question)
    await carry_out(context, graph)
    assert context.report.stop_reason == StopReason.ANSWERED
    assert context.report.answer is not None
    assert answer in context.report.answer.text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When was the lighthouse painted?", "The lighthouse was painted white."),
        ("How many steps does the lighthouse have?", "The lighthouse has steps of stone."),
        ("Did Harald Vinter paint the lighthouse white?", "The lighthouse was painted white."),
    ],
)
async def test_without_the_date_number_or_name_a_part_is_not_answered(question: str, text: str) -> None:
    context = InMemoryContext(Library([("light.md", f"# Lighthouse\n\n{text}\n")]), question)
    await carry_out(context, graph)
    assert context.report.stop_reason == StopReason.NOTHING_FOUND


async def test_the_short_answer_names_the_part_that_stays_unanswered() -> None:
    question = "What does a berth cost, and when was the chandlery of Bremen repainted?"
    context = InMemoryContext(harbour(), question)
    await carry_out(context, graph)
    assert context.report.answer is not None
    assert "12 crowns" in context.report.answer.text
    assert "Not answered: “When was the chandlery of Bremen repainted”." in context.report.answer.text


QUESTIONS = [
    ("How often is the tide gauge calibrated?", "twice a year"),
    ("When was the tide gauge installed?", "1987"),
    ("What is the default of highWaterAlarm?", "4.2"),
    ("How many seconds is the alarm delay?", "90"),
    ("How many cars does the Heron carry?", "40 cars"),
    ("When does the Tern first depart?", "08:15"),
    ("What does a berth cost?", "12 crowns"),
    ("How can one pay?", "card or in cash"),
    ("Who may close the harbour?", "Alma Reed"),
    ("Why is anchoring in the fairway forbidden?", "blocks the ferries"),
    ("Are drones permitted?", "not permitted"),
    ("How many breeding pairs were counted in 2023?", "388"),
    ("Why did the pairs decline?", "storms"),
    ("How do I change a ticket?", "show it at the office"),
    ("Where are tickets sold?", "north quay"),
]


@pytest.mark.parametrize(("question", "expected"), QUESTIONS)
async def test_a_question_about_the_documents_is_answered_with_the_words_that_answer_it(
    question: str, expected: str
) -> None:
    ctx = InMemoryContext(harbour(), question)
    await carry_out(ctx, graph)
    answer = ctx.report.answer
    assert answer is not None
    assert expected in answer.text
    assert answer.is_supported
    assert ctx.report.stop_reason == StopReason.ANSWERED
    assert "without a language model" in ctx.report.limits


@pytest.mark.parametrize(
    "question",
    ["What is the salary of the harbour master?", "Who won the regatta of 1999?", "qwertz uiop?", "¿Dónde está?"],
)
async def test_what_the_documents_do_not_say_is_said_to_be_missing(question: str) -> None:
    ctx = InMemoryContext(harbour(), question)
    await carry_out(ctx, graph)
    assert ctx.report.stop_reason == StopReason.NOTHING_FOUND
    assert ctx.report.status == "partial"
    assert "Not found" in ctx.report.limits
    assert "Searched for" in ctx.report.limits


async def test_an_uncovered_part_is_looked_for_in_other_words_and_then_given_up() -> None:
    ctx = InMemoryContext(harbour(), "What does a berth cost and what is the wifi password?")
    await carry_out(ctx, graph)
    queries = [c.args["query"] for c in ctx.calls if c.tool == "search_library"]
    assert len(queries) == len(set(queries)) > 2
    assert ctx.turns <= 10
    assert ctx.report.stop_reason == StopReason.ANSWERED
    assert "wifi" in ctx.report.limits
    assert "12 crowns" in ctx.report.sections[0].sentences[0].text


async def test_a_sum_is_calculated_and_a_hit_is_read_on() -> None:
    ctx = InMemoryContext(harbour(), "What is 12% of 350?")
    await carry_out(ctx, graph)
    assert [c.tool for c in ctx.calls] == ["calculate"]
    assert ctx.report.answer is not None
    assert "= 42" in ctx.report.answer.text
    ctx = InMemoryContext(harbour(), "How often is the tide gauge calibrated?")
    await carry_out(ctx, graph)
    assert [c.tool for c in ctx.calls] == ["search_library", "read_source"]


async def test_the_same_library_without_a_tool_is_used_as_far_as_it_goes() -> None:
    ctx = InMemoryContext(harbour(), "How often is the tide gauge calibrated?", specs=SPECS[:1])
    await carry_out(ctx, graph)
    assert {c.tool for c in ctx.calls} == {"search_library"}
    ctx = InMemoryContext(harbour(), "How often is the tide gauge calibrated?", specs=())
    await carry_out(ctx, graph)
    assert ctx.report.status == "partial"


TEXT = st.one_of(
    MARKED,
    st.text(max_size=300),
    st.lists(
        st.sampled_from(
            [
                "Tide gauge. ",
                "gauges `tide`\n",
                "- the *tide*\n",
                "| gauge |\n",
                "[E1] ",
                "“gauge” ",
                "\n\n",
                "e\u0301 ",
            ]
        )
    ).map("".join),
)


@settings(max_examples=150)
@given(st.lists(TEXT, min_size=1, max_size=4), st.integers(0, 50))
def test_every_quote_of_a_model_free_report_verifies_for_any_text(texts: list[str], start: int) -> None:
    results = [
        Evidence(
            f"E{n}", SourceSpan(NAMES, start + n * 1_000, start + n * 1_000 + len(t)), t, NAMES, "Gauge [E2] **x**"
        )
        for n, t in enumerate(texts, 1)
        if t
    ]
    case = TaskContext(question="What is the tide gauge?")
    inputs = WriterInput(
        question=case.question,
        analysis=analyze_task(case),
        evidence=passages_from_evidence(results),
        reason=StopReason.TURN_LIMIT,
    )
    by_span = {e.span: e.text for e in results}
    report = verify_citations(
        write_report(inputs), {e.id: e for e in results}, by_span.__getitem__, StopReason.TURN_LIMIT
    )
    for sentence in report.sentences():
        assert not sentence.rejected
    for section in report.sections:
        assert all(s.is_supported for s in section.sentences)


def card(**properties: Any) -> ToolCard:
    return ToolCard(name="t", description="", parameters={"properties": properties})


@pytest.mark.parametrize(
    ("context", "tool", "expected"),
    [
        ("query: tides", card(query={}), {"query": "tides"}),
        ("query: tides", card(q={"maxLength": 3}), {"q": "tid"}),
        ("expression: 1 + 1", card(expression={}), {"expression": "1 + 1"}),
        ("passage: E9", card(source={}, start={}), {}),
        ("some prose of a model", card(query={}), {"query": "the goal"}),
        ("query: tides", card(), {}),
    ],
)
def test_arguments_fit_the_schema_of_the_tool(context: str, tool: ToolCard, expected: dict[str, Any]) -> None:
    plan = Plan(justification="", context=context, sub_goal="the goal", tool="t")
    assert build_arguments(plan, tool, ()) == expected
    assert build_tool_call(ExecutorInput(question="q", plan=plan, tool=tool)).args == expected


async def test_the_verifier_stops_by_measure_and_says_what_is_missing() -> None:
    ctx = InMemoryContext(harbour(), "What does a berth cost and what is the wifi password?")
    await carry_out(ctx, graph)
    inputs = next(g for name, g in ctx.role_inputs if name == "verifier")
    assert isinstance(inputs, VerifierInput)
    verdict = verify_coverage(inputs)
    assert [c.covered for c in verdict.coverage] == [True, False]
    assert "wifi" in verdict.coverage[1].missing
    assert verdict.stop is False
