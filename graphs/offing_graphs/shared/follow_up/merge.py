"""Merge the findings of new research into the earlier report.

A model says which sections stay, which are dropped, and rewrites others. A section of which it says nothing is kept.
Without a model, the sections of both reports stand together.
"""

import re
from collections.abc import Iterator
from typing import Any

from offing.sdk import (
    DraftSection,
    DraftSentence,
    EarlierReport,
    EngineFailure,
    Message,
    ReportDraft,
    Role,
    RunContext,
    StopReason,
    shorten_line,
    wrap_untrusted,
)
from offing_graphs.extractive.report import CLOSEST_HEADING, METHOD_NOTE, SINGLE_PART_HEADING
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.fitted_calls import call_fitted
from offing_graphs.shared.follow_up.report_roles import ReportInput, build_report_role
from offing_graphs.shared.memory import MAX_EVIDENCE
from offing_graphs.shared.prompt_parts import build_prompt, render_task
from offing_graphs.shared.report_blocks import render_cited, render_section
from offing_graphs.shared.schemas import TaskContext
from offing_graphs.shared.stop_reasons import NO_MODEL_REASONS
from offing_graphs.shared.text_reports import REPORT_FORMAT_RULE

SYSTEM_PROMPT = (
    "You bring a research report up to date with the findings of new research. Sections of the earlier report have "
    "numbers such as P1, those of the new findings such as N1. For a section that stays unchanged, write its heading "
    "and below it only: keep P1. For one that no longer holds, write only: drop P2. To change a section, write its "
    "heading, below it: replaces P3, and then the whole new section. Every statement of fact, in the short answer, "
    "too, keeps its citation with the id of the passage and its quoted words unchanged; a shorter sentence keeps only "
    "those that still carry it. Where the new findings contradict the earlier report, say "
    "what each source says. Lead with a short answer that covers both."
)
FORMAT_RULE = f"""{REPORT_FORMAT_RULE}

A section that stays, in place of its text:
## A heading
keep P1"""
NOTHING_NEW = "New research on \u201c{question}\u201d found nothing that could be added."

_COMMAND = re.compile(r"\W*(keep|drop|replaces?)\s+([PN]\d+(?:\s*(?:,|and)\s*[PN]\d+)*)\W*(.*)", re.I | re.S)
_SECTION_ID = re.compile(r"[PN]\d+")
_GENERIC_HEADINGS = frozenset({SINGLE_PART_HEADING, CLOSEST_HEADING})


class MergeInput(ReportInput):
    """The input of a merge."""

    findings: ReportDraft
    """The report on the new research alone."""


async def merge_findings(
    ctx: RunContext,
    writer: Role[Any, Any],
    task: TaskContext,
    earlier: EarlierReport,
    draft: ReportDraft,
    reason: StopReason,
) -> tuple[ReportDraft, bool]:
    """Return the earlier report with the findings of a draft merged into it, and whether a model merged them.

    A model does if one answers the writer's role, unless the run ended for a `reason` that forbids it.
    """
    if not _has_findings(draft):
        limits = _join_limits(earlier.draft.limits, NOTHING_NEW.format(question=shorten_line(task.question, 120)))
        return earlier.draft.model_copy(update={"limits": limits}), False
    if not ctx.can_revise(writer) or reason in NO_MODEL_REASONS:
        return merge_by_rules(earlier.draft, draft, task.question), False
    evidence = passages_from_evidence(await ctx.get_evidence(MAX_EVIDENCE))
    inputs = MergeInput(**dict(task), report=earlier.draft, evidence=evidence, findings=draft)
    reply = await call_fitted(ctx, build_merge_role(writer), inputs)
    if isinstance(reply, EngineFailure):
        return merge_by_rules(earlier.draft, draft, task.question), False
    return apply_merge(reply.output, earlier.draft, draft), True


def build_merge_role(writer: Role[Any, Any]) -> Role[MergeInput, ReportDraft]:
    """Return the role with which the engine of a writer merges new findings into a report."""
    return build_report_role(writer, MergeInput, "merge", render_merge_prompt, FORMAT_RULE)


def render_merge_prompt(inputs: MergeInput) -> tuple[Message, ...]:
    earlier = wrap_untrusted(_render_numbered(inputs.report, "P"))
    findings = wrap_untrusted(_render_numbered(inputs.findings, "N"))
    parts = (f"The earlier report:\n{earlier}", *render_task(inputs), f"The new findings:\n{findings}")
    return build_prompt(SYSTEM_PROMPT, parts)


