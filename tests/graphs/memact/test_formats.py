"""Memory as action: its forms, written and strictly read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.core.tokens import SpanKind
from offing.models.structured_output import parse_output
from offing.sdk import DraftSection, DraftSentence, InvalidOutput, ReportDraft
from offing_graphs.memact import prompts
from offing_graphs.memact.schemas import Act
from offing_world.memact import compact_format
from tests.graphs.memact.builders import DONE, SEARCH, blank, prune, write
from tests.graphs.world_runs import held_out

REPORT = ReportDraft(
    title="Tides",
    answer="Twice a year. [E1]",
    sections=(DraftSection(heading="Found", sentences=(DraftSentence(text="So it is."),)),),
)

ACTS = [SEARCH, prune("r1", note='a "note"\nwith lines'), write("n"), Act(summary="s"), DONE, Act(answer=REPORT)]


@pytest.mark.parametrize("act", [*ACTS, Act(answer=REPORT, found=False)])
def test_what_is_written_is_read_back(act: Act) -> None:
    assert prompts.parse_text_action(prompts.render_text_action(act, blank()), blank()) == act
    assert parse_output(prompts.render_json_action(act, blank()), Act) == act


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('<action>search_library {"query": "x"}</action>', SpanKind.ACTION),
        ('<think>hm</think>\n<memory>prune {"delete_ids": ["r1"]}</memory>', SpanKind.MEMORY_EDIT),
        ("<answer>\nTwice a year. [E1]\n</answer> ", SpanKind.ANSWER),
        ("<nothing_found>No.</nothing_found>", SpanKind.ANSWER),
        ("<summary>All of it.</summary>", SpanKind.SUMMARY),
    ],
)
def test_the_text_format_is_read_strictly_and_kept_unchanged(text: str, kind: SpanKind) -> None:
    act = prompts.parse_text_action(text, blank())
    assert isinstance(act, Act)
    assert prompts.render_text_action(act, blank()) == text
    (span,) = prompts.find_text_spans(text)
    assert span.kind is kind
    assert text[span.start] == "<"
    assert text[span.end - 1] == ">"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "search_library",
        "<action></action>",
        '<action>search_library {"query": }</action>',
        "<action>search_library</action><answer>x</answer>",
        "Here: <answer>x</answer>",
        '<action>prune {"delete_ids": ["r1"]}</action>',
        '<memory>search_library {"query": "x"}</memory>',
        "<summary> </summary>",
        "<answer></answer>",
    ],
)
def test_text_in_another_format_is_rejected(text: str) -> None:
    assert isinstance(prompts.parse_text_action(text, blank()), InvalidOutput)


@settings(max_examples=60)
@given(st.text(max_size=60))
def test_no_text_breaks_a_parser(text: str) -> None:
    question = held_out(1)[0].question
    for form in (prompts.TEXT_FORMAT, compact_format.COMPACT_FORMAT):
        form.parse(text, blank().model_copy(update={"question": question}))
        form.spans(text)


def test_the_schema_that_a_model_is_shown_has_no_place_for_our_own_field() -> None:
    assert "written" not in Act.model_json_schema()["properties"]


@pytest.mark.parametrize("both", [{}, {"tool": "x", "summary": "s"}, {"summary": " "}])
def test_an_act_is_exactly_one_thing(both: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Act.model_validate(both)
