"""What every form of a report says in words besides its sentences, and how its sentences form blocks.

The functions are pure and escape nothing. Each form escapes what it gets from here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from offing.core.claim_table import (
    Claim,
    ClaimAnalysis,
    count_verdicts,
    describe_conflict_search,
    describe_judges,
    list_marks,
)
from offing.core.report import ClaimVerdict, Conflict, Layout, Report, ReportStatus, Sentence
from offing.core.report_labels.labels import ReportLabels
from offing.core.report_sources import map_source_labels
from offing.core.run import StopReason
from offing.core.run_texts import RUN_TEXTS

TABLE_LAYOUTS = frozenset({Layout.HEADER, Layout.ROW})
"""Layouts of the sentences that are rows of a table."""

CONTROL_CHARS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Characters without a shape: control characters, direction marks, and what XML cannot contain."""


def group_sentences(sentences: Sequence[Sentence]) -> tuple[tuple[Sentence, ...], ...]:
    """Group the sentences of a section into blocks: statements, paragraphs, lists and tables."""
    groups: list[list[Sentence]] = []
    for sentence in sentences:
        if groups and sentence.layout in _FOLLOWERS.get(groups[-1][-1].layout, frozenset()):
            groups[-1].append(sentence)
        else:
            groups.append([sentence])
    return tuple(map(tuple, groups))


_IN_PARAGRAPH, _IN_TABLE = frozenset({Layout.CONTINUED}), frozenset({Layout.ROW})
_FOLLOWERS = {
    Layout.PARAGRAPH: _IN_PARAGRAPH,
    Layout.CONTINUED: _IN_PARAGRAPH,
    Layout.ITEM: frozenset({Layout.ITEM}),
    Layout.HEADER: _IN_TABLE,
    Layout.ROW: _IN_TABLE,
}
"""Layouts of the sentences that belong to the block of a sentence before them."""


def describe_completion(report: Report, labels: ReportLabels) -> str:
    """Describe in words whether the report is complete and why the run ended."""
    is_complete = report.status is ReportStatus.COMPLETE
    parts = (labels.complete if is_complete else labels.partial, _describe_ending(report, labels))
    return labels.between_sentences.join(parts)


def _describe_ending(report: Report, labels: ReportLabels) -> str:
    stated = [s for s in report.sentences() if s.layout is not Layout.HEADER]
    if report.status is ReportStatus.COMPLETE and not any(s.is_supported for s in stated):
        return labels.nothing_supported
    if report.stop_reason == StopReason.ANSWERED and report.limits:
        return labels.answered_with_limits
    known = labels.stop_reasons.get(report.stop_reason)
    return labels.other_stop_reason.format(reason=report.stop_reason) if known is None else known


def describe_state(report: Report, analysis: ClaimAnalysis, labels: ReportLabels) -> str:
    """Describe in words whether the report is complete, and how many claims have each verdict."""
    parts = (describe_completion(report, labels), _describe_claim_counts(analysis.claims, labels))
    return labels.between_sentences.join(filter(None, parts))


def join_lines(text: str) -> str:
    """Return text on one line, without control characters and direction marks."""
    return " ".join(CONTROL_CHARS.sub("", text).split())


def _describe_claim_counts(claims: Iterable[Claim], labels: ReportLabels) -> str:
    """Return the number of claims with each verdict in words. Empty means that the report cites nothing."""
    counts = count_verdicts(claims)
    conclusions = counts.pop(ClaimVerdict.CONCLUSION, 0)
    listed = [
        labels.counted_verdict.format(count=count, verdict=labels.verdicts[verdict])
        for verdict, count in counts.items()
    ]
    cited = labels.cited_sentences.format(counts=labels.comma.join(listed)) if listed else ""
    concluded = labels.conclusions.format(count=conclusions) if conclusions else ""
    return labels.between_sentences.join(filter(None, (cited, concluded)))


def describe_author(report: Report, labels: ReportLabels) -> str:
    """Say in words which engine and model wrote a report. Empty means that it is unknown."""
    if not report.written_by:
        return ""
    coded = RUN_TEXTS.find(report.written_by)
    name = labels.authors.get(coded.code, report.written_by) if coded else report.written_by
    return labels.written_by.format(author=name)


