"""Reports that are written section by section, for every graph with a writer.

The writer first plans an outline. Each section is then written by a call of its own from its own
passages, all of them side by side, and last the title and the short answer from the finished
sections. Every call is a recorded role call, so that after a crash only the missing ones are made.
A section that fails consists of quotes, and the report says so.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from offing.sdk import (
    BoundaryReason,
    DraftSection,
    EngineFailure,
    FailureKind,
    ReportDraft,
    ReportLength,
    Role,
    RunContext,
    shorten_line,
)
from offing_graphs.extractive.quotes import select_relevant
from offing_graphs.extractive.report import quote_beginnings
from offing_graphs.shared.fitted_calls import call_fitted, call_in_window, find_context_tokens
from offing_graphs.shared.report import MAX_TITLE_CHARS, build_quote_report
from offing_graphs.shared.schemas import RetrievedPassage, TaskContext, WriterInput
from offing_graphs.shared.section_prompts import list_values
from offing_graphs.shared.section_roles import build_opening_role, build_outline_role, build_section_role
from offing_graphs.shared.section_schemas import OpeningInput, Outline, OutlineSection, SectionInput, WrittenSection

MAX_REPORT_WORDS = {ReportLength.STANDARD: 1_500, ReportLength.LONG: 10_000}
"""Maximum words of the sections of a report together, for lengths that may have sections."""
MIN_SECTION_WORDS, MAX_SECTION_WORDS = 150, 1_500
MIN_PASSAGES = 4
"""Minimum number of passages of a section. If its outline names fewer, those that fit best are added."""
UNNAMED_PASSAGES = 12
"""Number of passages of a section for which the outline names none."""
MAX_REASON_CHARS = 160
"""Maximum number of characters of the reason why a part was not written."""

InputT = TypeVar("InputT", WriterInput, SectionInput, OpeningInput)
OutputT = TypeVar("OutputT", bound=BaseModel)
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A draft, and why a part of it was not written by the model."""

    draft: ReportDraft
    failure: EngineFailure | None = None
    """The first failed call. `None` means that none failed."""


@dataclass(frozen=True, slots=True)
class _Body:
    """The sections of a report, in their order."""

    title: str
    """Title of the outline."""
    sections: tuple[WrittenSection, ...]
    gaps: tuple[str, ...] = ()
    """What the model did not write, and why."""

    @property
    def parts(self) -> tuple[DraftSection, ...]:
        return tuple(part for section in self.sections for part in section.parts)

    @property
    def limits(self) -> tuple[str, ...]:
        """What the writers of the sections could not establish."""
        return tuple(section.limits.strip() for section in self.sections if section.limits.strip())


async def write_report(
    ctx: RunContext, role: Role[WriterInput, ReportDraft], inputs: WriterInput
) -> WrittenReport | EngineFailure:
    """Let a role write the report: in sections if the report style and the evidence ask for them, else in one call."""
    if _may_have_sections(ctx, role, inputs):
        window = await find_context_tokens(ctx, role.name)
        fitted = inputs if window is None else inputs.model_copy(update={"context_tokens": window})
        if needs_sections(role, fitted):
            return await write_in_sections(ctx, role.name, fitted)
    reply = await call_fitted(ctx, role, inputs)
    return reply if isinstance(reply, EngineFailure) else WrittenReport(reply.output)


def _may_have_sections(ctx: RunContext, role: Role[WriterInput, ReportDraft], inputs: WriterInput) -> bool:
    style = inputs.report_style
    return bool(style and style.length in MAX_REPORT_WORDS and inputs.evidence) and ctx.can_revise(role)


def needs_sections(role: Role[WriterInput, ReportDraft], inputs: WriterInput) -> bool:
    """Return whether a report is written in sections: a long one, or if its evidence does not fit in one prompt."""
    if inputs.report_style is not None and inputs.report_style.length is ReportLength.LONG:
        return True
    return role.render(inputs)[-1].omitted_passages > inputs.left_out_passages


async def write_in_sections(ctx: RunContext, name: str, inputs: WriterInput) -> WrittenReport | EngineFailure:
    """Write the outline, the sections and the opening. Fails if no section could be written.

    `name` is the name of the role that writes.
    """
    outline = await _plan_outline(ctx, name, inputs)
    if isinstance(outline, EngineFailure):
        return outline
    plans, role = build_section_inputs(inputs, outline), build_section_role(name)
    replies = await _gather([_call(ctx, role, plan) for plan in plans])
    failures = [reply for reply in replies if isinstance(reply, EngineFailure)]
    if len(failures) == len(replies):
        return failures[0]
    report = await _add_opening(ctx, name, inputs, _build_body(plans, replies))
    return WrittenReport(report.draft, failures[0]) if failures else report


async def _plan_outline(ctx: RunContext, name: str, inputs: WriterInput) -> Outline | EngineFailure:
    """Ask for the outline. If the answer has not the required form, the parts of the question are the outline."""
    outline = await _call(ctx, build_outline_role(name), inputs)
    is_unusable = isinstance(outline, EngineFailure) and outline.kind is FailureKind.INVALID_OUTPUT
    return build_default_outline(inputs) if is_unusable else outline


