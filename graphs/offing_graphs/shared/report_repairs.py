"""Repairs of a parsed report draft: a report in the wrong field, and citations that name no passage id.

A source's name stands for a passage only if exactly one passage can be meant.
"""

import re
from collections.abc import Sequence

from offing.sdk import DraftCitation, DraftSection, DraftSentence, InvalidOutput, ReportDraft
from offing_graphs.shared.report_blocks import extract_citations
from offing_graphs.shared.schemas import RetrievedPassage, WriterInput
from offing_graphs.shared.source_names import find_passage, name_passages
from offing_graphs.shared.text_repairs import looks_like_report, repair_citations, repair_report
from offing_graphs.shared.text_reports import parse_report

REPORT_IN_ANSWER, CITATION_IN_TEXT, EVIDENCE_ID = "report_in_answer", "citation_in_text", "evidence_id"

_ID = re.compile(r"\W*(?:passage|evidence|source)?\W*[Ee](\d{1,6})\W*", re.IGNORECASE)


def repair_writer_output(draft: ReportDraft, inputs: WriterInput) -> tuple[ReportDraft, tuple[str, ...]]:
    """Repair the report of a writer."""
    return repair_draft(draft, inputs.evidence)


def repair_draft(draft: ReportDraft, evidence: Sequence[RetrievedPassage]) -> tuple[ReportDraft, tuple[str, ...]]:
    """Return the draft with the names of the repairs that it needed."""
    repairs: dict[str, None] = {}
    draft = _move_report(draft, repairs)
    answer = draft.answer
    lead = _repair_sentence(DraftSentence(text=answer, citations=draft.answer_citations), evidence, repairs)
    sections = tuple(
        DraftSection(
            heading=s.heading, sentences=tuple(_repair_sentence(one, evidence, repairs) for one in s.sentences)
        )
        for s in draft.sections
    )
    if not repairs:
        return draft, ()
    changed = {"answer": lead.text, "answer_citations": lead.citations, "sections": sections}
    return draft.model_copy(update=changed), tuple(repairs)


def _move_report(draft: ReportDraft, repairs: dict[str, None]) -> ReportDraft:
    """Return the draft that stands as a whole report within the short answer."""
    if draft.sections or "\n" not in draft.answer.strip() or not looks_like_report(draft.answer):
        return draft
    parsed = parse_report(repair_report(draft.answer).text, draft.title)
    if isinstance(parsed, InvalidOutput) or not parsed.sections:
        return draft
    repairs[REPORT_IN_ANSWER] = None
    return parsed.model_copy(update={"limits": parsed.limits or draft.limits})


def _repair_sentence(
    sentence: DraftSentence, evidence: Sequence[RetrievedPassage], repairs: dict[str, None]
) -> DraftSentence:
    named = name_passages(sentence.text, evidence)
    if named != sentence.text:
        repairs[EVIDENCE_ID] = None
    styled = repair_citations(named)
    text, more = extract_citations(styled)
    if more or styled != named:
        repairs[CITATION_IN_TEXT] = None
    citations = (*sentence.citations, *more)
    resolved = tuple(_repair_citation(one, evidence) for one in citations)
    if any(new.evidence != old.evidence for new, old in zip(resolved, citations, strict=True)):
        repairs[EVIDENCE_ID] = None
    return sentence.model_copy(update={"text": text, "citations": resolved})


def _repair_citation(citation: DraftCitation, evidence: Sequence[RetrievedPassage]) -> DraftCitation:
    if any(citation.evidence == passage.id for passage in evidence):
        return citation
    if match := _ID.fullmatch(citation.evidence):
        return citation.model_copy(update={"evidence": f"E{match.group(1)}"})
    passage = find_passage(citation.evidence, citation.quote, evidence)
    return citation if passage is None else citation.model_copy(update={"evidence": passage.id})
