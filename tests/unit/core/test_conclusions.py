"""Conclusions: what a sentence without a citation must have to follow from others, and how it is shown."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from offing.core.citation import ClaimContext
from offing.core.claim_table import analyze_claims, list_marks
from offing.core.conclusions import mark_conclusions
from offing.core.report import (
    Citation,
    ClaimJudgment,
    ClaimVerdict,
    Conclusion,
    Layout,
    Report,
    ReportStatus,
    Section,
    Sentence,
    VersionOrigin,
)
from offing.core.report_document import build_report_document
from offing.core.report_edit import EditedSection, EditedSentence, ReportEdit, apply_edit
from offing.core.report_formats import compute_report_score, render_html, render_markdown, report_to_json
from offing.core.report_record import report_from_record, report_to_record
from offing.core.tool import SourceSpan

QUOTES = ("The Heron carries 40 cars.", "The Gannet carries 25 cars.", "The tide gauge was built in 1911.")
CITATIONS = tuple(
    Citation(n, SourceSpan(UUID(int=7), 100 * n, 100 * n + len(q)), q, UUID(int=n), "Ferries")
    for n, q in enumerate(QUOTES, 1)
)
HERON, GANNET, GAUGE = (Sentence(f"s{n}", quote, (n,)) for n, quote in enumerate(QUOTES, 1))
MORE = "Therefore the Heron carries more cars than the Gannet."


def report_with(
    text: str, *, layout: Layout = Layout.STATEMENT, calculated: str = "", heron: Sentence = HERON
) -> Report:
    """A report whose last sentence has this text and no citation."""
    last = Sentence("s4", text, layout=layout)
    sections = (Section("Ferries", (heron, GANNET, last)), Section("Tides", (GAUGE,)))
    report = Report("Harbor", ReportStatus.COMPLETE, "answered", None, sections, CITATIONS)
    return mark_conclusions(report, ClaimContext("Which ferry is larger?", (calculated,) if calculated else ()))


def last_of(report: Report) -> Sentence:
    return report.sections[0].sentences[-1]


@pytest.mark.parametrize(
    ("text", "follows_from"),
    [
        (MORE, ("s1", "s2")),
        ("My conclusion is that the Heron, with 40 cars, is the larger ferry.", ("s1",)),
        ("Together the ferries carry 40 and 25 cars.", ("s1", "s2")),
        ("The Heron carries more cars than the Gannet.", ()),
        ("Therefore the Heron carries 15 cars more than the Gannet.", ()),
        ("Therefore whales swim in the northern sea.", ()),
        ("Therefore the gauge of the tide is older than 1912.", ()),
    ],
)
def test_a_conclusion_says_so_and_its_values_stand_in_sentences_that_speak_of_the_same(
    text: str, follows_from: tuple[str, ...]
) -> None:
    sentence = last_of(report_with(text))
    assert (sentence.conclusion.sentences if sentence.conclusion else ()) == follows_from
    assert sentence.verdict is (ClaimVerdict.CONCLUSION if follows_from else None)
    assert not sentence.is_supported


def test_a_number_of_a_conclusion_may_be_calculated() -> None:
    sentence = last_of(report_with("Therefore the Heron carries 15 cars more than the Gannet.", calculated="15"))
    assert sentence.conclusion == Conclusion(("s1", "s2"), (1, 2))


def test_nothing_follows_from_a_sentence_that_is_not_supported() -> None:
    doubted = replace(HERON, judgment=ClaimJudgment(ClaimVerdict.PARTLY, "It may."))
    assert last_of(report_with("Therefore the Heron carries 40 cars.", heron=doubted)).verdict is None


def test_a_header_of_a_table_is_no_conclusion() -> None:
    assert last_of(report_with(MORE, layout=Layout.HEADER)).conclusion is None


def test_a_conclusion_is_a_claim_with_its_own_verdict_and_is_not_counted_as_supported() -> None:
    report = report_with(MORE)
    claim = next(claim for claim in analyze_claims(report).claims if claim.sentence.id == "s4")
    assert (claim.verdict, claim.citations) == (ClaimVerdict.CONCLUSION, (1, 2))
    assert [one.id for one in claim.follows_from] == ["s1", "s2"]
    assert list_marks(claim.sentence) == ("conclusion from [1][2]",)
    assert compute_report_score(report) == compute_report_score(report_with("The Heron is larger."))


def test_every_export_says_what_a_conclusion_follows_from() -> None:
    report = report_with(MORE)
    assert f"{MORE} *(conclusion from \\[1\\]\\[2\\])*" in render_markdown(report)
    assert "Conclusions from them: 1." in render_markdown(report)
    page = render_html(report)
    assert '<em class="conclusion">(conclusion from [1][2])</em>' in page
    assert "follows from \u201cThe Heron carries 40 cars.\u201d; \u201cThe Gannet carries 25 cars.\u201d" in page
    exported = report_to_json(report)
    assert exported["claims"][2]["verdict"] == "conclusion"
    assert (
        exported["claims"][2]["follows_from"] == exported["sections"][0]["sentences"][2]["follows_from"] == ["s1", "s2"]
    )
    printed = str(build_report_document(report, datetime(2026, 1, 1, tzinfo=UTC)))
    assert "conclusion from [1][2]" in printed


def test_a_conclusion_is_recorded_and_read_back() -> None:
    report = report_with(MORE)
    assert report_from_record(report_to_record(report)) == report


def test_a_person_who_removes_what_a_conclusion_follows_from_leaves_no_conclusion() -> None:
    report = report_with(MORE)
    texts = {citation.span: citation.quote for citation in CITATIONS}

    def keep(s: Sentence) -> EditedSentence:
        return EditedSentence(s.text, s.citations, s.layout, s.id)

    tides, conclusion = report.sections[1].sentences[0], last_of(report)
    edit = ReportEdit(report.title, None, (EditedSection("Left", (keep(tides), keep(conclusion))),))
    by = VersionOrigin("Ann", 1)
    edited = apply_edit(report, edit, (), lambda span: texts.get(span, ""), ClaimContext(), by)
    assert edited.sentences()[-1].verdict is None
