"""The list of changes of a report in words, for Markdown, HTML and the terminal."""

from collections.abc import Iterator
from dataclasses import dataclass

from offing.core.follow_up import FollowUpOutcome
from offing.core.report_changes import ChangeKind, ReportChanges, SectionChange, SentenceChange
from offing.core.report_labels.labels import ReportLabels


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One line of the list of changes."""

    text: str
    level: int = 0
    """0 for a section, 1 for a sentence of it."""


def describe_follow_up(outcome: FollowUpOutcome, labels: ReportLabels) -> str:
    """Describe what a report has to do with the earlier one, with who chose it and which documents were deleted."""
    kind = labels.follow_up_kinds.get(outcome.kind, labels.other_follow_up)
    followed = labels.follow_up.format(kind=kind, chooser=labels.choosers[outcome.chosen_by])
    count, titles = len(outcome.deleted_sources), labels.comma.join(outcome.deleted_sources)
    deleted = labels.deleted_documents.fill(count, titles=titles) if count else ""
    return labels.between_sentences.join(filter(None, (followed, outcome.unchanged_because, deleted)))


def list_changes(changes: ReportChanges, labels: ReportLabels) -> tuple[ChangeLine, ...]:
    """Return the changes as lines."""
    return tuple(_list_lines(changes, labels))


def _list_lines(changes: ReportChanges, labels: ReportLabels) -> Iterator[ChangeLine]:
    if changes.title_before:
        yield ChangeLine(labels.title_changed.format(title=changes.title_before))
    if changes.answer:
        yield ChangeLine(labels.short_answer)
        yield from (_describe_sentence(sentence, labels) for sentence in changes.answer)
    for section in changes.sections:
        yield ChangeLine(_describe_section(section, labels))
        if section.kind is ChangeKind.CHANGED:
            yield from (_describe_sentence(sentence, labels) for sentence in section.sentences)
    if changes.is_empty:
        yield ChangeLine(labels.nothing_changed)
    elif changes.kept_sections:
        yield ChangeLine(labels.sections_unchanged.fill(changes.kept_sections))


def _describe_section(section: SectionChange, labels: ReportLabels) -> str:
    name = section.heading or labels.section_without_heading
    before = labels.before.format(name=section.before) if section.before else ""
    count = len(section.sentences)
    sentences = labels.added_sentences.fill(count) if section.kind is ChangeKind.ADDED else ""
    return f"{labels.section_changes[section.kind].format(name=name)}{before}{sentences}"


def _describe_sentence(sentence: SentenceChange, labels: ReportLabels) -> ChangeLine:
    if sentence.kind is ChangeKind.CHANGED and sentence.before == sentence.text:
        return ChangeLine(labels.other_sources.format(text=sentence.text), 1)
    return ChangeLine(labels.sentence_changes[sentence.kind].format(text=sentence.text, before=sentence.before), 1)
