"""Edits of a report: the same statements in another form.

A model rewrites the report, and what it adds is removed again: citations that the earlier report does not have, and
sentences without a citation that state numbers or are more than the earlier report had. Without a model, rules can
shorten the report, remove sections and make lists.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

from offing.sdk import (
    DraftCitation,
    DraftSection,
    DraftSentence,
    EarlierReport,
    EngineFailure,
    Layout,
    Message,
    ReportDraft,
    Role,
    RunContext,
    StopReason,
    wrap_untrusted,
)
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.follow_up.report_roles import ReportInput, build_report_role
from offing_graphs.shared.memory import MAX_EVIDENCE
from offing_graphs.shared.prompt_parts import build_prompt, render_task
from offing_graphs.shared.schemas import TaskContext
from offing_graphs.shared.stop_reasons import stop_reason_from_failure
from offing_graphs.shared.text_reports import REPORT_FORMAT_RULE, render_report

SYSTEM_PROMPT = (
    "You edit a research report as a person asks: another length, language, format or tone, or without a part. State "
    "nothing that the report does not state. Keep behind each statement the citations that it has in the report, with "
    "their ids and their quoted words unchanged, also in a translation: quoted words stay in the language of the "
    "source. Keep numbers, dates and names. Leave out what the person does not want, and return the whole new report."
)
NEEDS_MODEL = "This edit needs a language model, and none is set up for this run. The report is unchanged."
STATED_NOTHING = "The edited report stated nothing that the earlier report states. The report is unchanged."

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MARKER = re.compile(r"\s*\[E\d+(?:\s*[,;]\s*E\d+)*\]")
_SHORTEN = re.compile(r"\b(?:short(?:en|er)?|condense|abridge|compress|trim|brief(?:er)?|concise|summari[sz]e)\b", re.I)
_REMOVE = re.compile(r"\b(?:drop|remove|delete|omit|cut|leave out|strip|without)\b(?P<what>.*)", re.I | re.S)
_LIST = re.compile(r"\b(?:bullets?|bullet points|list)\b", re.I)
_TABLE_LAYOUTS = frozenset({Layout.HEADER, Layout.ROW})


async def edit_report(
    ctx: RunContext, writer: Role[Any, Any], task: TaskContext, earlier: EarlierReport
) -> tuple[ReportDraft, StopReason, str]:
    """Return the edited report, and the reason why it is unchanged. An empty reason means that it was edited."""
    if not ctx.can_revise(writer):
        edited = edit_by_rules(earlier.draft, task.question)
        return edited or earlier.draft, StopReason.ANSWERED, "" if edited else NEEDS_MODEL
    evidence = passages_from_evidence(await ctx.get_evidence(MAX_EVIDENCE))
    inputs = ReportInput(**dict(task), report=earlier.draft, evidence=evidence)
    reply = await call_fitted(ctx, build_edit_role(writer), inputs)
    if isinstance(reply, EngineFailure):
        return earlier.draft, stop_reason_from_failure(reply), f"{reply.message} The report is unchanged."
    edited = restrict_edit(reply.output, earlier.draft)
    if not edited.sections and not edited.answer:
        return earlier.draft, StopReason.INVALID_OUTPUT, STATED_NOTHING
    return edited, StopReason.ANSWERED, ""


def build_edit_role(writer: Role[Any, Any]) -> Role[ReportInput, ReportDraft]:
    """Return the role with which the engine of a writer edits a report."""
    return build_report_role(writer, ReportInput, "edit", render_edit_prompt, REPORT_FORMAT_RULE)


def render_edit_prompt(inputs: ReportInput) -> tuple[Message, ...]:
    report = f"The report:\n{wrap_untrusted(render_report(inputs.report))}"
    return build_prompt(SYSTEM_PROMPT, (report, *render_task(inputs), "Edit the report as the question asks."))


def restrict_edit(edited: ReportDraft, earlier: ReportDraft) -> ReportDraft:
    """Return the edited report without what the earlier report does not state.

    Citations must be those of the earlier report, or a part of their words. A sentence without a citation may only
    have numbers that the earlier report has, and there may be only as many of them as before.
    """
    known = _list_citations(earlier)
    numbers = _list_numbers(earlier)
    allowed = sum(not s.citations and s.layout is not Layout.HEADER for s in _list_sentences(earlier))
    sections: list[DraftSection] = []
    for section in edited.sections:
        remaining: list[DraftSentence] = []
        for sentence in section.sentences:
            restricted = _restrict_sentence(sentence, known)
            if not restricted.citations and not _MARKER.search(restricted.text):
                is_header = restricted.layout is Layout.HEADER
                if not _has_only(restricted.text, numbers) or not (is_header or allowed):
                    continue
                allowed -= not is_header
            remaining.append(restricted)
        if any(sentence.layout is not Layout.HEADER for sentence in remaining):
            sections.append(DraftSection(heading=section.heading, sentences=tuple(remaining)))
    lead = _restrict_sentence(DraftSentence(text=edited.answer, citations=edited.answer_citations), known)
    is_stated = bool(lead.citations) or _has_only(lead.text, numbers)
    return ReportDraft(
        title=edited.title.strip() or earlier.title,
        answer=lead.text if is_stated else earlier.answer,
        answer_citations=lead.citations if is_stated else earlier.answer_citations,
        sections=tuple(sections),
        limits=edited.limits.strip() or earlier.limits,
    )


def edit_by_rules(draft: ReportDraft, instruction: str) -> ReportDraft | None:
    """Return the report as edited without a model. `None` means that the rules have no such edit."""
    if (removed := _REMOVE.search(instruction)) and (without := _remove_sections(draft, removed["what"])) is not None:
        return without
    if _SHORTEN.search(instruction):
        return draft.model_copy(update={"sections": tuple(map(_shorten_section, draft.sections))})
    if _LIST.search(instruction):
        return draft.model_copy(update={"sections": tuple(map(_list_section, draft.sections))})
    return None


def _restrict_sentence(sentence: DraftSentence, known: dict[str, list[str]]) -> DraftSentence:
    citations = tuple(c for c in sentence.citations if _is_known(c, known))
    ids = set(known)
    text = _MARKER.sub(lambda m: m.group() if set(re.findall(r"E\d+", m.group())) <= ids else "", sentence.text)
    return sentence.model_copy(update={"text": text, "citations": citations})


def _is_known(citation: DraftCitation, known: dict[str, list[str]]) -> bool:
    """Return whether the earlier report has a citation, or a longer form of it."""
    words = " ".join(citation.quote.split())
    return any(words in " ".join(quote.split()) for quote in known.get(citation.evidence, ()))


def _list_citations(draft: ReportDraft) -> dict[str, list[str]]:
    """Return the quotes of a report by the id of their passage."""
    known: dict[str, list[str]] = {}
    for citation in (*draft.answer_citations, *(c for s in _list_sentences(draft) for c in s.citations)):
        known.setdefault(citation.evidence, []).append(citation.quote)
    return known


def _list_sentences(draft: ReportDraft) -> Iterable[DraftSentence]:
    return (sentence for section in draft.sections for sentence in section.sentences)


def _list_numbers(draft: ReportDraft) -> frozenset[str]:
    texts = [draft.title, draft.answer, draft.limits, *(section.heading for section in draft.sections)]
    texts += [text for s in _list_sentences(draft) for text in (s.text, *(c.quote for c in s.citations))]
    texts += [citation.quote for citation in draft.answer_citations]
    return frozenset(map(_normalize_number, _NUMBER.findall(" ".join(texts))))


def _has_only(text: str, numbers: frozenset[str]) -> bool:
    """Return whether a text states no other numbers than these."""
    return all(_normalize_number(one) in numbers for one in _NUMBER.findall(_MARKER.sub("", text)))


def _normalize_number(number: str) -> str:
    """Return a number without separators, which differ between languages."""
    return re.sub(r"[.,]", "", number)


def _remove_sections(draft: ReportDraft, what: str) -> ReportDraft | None:
    """Return the report without the sections that a text names. `None` means that it names none, or all of them."""
    named = _words(what)
    remaining = tuple(s for s in draft.sections if not _words(s.heading) or not _words(s.heading) <= named)
    if len(remaining) in (0, len(draft.sections)):
        scores = [len(_words(s.heading) & named) / max(1, len(_words(s.heading))) for s in draft.sections]
        best = max(scores, default=0.0)
        if best < 0.5 or scores.count(best) > 1 or len(draft.sections) < 2:
            return None
        remaining = tuple(s for s, score in zip(draft.sections, scores, strict=True) if score < best)
    return draft.model_copy(update={"sections": remaining})


_FILLER = frozenset({"the", "a", "an", "section", "sections", "on", "about", "of", "part", "and", "in", "for", "to"})


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold())) - _FILLER


def _shorten_section(section: DraftSection) -> DraftSection:
    """Return the first half of a section. The rows of tables are kept."""
    prose = [n for n, s in enumerate(section.sentences) if s.layout not in _TABLE_LAYOUTS]
    dropped = set(prose[math.ceil(len(prose) / 2) :])
    remaining = tuple(s for n, s in enumerate(section.sentences) if n not in dropped)
    return section.model_copy(update={"sentences": remaining})


def _list_section(section: DraftSection) -> DraftSection:
    """Return a section whose sentences are the items of a list. Tables are kept."""
    items = (
        s if s.layout in _TABLE_LAYOUTS else s.model_copy(update={"layout": Layout.ITEM}) for s in section.sentences
    )
    return section.model_copy(update={"sentences": tuple(items)})