def _build_body(plans: Sequence[SectionInput], replies: Sequence[WrittenSection | EngineFailure]) -> _Body:
    """Return the sections, with quotes in place of those that failed."""
    pairs = tuple(zip(plans, replies, strict=True))
    sections = tuple(quote_section(plan) if isinstance(one, EngineFailure) else one for plan, one in pairs)
    gaps = (
        f"The section \u201c{plan.heading}\u201d {_describe_failure(one)}"
        for plan, one in pairs
        if isinstance(one, EngineFailure)
    )
    return _Body(plans[0].title, sections, tuple(gaps))


async def _add_opening(ctx: RunContext, name: str, inputs: WriterInput, body: _Body) -> WrittenReport:
    """Ask for title, short answer and limits. If that fails, the short answer quotes."""
    opening_input = OpeningInput(
        **_select_task(inputs), title=body.title, sections=body.parts, limits=body.limits, reason=inputs.reason
    )
    opening = await _call(ctx, build_opening_role(name), opening_input)
    if isinstance(opening, EngineFailure):
        quotes = build_quote_report(inputs, inputs.evidence, inputs.memory)
        gaps = (*body.gaps, f"The short answer {_describe_failure(opening)}")
        limits = " ".join((*body.limits, *gaps))
        return WrittenReport(
            ReportDraft(title=body.title, answer=quotes.answer, sections=body.parts, limits=limits), opening
        )
    limits = (opening.limits.strip(),) if opening.limits.strip() else body.limits
    draft = ReportDraft(
        title=opening.title.strip() or body.title,
        answer=opening.answer,
        answer_citations=opening.answer_citations,
        sections=body.parts,
        limits=" ".join((*limits, *body.gaps)),
    )
    return WrittenReport(draft)


def quote_section(inputs: SectionInput) -> WrittenSection:
    """Return a section of quotes, which needs no model.

    Its words may be in another language than its passages. Then what they say about the question is quoted, or else
    how they begin.
    """
    for question in filter(None, (inputs.answers, inputs.heading, inputs.question)):
        quotes = build_quote_report(TaskContext(question=question), inputs.passages)
        if sentences := tuple(sentence for part in quotes.sections for sentence in part.sentences):
            break
    else:
        sentences = quote_beginnings(inputs.passages)
    return WrittenSection(parts=(DraftSection(heading=inputs.heading, sentences=sentences),))


def _describe_failure(failure: EngineFailure) -> str:
    reason = shorten_line(failure.message, MAX_REASON_CHARS)
    return f"consists of quotes, because the model did not write it: {reason}"


def build_default_outline(inputs: WriterInput) -> Outline:
    """Return an outline with one section for each part of the question."""
    parts = tuple(OutlineSection(heading=part[:300], answers=part) for part in inputs.analysis.sub_questions)
    return Outline(title=shorten_line(inputs.question, MAX_TITLE_CHARS), sections=parts)


def build_section_inputs(inputs: WriterInput, outline: Outline) -> tuple[SectionInput, ...]:
    """Return the input of each section of an outline."""
    headings = tuple(one.heading for one in outline.sections)
    title = outline.title.strip() or shorten_line(inputs.question, MAX_TITLE_CHARS)
    max_words, values = _compute_section_words(inputs, len(headings)), list_values(inputs.memory)
    return tuple(
        SectionInput(
            **_select_task(inputs),
            title=title,
            headings=headings,
            number=number,
            answers=one.answers,
            max_words=max_words,
            passages=select_section_evidence(one, inputs.evidence),
            values=values,
        )
        for number, one in enumerate(outline.sections, start=1)
    )


def select_section_evidence(
    section: OutlineSection, evidence: Sequence[RetrievedPassage]
) -> tuple[RetrievedPassage, ...]:
    """Return the passages that the outline names for a section. If it names too few, others that fit are added."""
    named = frozenset(section.evidence) & {passage.id for passage in evidence}
    count = max(len(named), MIN_PASSAGES if named else UNNAMED_PASSAGES)
    questions = tuple(filter(None, (section.heading, section.answers)))
    return select_relevant(questions, evidence, count, {passage.id: 1 for passage in evidence}, named)


def _compute_section_words(inputs: WriterInput, count: int) -> int:
    length = inputs.report_style.length if inputs.report_style else None
    most = MAX_REPORT_WORDS.get(length or ReportLength.LONG, 0) // count
    return min(MAX_SECTION_WORDS, max(MIN_SECTION_WORDS, most))


def _select_task(inputs: WriterInput) -> dict[str, Any]:
    """Return the fields of the task, with the window of the model."""
    return {name: getattr(inputs, name) for name in TaskContext.model_fields}


async def _call(ctx: RunContext, role: Role[InputT, OutputT], inputs: InputT) -> OutputT | EngineFailure:
    """Return the output of a role. Nothing is awaited before its call is made."""
    reply = await call_in_window(ctx, role, inputs, inputs.context_tokens, boundary=BoundaryReason.FORK)
    return reply if isinstance(reply, EngineFailure) else reply.output


async def _gather(calls: Sequence[Coroutine[Any, Any, ResultT]]) -> list[ResultT]:
    """Make calls side by side, in their order. If one raises, the others are cancelled before it is raised."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