def list_notes(report: Report, analysis: ClaimAnalysis, labels: ReportLabels) -> tuple[str, ...]:
    """Return who edited the report, who judged the claims and who looked for conflicts, in words."""
    judges = describe_judges(report.check, analysis.claims, labels)
    searched = describe_conflict_search(report, analysis.claims, analysis.conflicts, labels)
    return tuple(filter(None, (_describe_origin(report, labels), judges, searched)))


def _describe_origin(report: Report, labels: ReportLabels) -> str:
    """Say in words who edited a report. Empty means that the run wrote it."""
    if report.edit is None:
        return ""
    version, note = report.edit.base_version, report.edit.note.rstrip(".\u3002")
    if report.edit.run_id is not None:
        origin = labels.edited_by_follow_up.format(author=report.edit.by, version=version)
        request = labels.follow_up_request.format(request=note) if note else ""
        return labels.between_sentences.join(filter(None, (origin, request)))
    sentences = list(report.sentences())
    edited = sum(sentence.is_edited for sentence in sentences)
    person = _describe_person(report.edit.by, labels)
    origin = labels.saved.format(person=person, version=version, edited=edited, sentences=len(sentences))
    noted = labels.edit_note.format(note=note) if note else ""
    return labels.between_sentences.join(filter(None, (origin, noted)))


def _describe_person(name: str, labels: ReportLabels) -> str:
    """Describe who saved a version. Callers of the API are known by their session or their key."""
    if name == "web_ui":
        return labels.saved_in_web_ui
    if name.startswith("key:"):
        return labels.saved_with_key.format(key=name.removeprefix("key:"))
    return labels.saved_by.format(name=name)


def list_claim_cells(claim: Claim, labels: ReportLabels) -> tuple[str, ...]:
    """Return the cells of a claim as text: its verdict, those of rules and checker, sources, sentence and reasons."""
    judgment = claim.sentence.judgment
    return (
        labels.verdicts[claim.verdict],
        _describe_verdict(claim.sentence.rule_verdict, labels),
        _describe_verdict(judgment.verdict if judgment else None, labels),
        "".join(f"[{number}]" for number in claim.citations),
        claim.sentence.text,
        _describe_reasons(claim, labels),
    )


def _describe_reasons(claim: Claim, labels: ReportLabels) -> str:
    """Say why a claim has its verdict. For a conclusion, these are the sentences that it follows from."""
    if claim.follows_from:
        quoted = (labels.quoted.format(text=join_lines(one.text)) for one in claim.follows_from)
        return labels.follows_from.format(sentences=labels.semicolon.join(quoted))
    judgment = claim.sentence.judgment
    marks = list_marks(claim.sentence, labels)
    return labels.semicolon.join(marks) or (judgment.reason if judgment else "")


def _describe_verdict(verdict: ClaimVerdict | None, labels: ReportLabels) -> str:
    return labels.not_judged if verdict is None else labels.verdicts[verdict]


def list_conflict_lines(report: Report, conflicts: Iterable[Conflict], labels: ReportLabels) -> list[str]:
    """Describe each conflict between sources, with what both say."""
    ids = map_source_labels(report)
    words = {
        one.number: labels.source_says.format(source=ids[one.number], number=one.number, quote=join_lines(one.quote))
        for one in report.citations
    }
    return [_describe_conflict(one, words, labels) for one in conflicts]


def _describe_conflict(conflict: Conflict, words: Mapping[int, str], labels: ReportLabels) -> str:
    """Describe a conflict. `words` are what each citation says, with its source, by number."""
    first, second = (words[number] for number in conflict.citations)
    matter = labels.matter.format(matter=conflict.matter.rstrip(".:\u3002\uff1a")) if conflict.matter else ""
    finder = labels.found_by_checker if conflict.matter else labels.found_by_rules
    return labels.conflict.format(matter=matter, first=first, second=second, finder=finder)
