"""What changed between two versions of a report, found by comparison."""

from dataclasses import replace
from uuid import UUID

from offing.core.follow_up import FollowUpKind, FollowUpOutcome, KindChooser, outcome_from_json, outcome_to_json
from offing.core.report import Citation, Report, ReportStatus, Section, Sentence
from offing.core.report_changes import ChangeKind, ReportChanges, SectionChange, SentenceChange
from offing.core.report_comparison import compare_reports
from offing.core.report_formats import render_html, render_markdown, report_to_json
from offing.core.report_record import report_from_record, report_to_record
from offing.core.tool import SourceSpan

TEXT = UUID(int=5)


def report(*sections: tuple[str, tuple[str, ...]], answer: str = "", title: str = "Lights") -> Report:
    """A report whose sentences each cite a span of their own length."""
    citations: dict[int, Citation] = {}

    def sentence(text: str) -> Sentence:
        span = SourceSpan(TEXT, 0, len(text.partition("|")[2] or text))
        number = next((n for n, c in citations.items() if c.span == span), len(citations) + 1)
        citations[number] = Citation(number, span, "quote", UUID(int=6), "Doc")
        return Sentence(f"s{number}", text.partition("|")[0], (number,))

    lead = sentence(answer) if answer else None
    parts = tuple(Section(heading, tuple(map(sentence, texts))) for heading, texts in sections)
    return Report(title, ReportStatus.COMPLETE, "answered", lead, parts, tuple(citations.values()))


OLD_SECTION = ("Range", ("A lamp forty metres above the sea is seen from thirteen miles.", "Height matters."))
OLD = report(
    OLD_SECTION,
    ("Keepers", ("Keepers trimmed the wicks.",)),
    answer="It depends on height.",
)


def test_the_same_report_has_no_changes() -> None:
    changes = compare_reports(OLD, OLD)
    assert changes == ReportChanges(kept_sections=2)
    assert changes.is_empty


def test_sections_are_added_and_removed_by_their_headings() -> None:
    new = report(
        OLD_SECTION,
        ("Fog", ("In fog a bell is rung.",)),
        answer="It depends on height.",
    )
    changes = compare_reports(OLD, new)
    assert changes.sections == (
        SectionChange(ChangeKind.ADDED, "Fog", sentences=(SentenceChange(ChangeKind.ADDED, "In fog a bell is rung."),)),
        SectionChange(ChangeKind.REMOVED, "Keepers"),
    )
    assert changes.kept_sections == 1


def test_a_reworded_sentence_is_changed_and_an_unlike_one_is_added_and_removed() -> None:
    new = report(
        ("Range", ("A lamp forty metres above the sea is seen from fifteen miles.", "Fog hides everything there is.")),
        ("Keepers", ("Keepers trimmed the wicks.",)),
        answer="It depends on height.",
    )
    (section,) = compare_reports(OLD, new).sections
    assert (section.kind, section.heading) == (ChangeKind.CHANGED, "Range")
    assert section.sentences == (
        SentenceChange(ChangeKind.CHANGED, new.sections[0].sentences[0].text, OLD.sections[0].sentences[0].text),
        SentenceChange(ChangeKind.ADDED, "Fog hides everything there is."),
        SentenceChange(ChangeKind.REMOVED, "Height matters."),
    )


def test_a_section_with_another_heading_and_the_same_sentences_is_renamed() -> None:
    new = report(
        ("How far", ("A lamp forty metres above the sea is seen from thirteen miles.", "Height matters.")),
        ("KEEPERS.", ("Keepers trimmed the wicks.",)),
        answer="It depends on height.",
    )
    assert compare_reports(OLD, new).sections == (SectionChange(ChangeKind.CHANGED, "How far", "Range"),)


def test_another_source_of_the_same_words_is_a_change() -> None:
    new = report(OLD_SECTION, ("Keepers", ("Keepers trimmed the wicks.|elsewhere",)), answer="It depends on height.")
    (section,) = compare_reports(OLD, new).sections
    assert section.sentences == (
        SentenceChange(ChangeKind.CHANGED, "Keepers trimmed the wicks.", "Keepers trimmed the wicks."),
    )


def test_title_and_short_answer_are_compared() -> None:
    new = report(OLD_SECTION, ("Keepers", ("Keepers trimmed the wicks.",)), answer="Brightness.", title="Lamps")
    changes = compare_reports(OLD, new)
    assert changes.title_before == "Lights"
    assert changes.answer == (SentenceChange(ChangeKind.CHANGED, "Brightness.", "It depends on height."),)
    assert compare_reports(OLD, report(OLD_SECTION)).answer == (
        SentenceChange(ChangeKind.REMOVED, "It depends on height."),
    )


def test_texts_without_spaces_are_compared_by_their_letters() -> None:
    old, new = report(("灯", ("灯塔的灯光每十秒闪烁一次。",))), report(("灯", ("灯塔的灯光每八秒闪烁一次。",)))
    (section,) = compare_reports(old, new).sections
    assert [s.kind for s in section.sentences] == [ChangeKind.CHANGED]


def outcome(changes: ReportChanges | None, deleted: tuple[str, ...] = ()) -> FollowUpOutcome:
    return FollowUpOutcome(FollowUpKind.RESEARCH, KindChooser.MODEL, UUID(int=9), 2, changes, deleted)


def test_a_report_keeps_what_it_follows_through_its_recorded_form() -> None:
    new = report(OLD_SECTION, ("Fog", ("In fog a bell is rung.",)))
    followed = replace(new, follow_up=outcome(compare_reports(OLD, new), deleted=("Old chart",)))
    assert report_from_record(report_to_record(followed)) == followed
    assert followed.follow_up is not None
    assert outcome_from_json(outcome_to_json(followed.follow_up)) == followed.follow_up
    assert "follow_up" not in report_to_record(OLD)["body"]
    assert "follow_up" not in report_to_json(OLD)
    assert report_to_json(followed)["follow_up"]["kind"] == "research"


def test_exports_say_what_changed_and_which_documents_were_deleted() -> None:
    new = report(OLD_SECTION, ("Fog", ("In fog a *bell* is rung.",)))
    followed = replace(new, follow_up=outcome(compare_reports(OLD, new), deleted=("Old chart",)))
    markdown, page = render_markdown(followed), render_html(followed)
    for text in (markdown, page):
        assert "What changed" in text
        assert "Section added: Fog (1 sentence)" in text
        assert "Section removed: Keepers" in text
        assert "1 section unchanged" in text
        assert "1 document that the earlier report cites was deleted since: Old chart." in text
        assert "as the model chose" in text
    assert "What changed" not in render_markdown(replace(new, follow_up=outcome(None)))
    assert "What changed" not in render_markdown(new) + render_html(new)
    assert "Nothing changed." in render_markdown(replace(new, follow_up=outcome(ReportChanges())))