def apply_merge(merged: ReportDraft, earlier: ReportDraft, findings: ReportDraft) -> ReportDraft:
    """Return the merged report with the sections that it keeps, and those of which it says nothing."""
    named = {
        **{f"P{n}": section for n, section in enumerate(earlier.sections, 1)},
        **{f"N{n}": section for n, section in enumerate(findings.sections, 1)},
    }
    used: set[str] = set()
    sections: list[DraftSection] = []
    for section in merged.sections:
        used |= _list_named(section)
        sections += _expand_section(section, named)
    for id, section in named.items():
        if id not in used and not _is_repeated(section, sections):
            sections = _add_section(sections, section)
    answer = _strip_commands(merged.answer)
    return ReportDraft(
        title=merged.title.strip() or earlier.title,
        answer=answer or earlier.answer,
        answer_citations=merged.answer_citations if answer else earlier.answer_citations,
        sections=tuple(sections),
        limits=merged.limits.strip() or _join_limits(earlier.limits, findings.limits),
    )


def merge_by_rules(earlier: ReportDraft, findings: ReportDraft, question: str) -> ReportDraft:
    """Return a report with the sections of both. Sections with the same heading become one."""
    sections = list(earlier.sections)
    for section in findings.sections:
        heading = section.heading
        if heading in _GENERIC_HEADINGS and any(s.heading in _GENERIC_HEADINGS for s in sections):
            heading = shorten_line(question, 120)
        sections = _add_section(sections, section.model_copy(update={"heading": heading}))
    return ReportDraft(
        title=earlier.title,
        answer=" ".join(filter(None, (earlier.answer, findings.answer if findings.answer != earlier.answer else ""))),
        answer_citations=(*earlier.answer_citations, *findings.answer_citations),
        sections=tuple(sections),
        limits=_join_limits(earlier.limits, findings.limits),
    )


def _has_findings(draft: ReportDraft) -> bool:
    cited = (*draft.answer_citations, *(c for s in draft.sections for one in s.sentences for c in one.citations))
    return bool(cited) or any(re.search(r"\[E\d+", one.text) for s in draft.sections for one in s.sentences)


def _add_section(sections: list[DraftSection], new: DraftSection) -> list[DraftSection]:
    """Return the sections with another one. It becomes part of one with the same heading."""
    at = next((n for n, s in enumerate(sections) if s.heading.casefold() == new.heading.casefold()), None)
    if at is None:
        return [*sections, new]
    return [*sections[:at], _unite(sections[at], new), *sections[at + 1 :]]


def _unite(section: DraftSection, new: DraftSection) -> DraftSection:
    known = {sentence.text for sentence in section.sentences}
    return section.model_copy(
        update={"sentences": (*section.sentences, *(s for s in new.sentences if s.text not in known))}
    )


def _join_limits(earlier: str, new: str) -> str:
    """Return the limits of both reports. The note on reports without a model stands once, at the end."""
    without = [text.replace(METHOD_NOTE, "").strip() for text in (earlier, new)]
    parts = list(dict.fromkeys(part for part in without if part))
    note = [METHOD_NOTE] if METHOD_NOTE in earlier or METHOD_NOTE in new else []
    return " ".join([*parts, *note])


def _render_numbered(draft: ReportDraft, letter: str) -> str:
    lines = [f"# {draft.title}", render_cited(draft.answer, draft.answer_citations)]
    for number, section in enumerate(draft.sections, 1):
        lines += [f"Section {letter}{number}:", *render_section(section)]
    return "\n".join([*lines, f"Limits: {draft.limits}"] if draft.limits else lines)


def _list_named(section: DraftSection) -> set[str]:
    commands = (_COMMAND.fullmatch(sentence.text.strip()) for sentence in section.sentences)
    return {id.upper() for match in commands if match for id in _SECTION_ID.findall(match[2].upper())}


def _expand_section(section: DraftSection, named: dict[str, DraftSection]) -> Iterator[DraftSection]:
    """Yield a section of the answer with its commands carried out."""
    sentences: list[DraftSentence] = []
    for sentence in section.sentences:
        match = _COMMAND.fullmatch(sentence.text.strip())
        if match is None:
            sentences.append(sentence)
            continue
        ids = _SECTION_ID.findall(match[2].upper())
        if match[1].lower() == "keep":
            sentences += [one for id in ids if id in named for one in named[id].sentences]
        if rest := match[3].strip():
            sentences.append(sentence.model_copy(update={"text": rest}))
    if sentences:
        yield DraftSection(heading=section.heading, sentences=tuple(sentences))


def _strip_commands(text: str) -> str:
    return "" if _COMMAND.fullmatch(text.strip()) else text


def _is_repeated(section: DraftSection, sections: list[DraftSection]) -> bool:
    """Return whether all sentences of a section stand in the others."""
    known = {sentence.text for one in sections for sentence in one.sentences}
    return all(sentence.text in known for sentence in section.sentences)
