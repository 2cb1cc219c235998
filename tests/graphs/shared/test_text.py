"""What graphs share: text forms are read strictly, what is written is read back, and values of tools are kept."""

from typing import Any

import pytest

from offing.core.tool import ToolResult, ToolStatus
from offing.sdk import DraftCitation, DraftSection, DraftSentence, InvalidOutput, Message, ReportDraft
from offing_graphs.shared.findings import render_value
from offing_graphs.shared.prompt_parts import add_format_rules
from offing_graphs.shared.tagged_text import parse_labeled, parse_tagged, parse_whole, render_tagged
from offing_graphs.shared.text_reports import parse_call, parse_report, render_call, render_report


def result(content: dict[str, Any], status: ToolStatus = ToolStatus.OK) -> ToolResult:
    return ToolResult(1, "look", {}, status, content)


def test_tagged_blocks_are_read_with_their_positions() -> None:
    text = " <a> one\ntwo </a>\n<b></b> "
    blocks = parse_tagged(text, ("a", "b"))
    assert not isinstance(blocks, InvalidOutput)
    assert [b.text for b in blocks.values()] == ["one\ntwo", ""]
    assert [text[b.start : b.end] for b in blocks.values()] == ["<a> one\ntwo </a>", "<b></b>"]


def test_what_was_thought_aloud_is_no_part_of_the_answer() -> None:
    text = "<think><a>no</a></think>\n<a>yes</a>"
    blocks = parse_tagged(text, ("a",))
    assert not isinstance(blocks, InvalidOutput)
    assert blocks["a"].text == "yes"
    message = parse_whole(text)
    assert message is not None
    assert message.text == "<a>yes</a>"
    assert text[message.start : message.end] == message.text
    assert parse_whole("<think>only</think> ") is None


@pytest.mark.parametrize(
    "text",
    ["", "<a>x</a>", "<b>x</b><a>y</a>", "well, <a>x</a><b>y</b>", "<a>x</a> and <b>y</b>", "<a>x</a><b>y</b>."],
)
def test_blocks_out_of_order_missing_or_among_other_words_are_rejected(text: str) -> None:
    assert isinstance(parse_tagged(text, ("a", "b")), InvalidOutput)


def test_an_optional_block_may_be_missing() -> None:
    blocks = parse_tagged("<b>y</b>", ("a", "b"), optional=("a",))
    assert not isinstance(blocks, InvalidOutput)
    assert list(blocks) == ["b"]


def test_written_blocks_are_read_back() -> None:
    blocks = parse_tagged(render_tagged([("a", "x"), ("b", "y z")]), ("a", "b"))
    assert not isinstance(blocks, InvalidOutput)
    assert {name: b.text for name, b in blocks.items()} == {"a": "x", "b": "y z"}


def test_labelled_sections_run_until_the_next_label() -> None:
    text = "Why: because\nof this: yes\nWhat: it"
    blocks = parse_labeled(text, ("Why", "What"))
    assert not isinstance(blocks, InvalidOutput)
    assert [b.text for b in blocks.values()] == ["because\nof this: yes", "it"]
    assert text[blocks["What"].start : blocks["What"].end] == "What: it"


@pytest.mark.parametrize("text", ["", "Why: a", "What: a\nWhy: b", "Why: a\nWhat: b\nWhat: c", "So.\nWhy: a\nWhat: b"])
def test_sections_missing_twice_out_of_order_or_introduced_are_rejected(text: str) -> None:
    assert isinstance(parse_labeled(text, ("Why", "What")), InvalidOutput)


@pytest.mark.parametrize("args", [{}, {"query": 'a "b" {c}\nd', "limit": 3}, {"nested": {"a": [1]}}])
def test_a_written_call_is_read_back(args: dict[str, Any]) -> None:
    assert parse_call(render_call("look_up", args)) == ("look_up", args)
    assert parse_call(" look_up ") == ("look_up", {})


@pytest.mark.parametrize("text", ["", "look up this", "look [1]", 'look {"a": 1} now', 'look {"a": }', "{}"])
def test_what_is_no_call_is_rejected(text: str) -> None:
    assert isinstance(parse_call(text), InvalidOutput)


DRAFT = ReportDraft(
    title="Tides",
    answer="Twice a day [E1].",
    sections=(
        DraftSection(
            heading="When",
            sentences=(
                DraftSentence(
                    text="They come twice.",
                    citations=(
                        DraftCitation(evidence="E1", quote='He said "twice"] a\\day.'),
                        DraftCitation(evidence="E2"),
                    ),
                ),
                DraftSentence(text="Nobody knows why."),
            ),
        ),
        DraftSection(heading="", sentences=(DraftSentence(text="More."),)),
    ),
    limits="Not much.",
)


def test_a_written_report_is_read_back() -> None:
    assert parse_report(render_report(DRAFT), "other") == DRAFT
    bare = ReportDraft(title="T", answer="", sections=())
    assert parse_report(render_report(bare), "other") == bare


def test_words_copied_without_escapes_are_read_as_they_stand() -> None:
    draft = parse_report('- So. [E3: "the "long\\way" round"]', "T")
    assert not isinstance(draft, InvalidOutput)
    assert draft.title == "T"
    assert draft.sections[0].sentences[0].citations == (DraftCitation(evidence="E3", quote='the "long\\way" round'),)


def test_a_text_without_headings_is_a_short_answer() -> None:
    assert parse_report("It is\nblue [E1].", "T") == ReportDraft(title="T", answer="It is blue [E1].", sections=())
    assert isinstance(parse_report(" \n", "T"), InvalidOutput)


def test_values_of_a_tool_are_kept_as_json_also_when_there_are_none_for_certain() -> None:
    assert render_value(result({"values": ["b"], "closed": False})) == '{"closed": false, "values": ["b"]}'
    assert render_value(result({"values": [], "closed": True})) == '{"closed": true, "values": []}'
    assert render_value(result({"values": [], "closed": False})) == ""
    assert render_value(result({"passages": []})) == ""
    assert render_value(result({"values": ["b"]}, ToolStatus.FAILED)) == ""


def test_rules_of_a_form_are_the_last_part_of_the_last_message() -> None:
    messages = add_format_rules((Message("system", ("s",)), Message("user", ("u",))), "So.")
    assert [m.role for m in messages] == ["system", "user"]
    assert messages[-1].parts[0] == "u"
    assert messages[-1].parts[-1].endswith("\nSo.")
