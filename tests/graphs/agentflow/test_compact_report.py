"""The report that a small model writes in compact words: the answer and the records that it cites."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.errors import InvalidInput
from offing.sdk import InvalidOutput, ReportDraft
from offing.tools.environment import extend_role
from offing_graphs.agentflow import graph
from offing_graphs.agentflow.roles import GENERATOR
from offing_graphs.shared.schemas import Analysis, MemoryRecord, WriterInput
from offing_world.agentflow.compact_report import COMPACT_FORMAT, parse_report, render_prompt, render_report
from offing_world.compact_answer import build_cited_report
from offing_world.compact_notation import VOCABULARY
from tests.graphs.world_runs import held_out, trial

QUESTION = "Who taught Velan Torsk?"


def record(relation: str, *values: str, tool: str = "birch", closed: bool = False, status: str = "ok") -> MemoryRecord:
    value = {"relation": relation, "entity": "Velan Torsk", "values": values, "closed": closed}
    args: dict[str, Any] = {"relation": relation, "entity": "Velan Torsk"}
    text = json.dumps(value) if status == "ok" else ""
    return MemoryRecord(turn=1, sub_goal="g", tool=tool, args=args, status=status, finding="", value=text)


def writer_input(*memory: MemoryRecord) -> WriterInput:
    analysis = Analysis(summary="s", sub_questions=(QUESTION,))
    return WriterInput(question=QUESTION, analysis=analysis, memory=memory, reason="answered")


INPUTS = writer_input(
    record("home", "Marel Hollow"),
    record("teacher", "Mira Olden"),
    record("teacher", status="failed"),
    record("born", "1204"),
    record("twin"),
    record("twin", closed=True),
)


def parsed(text: str, inputs: WriterInput = INPUTS) -> ReportDraft:
    draft = parse_report(text, inputs)
    assert isinstance(draft, ReportDraft), draft
    return draft


def texts(draft: ReportDraft) -> list[str]:
    return [sentence.text for section in draft.sections for sentence in section.sentences]


def test_the_prompt_names_every_call_with_its_result() -> None:
    (message,) = render_prompt(INPUTS)
    assert message.text == (
        "ask e0 r0 m0 t1 r1 e0 result e1 m1 t1 r0 e0 result e2 m2 t1 r0 e0 result failed m3 t1 r10 e0 result 1 2 0 4 "
        "m4 t1 r6 e0 result none m5 t1 r6 e0 result closed"
    )
    assert set(message.text.split()) <= set(VOCABULARY)


def test_the_report_has_the_answer_and_the_sentences_that_the_model_wrote_and_no_other() -> None:
    draft = parsed("answer e2 m1")
    assert (draft.answer, texts(draft)) == ("Mira Olden", ["teacher of Velan Torsk: Mira Olden."])


def test_a_wrong_answer_with_wrong_citations_is_not_mended() -> None:
    draft = parsed("answer 1 2 0 4 m0")
    assert (draft.answer, texts(draft)) == ("1204", ["home of Velan Torsk: Marel Hollow."])


def test_an_answer_may_have_no_citation_several_values_or_say_that_there_is_none() -> None:
    assert parsed("answer e2").sections == ()
    assert parsed("answer e1 e2 m0").answer == "Marel Hollow, Mira Olden"
    assert parsed("answer not answerable m5").answer == "not answerable"
    assert parsed("answer unknown").answer == "unknown"


def test_a_tool_without_an_answer_is_not_cited_as_saying_that_there_is_none() -> None:
    assert texts(parsed("answer unknown m4 m5")) == [
        "twin of Velan Torsk: the tool returned nothing.",
        "twin of Velan Torsk: there is none.",
    ]


HOSTILE = [
    "",
    "answer",
    "answer m1",
    "e2 m1",
    "Answer e2 m1",
    "answer e2 m1 e1",
    "answer e2 m1 m1",
    "answer e2 m2",
    "answer e2 m6",
    "answer e2 m01",
    "answer e2 m",
    "answer e3",
    "answer e02",
    "answer e2 e2",
    "answer e2 1",
    "answer 0 4",
    "answer 12",
    "answer \u00b2 m1",
    "answer \u0661 m1",
    "answer not",
    "answer unknown e2",
    "answer e2 m1 answer e2 m1",
    "answer e2 m1 </answer>",
    "answer Mira Olden m1",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_words_in_any_other_arrangement_are_rejected(text: str) -> None:
    assert isinstance(parse_report(text, INPUTS), InvalidOutput)


ANSWERS = st.one_of(
    st.sampled_from(["unknown", "not answerable", "Velan Torsk", "Mira Olden, Marel Hollow", "0"]),
    st.integers(0, 10**9).map(str),
)
CITED = st.lists(st.sampled_from(["m0", "m1", "m3", "m4", "m5"]), unique=True)


@given(ANSWERS, CITED)
def test_what_is_written_is_read_again_as_the_same_report(answer: str, cited: list[str]) -> None:
    draft = parsed(" ".join(("answer unknown", *cited))).model_copy(update={"answer": answer})
    words = render_report(draft, INPUTS)
    assert set(words.split()) <= set(VOCABULARY)
    assert words.split()[len(words.split()) - len(cited) :] == cited
    assert parsed(words) == draft


@given(st.lists(st.sampled_from(VOCABULARY), max_size=8), st.booleans())
def test_any_words_are_rejected_or_read_as_what_they_say(words: list[str], begins: bool) -> None:
    text = " ".join(["answer", *words] if begins else words)
    draft = parse_report(text, INPUTS)
    assert isinstance(draft, InvalidOutput) or render_report(draft, INPUTS) == text


def test_a_sentence_that_no_record_states_has_no_words() -> None:
    draft = build_cited_report(QUESTION, "unknown", ())
    section = parsed("answer unknown m1").sections[0]
    sentence = section.sentences[0].model_copy(update={"text": "teacher of Velan Torsk: Nobody."})
    with pytest.raises(InvalidInput, match="No record states"):
        render_report(
            draft.model_copy(update={"sections": (section.model_copy(update={"sentences": (sentence,)}),)}), INPUTS
        )


def test_the_generator_has_the_format_in_a_world() -> None:
    assert extend_role(GENERATOR).find_format("compact") is COMPACT_FORMAT


async def test_a_rule_that_writes_in_the_format_answers_as_in_json() -> None:
    for task in held_out(5):
        done = await trial(graph, task, "oracle", prompt_formats={"generator": "compact"})
        assert done.right, task.question
        (call,) = [call for call in done.ctx.role_calls if call.role == "generator"]
        assert call.text.startswith("answer ")


async def test_a_report_of_a_random_planner_is_written_in_the_format_too() -> None:
    for task in held_out(8):
        done = await trial(graph, task, "random", prompt_formats={"generator": "compact"})
        assert done.ctx.report.answer
