"""A last message as a report: what is short is the answer, what is quoted or named is cited, and headings stay."""

from uuid import UUID

from offing.core.report import Evidence, ReportDraft
from offing.core.tool import SourceSpan
from offing.langchain.report import draft_report

SOURCE = UUID(int=1)
SEEN = Evidence("E1", SourceSpan(SOURCE, 0, 40), "The roof of the hall was built in 1907.", SOURCE, "Halls")


def draft(text: str, *evidence: Evidence) -> ReportDraft:
    report = draft_report("When?", text, evidence)
    assert report is not None
    return report


def test_a_short_answer_is_the_whole_report() -> None:
    report = draft("In 1907.")
    assert (report.title, report.answer, report.sections) == ("When?", "In 1907.", ())
    assert "no source" in report.limits


def test_silence_is_no_report() -> None:
    assert draft_report("When?", " \n", ()) is None


def test_words_quoted_from_a_passage_cite_it_and_a_passage_that_is_named_is_named_once() -> None:
    assert draft('It says "the roof of the hall" was old.', SEEN).answer.endswith("was old.")
    assert draft('It says "built in 1907" there.', SEEN).answer.endswith("there. [E1]")
    assert draft('It says "built in 1907" [E1].', SEEN).answer.count("E1") == 1


def test_a_quote_in_a_section_is_cited_by_its_words() -> None:
    text = f"It is old.\n\n{'The hall stands. ' * 30}\nIt was \u201cbuilt in 1907\u201d, \u201cshort\u201d ago."
    last = draft(text, SEEN).sections[0].sentences[-1]
    assert [(c.evidence, c.quote) for c in last.citations] == [("E1", "built in 1907")]


def test_a_long_answer_keeps_its_headings_and_becomes_sentences() -> None:
    text = f"It was 1907.\n\n## Why\n{'The hall was old. ' * 30}\n## How\nWith iron. And glass."
    report = draft(text)
    assert report.answer == "It was 1907."
    assert [section.heading for section in report.sections] == ["Why", "How"]
    assert [s.text for s in report.sections[1].sentences] == ["With iron.", "And glass."]


def test_a_long_first_paragraph_loses_nothing() -> None:
    text = "word " * 200
    report = draft(text)
    assert report.answer == ""
    assert report.sections[0].sentences[0].text == text.strip()
