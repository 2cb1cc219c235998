"""The list of changes of a report in words, for Markdown, HTML and the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass

from offing.core.follow_up import FollowUpKind, FollowUpOutcome, KindChooser
from offing.core.report_changes import ChangeKind, ReportChanges, SectionChange, SentenceChange

CHANGES_HEADING = "What changed"

CHOOSER_TEXTS = {
    KindChooser.PERSON: "as you chose",
    KindChooser.MODEL: "as the model chose",
    KindChooser.RULES: "as rules chose by its words",
}
KIND_TEXTS = {
    FollowUpKind.QUESTION: "This answers a question on an earlier report, from the report and its evidence",
    FollowUpKind.EDIT: "This is an edited version of an earlier report",
    FollowUpKind.RESEARCH: "New research was merged into an earlier report",
}


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One line of the list of changes."""

    text: str
    level: int = 0
    """0 for a section, 1 for a sentence of it."""


def describe_follow_up(outcome: FollowUpOutcome) -> str:
    """Describe what a report has to do with the earlier one, with who chose it and which documents were deleted."""
    kind = f"{KIND_TEXTS.get(outcome.kind, 'This follows an earlier report')}, {CHOOSER_TEXTS[outcome.chosen_by]}."
    count = len(outcome.deleted_sources)
    deleted = (
        f"{count} document{'s' * (count != 1)} that the earlier report cites {'was' if count == 1 else 'were'} deleted "
        f"since: {', '.join(outcome.deleted_sources)}."
        if count
        else ""
    )
    return " ".join(filter(None, (kind, outcome.unchanged_because, deleted)))


def list_changes(changes: ReportChanges) -> tuple[ChangeLine, ...]:
    """Return the changes as lines."""
    return tuple(_list_lines(changes))


def _list_lines(changes: ReportChanges) -> Iterator[ChangeLine]:
    if changes.title_before:
        yield ChangeLine(f"Title changed, before: {changes.title_before}")
    if changes.answer:
        yield ChangeLine("Short answer")
        yield from map(_describe_sentence, changes.answer)
    for section in changes.sections:
        yield ChangeLine(_describe_section(section))
        if section.kind is ChangeKind.CHANGED:
            yield from map(_describe_sentence, section.sentences)
    if changes.is_empty:
        yield ChangeLine("Nothing changed.")
    elif changes.kept_sections:
        count = changes.kept_sections
        yield ChangeLine(f"{count} section{'s' * (count != 1)} unchanged")


def _describe_section(section: SectionChange) -> str:
    name = section.heading or "Section without a heading"
    before = f", before: {section.before}" if section.before else ""
    count = len(section.sentences)
    sentences = f" ({count} sentence{'s' * (count != 1)})" if section.kind is ChangeKind.ADDED else ""
    return f"Section {section.kind.value}: {name}{before}{sentences}"


def _describe_sentence(sentence: SentenceChange) -> ChangeLine:
    if sentence.kind is not ChangeKind.CHANGED:
        return ChangeLine(f"{sentence.kind.value.capitalize()}: {sentence.text}", 1)
    if sentence.before == sentence.text:
        return ChangeLine(f"Other sources: {sentence.text}", 1)
    return ChangeLine(f"Changed: {sentence.text} (before: {sentence.before})", 1)
