"""Edits of a report by a person: what is checked again, what is kept, and that no citation points to nothing."""

from dataclasses import replace
from uuid import UUID

import pytest

from offing.core.citation import ClaimContext, TextLookup
from offing.core.errors import InvalidInput
from offing.core.report import (
    Citation,
    ClaimCheck,
    ClaimJudgment,
    ClaimVerdict,
    Conflict,
    Evidence,
    Layout,
    Report,
    ReportStatus,
    Section,
    Sentence,
    VersionOrigin,
)
from offing.core.report_edit import (
    CHANGED_TEXT,
    EditedSection,
    EditedSentence,
    NewCitation,
    ReportEdit,
    apply_edit,
    list_needed_spans,
    restore_report,
)
from offing.core.report_formats import render_html, render_markdown
from offing.core.report_record import report_from_record, report_to_record
from offing.core.tool import SourceSpan

TEXT = "The Severn carries 300 tonnes of salt. Lakes lose water. The Wye carries 90 tonnes of salt."
TEXT_ID, SOURCE = UUID(int=7), UUID(int=8)
PERSON = VersionOrigin("Ann", 1, "Clearer")


def span_of(words: str) -> SourceSpan:
    return SourceSpan(TEXT_ID, TEXT.index(words), TEXT.index(words) + len(words))


SEVERN, LAKES, WYE = (f"{part}." for part in TEXT.removesuffix(".").split(". "))
PASSAGE = Evidence("E1", SourceSpan(TEXT_ID, 0, len(TEXT)), TEXT, SOURCE, "Rivers")


def lookup(text: str = TEXT) -> TextLookup:
    return lambda span: text[span.start : span.end] if span.text_id == TEXT_ID else ""


JUDGMENT = ClaimJudgment(ClaimVerdict.PARTLY, "Only the Severn.", 1)
BASE = Report(
    "Salt",
    ReportStatus.COMPLETE,
    "answered",
    Sentence("s1", "The Severn carries 300 tonnes.", (1,), judgment=JUDGMENT),
    (Section("Lakes", (Sentence("s2", "Lakes lose water.", (2,)), Sentence("s3", "Nobody knows more."))),),
    (
        Citation(1, span_of(SEVERN), SEVERN, SOURCE, "Rivers"),
        Citation(2, span_of(LAKES), LAKES, SOURCE, "Rivers"),
    ),
    "Quoted only.",
    "gpt",
    check=ClaimCheck(2, 2, "judge", 1),
)


def edit_of(report: Report) -> ReportEdit:
    """The unchanged report as an edit."""

    def keep(s: Sentence) -> EditedSentence:
        return EditedSentence(s.text, (*s.citations, *s.passages), s.layout, s.id)

    sections = tuple(EditedSection(one.heading, tuple(map(keep, one.sentences))) for one in report.sections)
    return ReportEdit(report.title, keep(report.answer) if report.answer else None, sections, report.limits)


def with_sentences(*sentences: EditedSentence, heading: str = "Lakes") -> ReportEdit:
    return replace(edit_of(BASE), sections=(EditedSection(heading, sentences),))


def apply(edit: ReportEdit, base: Report = BASE, text: str = TEXT) -> Report:
    texts = {span: lookup(text)(span) for span in list_needed_spans(base, edit)}
    return apply_edit(base, edit, [PASSAGE], lambda span: texts.get(span, ""), ClaimContext("Which rivers?"), PERSON)


LAKES_KEPT, REST_KEPT = edit_of(BASE).sections[0].sentences


def test_sentences_that_stay_keep_their_verdicts_and_are_not_marked() -> None:
    edited = apply(with_sentences(REST_KEPT, LAKES_KEPT, heading="Water"))
    assert edited.answer == BASE.answer
    assert edited.sections == (Section("Water", tuple(reversed(BASE.sections[0].sentences))),)
    assert edited.edit == PERSON


def test_a_changed_sentence_is_checked_again_and_loses_the_judgment_of_its_old_text() -> None:
    answer = EditedSentence("The Severn carries 400 tonnes.", (1,), base_id="s1")
    edited = apply(replace(edit_of(BASE), answer=answer))
    assert edited.answer is not None
    assert (edited.answer.unsupported_values, edited.answer.verdict) == (("400",), ClaimVerdict.PARTLY)
    assert (edited.answer.judgment, edited.answer.is_edited, edited.answer.id) == (None, True, "s1")
    assert edited.check == ClaimCheck(2, 0, "judge", 1, CHANGED_TEXT)


def test_a_new_sentence_gets_a_new_id_and_may_cite_words_that_the_run_has_read() -> None:
    new = EditedSentence("The Wye carries 90 tonnes.", (NewCitation(PASSAGE.span, WYE),))
    edited = apply(with_sentences(LAKES_KEPT, new))
    added = edited.sections[0].sentences[1]
    assert (added.id, added.citations, added.verdict, added.is_edited) == ("s4", (3,), ClaimVerdict.SUPPORTED, True)
    assert edited.citations[-1] == Citation(3, span_of(WYE), WYE, SOURCE, "Rivers")


