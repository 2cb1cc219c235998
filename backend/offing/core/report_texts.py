"""What every form of a report says in words besides its sentences, and how its sentences form blocks.

The functions are pure and escape nothing. Each form escapes what it gets from here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from offing.core.claim_table import VERDICT_TEXTS, Claim, ClaimAnalysis, count_verdicts
from offing.core.report import ClaimVerdict, Conflict, Layout, Report, ReportStatus, Sentence
from offing.core.report_sources import map_source_labels
from offing.core.run import StopReason

STOP_REASON_TEXTS: dict[str, str] = {
    StopReason.ANSWERED: "The evidence was judged sufficient.",
    StopReason.NOTHING_FOUND: "No source was found that answers the question.",
    StopReason.SATURATED: "The latest turns of the deep run found nothing new.",
    StopReason.TURN_LIMIT: "The limit on turns was reached.",
    StopReason.TOKEN_LIMIT: "The token limit was reached.",
    StopReason.SPEND_LIMIT: "The cost limit of the run was reached.",
    StopReason.TENANT_SPEND_LIMIT: "The daily spending limit was reached.",
    StopReason.TIME_LIMIT: "The time limit was reached.",
    StopReason.CONTEXT_LIMIT: "The context grew beyond the space that the graph allows.",
    StopReason.PROVIDER_DOWN: "The model provider returned no usable answer.",
    StopReason.INVALID_OUTPUT: "The model did not answer in the required format.",
    StopReason.FINISH_REQUESTED: "A person asked the run to finish early.",
    StopReason.CANCELLED: "A person cancelled the run.",
    StopReason.GRAPH_ERROR: "The graph failed.",
    StopReason.NO_PROGRESS: "Several workers claimed the run, but none made progress.",
}
"""Sentence for each reason to stop."""

UNSUPPORTED_TEXT = "No sentence of it is supported by a source."
LIMITED_TEXT = "The evidence was judged sufficient, except for what the limits below state."
"""Ending of a complete report with limits, which may say that a part of the question was not answered."""

CLAIM_HEADS = ("Verdict", "By rules", "By checker", "Sources", "Sentence", "Why")
"""Columns of the claim table."""

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


def describe_completion(report: Report) -> str:
    """Describe in words whether the report is complete and why the run ended."""
    ending = STOP_REASON_TEXTS.get(report.stop_reason, f"The run ended: {report.stop_reason}.")
    stated = [s for s in report.sentences() if s.layout is not Layout.HEADER]
    if report.status is ReportStatus.COMPLETE and not any(s.is_supported for s in stated):
        ending = UNSUPPORTED_TEXT
    elif report.stop_reason == StopReason.ANSWERED and report.limits:
        ending = LIMITED_TEXT
    return f"{'Complete' if report.status is ReportStatus.COMPLETE else 'Partial'} report. {ending}"


def join_lines(text: str) -> str:
    """Return text on one line, without control characters and direction marks."""
    return " ".join(CONTROL_CHARS.sub("", text).split())


def describe_claim_counts(claims: Iterable[Claim]) -> str:
    """Return the number of claims with each verdict in words. Empty means that the report cites nothing."""
    counts = count_verdicts(claims)
    conclusions = counts.pop(ClaimVerdict.CONCLUSION, 0)
    listed = [f"{count} {VERDICT_TEXTS[verdict]}" for verdict, count in counts.items()]
    cited = f"Sentences that cite a source: {', '.join(listed)}." if listed else ""
    return f"{cited} Conclusions from them: {conclusions}.".strip() if conclusions else cited


def list_notes(report: Report, analysis: ClaimAnalysis) -> tuple[str, ...]:
    """Return who edited the report, who judged the claims and who looked for conflicts, in words."""
    return tuple(filter(None, (_describe_origin(report), analysis.judged_by, analysis.conflict_search)))


def _describe_origin(report: Report) -> str:
    """Say in words who edited a report. Empty means that the run wrote it."""
    if report.edit is None:
        return ""
    if report.edit.run_id is not None:
        question = f" It was asked: {report.edit.note.rstrip('.')}." if report.edit.note else ""
        return f"Edited by a follow-up ({report.edit.by}) from version {report.edit.base_version}.{question}"
    edited = sum(sentence.is_edited for sentence in report.sentences())
    of = f"{edited} of {len(report.sentences())} sentences are written or changed by a person, and marked so."
    note = f" Note: {report.edit.note.rstrip('.')}." if report.edit.note else ""
    return f"Saved {_describe_person(report.edit.by)} from version {report.edit.base_version}: {of}{note}"


def _describe_person(name: str) -> str:
    """Describe who saved a version. Callers of the API are known by their session or their key."""
    if name == "web_ui":
        return "in the web UI"
    return f"with the API key {name.removeprefix('key:')}" if name.startswith("key:") else f"by {name}"


def list_claim_cells(claim: Claim) -> tuple[str, ...]:
    """Return the cells of a claim as text: its verdict, those of rules and checker, sources, sentence and reasons."""
    judgment = claim.sentence.judgment
    return (
        VERDICT_TEXTS[claim.verdict],
        _describe_verdict(claim.sentence.rule_verdict),
        _describe_verdict(judgment.verdict if judgment else None),
        "".join(f"[{number}]" for number in claim.citations),
        claim.sentence.text,
        _describe_reasons(claim),
    )


def _describe_reasons(claim: Claim) -> str:
    """Say why a claim has its verdict. For a conclusion, these are the sentences that it follows from."""
    if claim.follows_from:
        quoted = (f"\u201c{join_lines(one.text)}\u201d" for one in claim.follows_from)
        return f"follows from {'; '.join(quoted)}"
    judgment = claim.sentence.judgment
    return "; ".join(claim.reasons) or (judgment.reason if judgment else "")


def _describe_verdict(verdict: ClaimVerdict | None) -> str:
    return "not judged" if verdict is None else VERDICT_TEXTS[verdict]


def list_conflict_lines(report: Report, conflicts: Iterable[Conflict]) -> list[str]:
    """Describe each conflict between sources, with what both say."""
    labels = map_source_labels(report)
    words = {
        c.number: f"{labels[c.number]} [{c.number}] says \u201c{join_lines(c.quote)}\u201d" for c in report.citations
    }
    return [_describe_conflict(one, words) for one in conflicts]


def _describe_conflict(conflict: Conflict, words: Mapping[int, str]) -> str:
    """Describe a conflict. `words` are what each citation says, with its source, by number."""
    first, second = (words[number] for number in conflict.citations)
    matter = f"{conflict.matter.rstrip('.:')}: " if conflict.matter else ""
    return f"{matter}{first}, {second} (found by {'the checker' if conflict.matter else 'rules'})"