def test_the_same_words_get_the_number_that_they_have() -> None:
    new = EditedSentence("Water is lost.", (NewCitation(PASSAGE.span, LAKES), 2))
    assert apply(with_sentences(LAKES_KEPT, new)).sections[0].sentences[1].citations == (2,)


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        (EditedSentence("It is so.", (9,)), r"no citation \[9\]"),
        (EditedSentence("It is so.", (0,)), r"no citation \[0\]"),
        (EditedSentence("It is so.", (NewCitation(SourceSpan(UUID(int=9), 0, 5), "x"),)), "has not read this passage"),
        (EditedSentence("It is so.", (NewCitation(PASSAGE.span, "The Thames carries gold"),)), "words are not in"),
        (EditedSentence("It is so.", (NewCitation(PASSAGE.span, "  "),)), "quotes no words"),
        (EditedSentence(" \u202e "), "is empty"),
        (EditedSentence("It is so.", base_id="s77"), "no sentence s77"),
        (replace(LAKES_KEPT, base_id="s1"), "stands in two places"),
    ],
)
def test_a_citation_that_points_to_nothing_and_an_unknown_sentence_are_rejected(
    sentence: EditedSentence, problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        apply(with_sentences(sentence))


def test_an_edit_that_changes_nothing_or_leaves_nothing_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="changes nothing"):
        apply(edit_of(BASE))
    with pytest.raises(InvalidInput, match="no sentence left"):
        apply(ReportEdit("Salt", None, (EditedSection("Empty", ()),)))


def test_citations_that_no_sentence_has_any_more_are_dropped_and_the_others_keep_their_numbers() -> None:
    edited = apply(replace(edit_of(BASE), answer=None))
    assert [citation.number for citation in edited.citations] == [2]


def test_a_changed_sentence_does_not_cite_words_that_are_no_longer_stored() -> None:
    changed = EditedSentence("Lakes lose much water.", (2,), base_id="s2")
    edited = apply(with_sentences(changed), text=TEXT.replace("lose", "gain"))
    sentence = edited.sections[0].sentences[0]
    assert (sentence.citations, sentence.verdict) == ((), ClaimVerdict.NOT_FOUND)
    assert sentence.rejected == ("The words of [2] are no longer stored.",)
    assert edited.answer == BASE.answer


def test_a_named_passage_stays_one_that_supports_nothing() -> None:
    base = replace(BASE, answer=Sentence("s1", "It is about rivers.", (), (), (1,)))
    changed = EditedSentence("It is about many rivers.", (1,), base_id="s1")
    answer = apply(replace(edit_of(base), answer=changed), base).answer
    assert answer is not None
    assert (answer.citations, answer.passages, answer.verdict) == ((), (1,), ClaimVerdict.NOT_FOUND)


def test_conflicts_stay_while_a_sentence_cites_one_side() -> None:
    base = replace(BASE, conflicts=(Conflict("tonnes", (1, 2)),))
    assert apply(with_sentences(LAKES_KEPT), base).conflicts == base.conflicts
    assert apply(replace(with_sentences(REST_KEPT), answer=None), base).conflicts == ()


def test_only_the_texts_that_are_needed_are_looked_up() -> None:
    new = EditedSentence("So.", (NewCitation(PASSAGE.span, WYE), 2))
    spans = list_needed_spans(BASE, replace(with_sentences(new), answer=None))
    assert spans[:2] == (span_of(LAKES), PASSAGE.span)
    assert len(spans) == 3


def test_an_edited_report_is_read_back_as_it_was_stored_and_can_be_restored() -> None:
    edited = apply(with_sentences(replace(LAKES_KEPT, text="Lakes dry out.", layout=Layout.ITEM)))
    assert report_from_record(report_to_record(edited)) == edited
    assert restore_report(edited, replace(PERSON, base_version=2)).sections == edited.sections


def test_files_say_which_sentences_are_of_a_person_and_text_stays_text() -> None:
    hostile = EditedSentence("<img src=x onerror=alert(1)> [a](javascript:x) $x$", base_id="s3")
    edited = apply(with_sentences(LAKES_KEPT, hostile))
    page, text = render_html(edited), render_markdown(edited)
    assert "&lt;img src=x" in page
    assert "<img" not in page
    assert "\\[a\\](javascript:x) \\$x\\$ *(edited by a person; no source)*" in text
    assert "Saved by Ann from version 1: 1 of 3 sentences are written or changed by a person" in text
    assert "Lakes lose water. [2]\n" in text.replace("Lakes lose water. [2] ", "Lakes lose water. [2]\n")
