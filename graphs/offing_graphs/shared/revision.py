"""Drafts with problems go back to their writer once, with what the texts say, before the report is submitted.

Every graph whose report a role has written submits it through `submit_checked_report`. The role is asked for the
sentences with problems only, and the others stay unchanged. Then the checker judges the claims, if the run has one.
"""

import re
from collections.abc import Callable
from typing import Any

from pydantic import Field

from offing.sdk import (
    BoundaryReason,
    DraftCheck,
    DraftCitation,
    DraftSection,
    DraftSentence,
    EngineFailure,
    FollowUpResult,
    Headline,
    InvalidOutput,
    Message,
    ProblemSentence,
    ReportDraft,
    ReportRevision,
    Role,
    RunContext,
    StepKind,
    StopReason,
    wrap_untrusted,
)
from offing_graphs.shared.claim_check import check_claims
from offing_graphs.shared.findings import passages_from_evidence
from offing_graphs.shared.prompt_parts import build_prompt, render_passage
from offing_graphs.shared.report_blocks import render_cited
from offing_graphs.shared.schemas import FrozenModel, RetrievedPassage
from offing_graphs.shared.stop_reasons import NO_MODEL_REASONS
from offing_graphs.shared.tagged_text import build_text_format, parse_whole
from offing_graphs.shared.text_repairs import remove_bold
from offing_graphs.shared.text_reports import parse_report

MAX_PROBLEM_SENTENCES = 40
"""Maximum number of sentences that go back to the writer. The others are marked in the report."""
MAX_PASSAGE_CHARS = 24_000
"""Maximum number of characters of the passages that are shown."""
REMOVED = "remove"
_REMOVAL = re.compile(r"\W*(?:removed?(?: (?:this|the) (?:sentence|line|row))?)?\W*", re.IGNORECASE)
"""What a model writes in place of a sentence that it removes."""

SYSTEM_PROMPT = """You correct sentences of a research report that you have written. Each of them was compared with \
the documents, and something in it does not hold. Return each listed sentence again, corrected, under its number.
Rules:
- Support each sentence by words copied exactly from a passage, letter by letter, with the id of that passage.
- Every number, date and name of the sentence must stand in the words that you quote from it. Quote further words, or \
leave the number out.
- If a passage says something else, say what it says. If no passage supports the sentence, remove it.
- Do not add other claims, and do not return sentences that are not listed."""

TEXT_FORMAT_RULE = """One line per listed sentence, with its number:
s4: The corrected sentence. [E3: "words copied exactly from E3"] [E5: "words copied exactly from E5"]
s7: remove"""

_LINE = re.compile(r"[-*\s]*\**\(?(s\d+)\)?\**\s*[:.]\s*(.*)")


class RevisionProblem(FrozenModel):
    """One problem of a sentence."""

    message: str
    evidence: str = ""
    excerpt: str = ""
    """What the text says there, which is untrusted. Empty means nothing close."""


class RevisionSentence(FrozenModel):
    """A sentence that goes back to its writer."""

    id: str
    text: str
    citations: tuple[DraftCitation, ...] = ()
    problems: tuple[RevisionProblem, ...]


class RevisionInput(FrozenModel):
    """The input of a writer who corrects a draft."""

    question: str
    sentences: tuple[RevisionSentence, ...]
    passages: tuple[RetrievedPassage, ...]


class RevisedSentence(FrozenModel):
    id: str = Field(description="Number of the sentence, such as s4.")
    text: str = Field(description="The corrected sentence. Empty removes the sentence.")
    citations: tuple[DraftCitation, ...] = Field(
        default=(), description="Passages by id, each with words copied exactly from it."
    )


class DraftRevision(FrozenModel):
    """The writer's answer: the listed sentences, corrected."""

    sentences: tuple[RevisedSentence, ...]


async def submit_checked_report(
    ctx: RunContext,
    role: Role[Any, Any],
    draft: ReportDraft,
    reason: StopReason,
    *,
    follow_up: FollowUpResult | None = None,
    restrict: Callable[[ReportDraft], ReportDraft] | None = None,
) -> None:
    """Submit the draft of a role. A draft with problems first goes back to the role once, if a model answers it.

    The number of problems before and after is recorded with the report, and what a checker judged. `follow_up` is the
    earlier report that this one follows. `restrict` removes from a corrected draft what it must not state; `None`
    removes nothing.
    """
    revision: ReportRevision | None = None
    if ctx.can_revise(role) and (check := await ctx.check_report(draft)).problems:
        draft, revision = await _revise_draft(ctx, role, draft, check, reason)
        draft = restrict(draft) if restrict else draft
    claim_check = await check_claims(ctx, draft, reason)
    await ctx.submit_report(draft, reason, revision=revision, follow_up=follow_up, check=claim_check)


async def _revise_draft(
    ctx: RunContext, role: Role[Any, Any], draft: ReportDraft, check: DraftCheck, reason: StopReason
) -> tuple[ReportDraft, ReportRevision]:
    """Return the draft with the writer's corrections, or the same draft with the reason why there are none."""
    before = len(check.problems)
    if reason in NO_MODEL_REASONS:
        return draft, ReportRevision(before, before, f"The run ended: {reason.replace('_', ' ')}.")
    inputs = build_revision_input(ctx.run.question, check)
    reply = await ctx.call_role(build_revision_role(role), inputs, boundary=BoundaryReason.FORK)
    if isinstance(reply, EngineFailure):
        return draft, ReportRevision(before, before, reply.message)
    revised = apply_revision(draft, reply.output)
    after = len((await ctx.check_report(revised)).problems)
    if after >= before or (draft.sections and not revised.sections):
        return draft, ReportRevision(before, before, "The corrected sentences had as many problems.")
    return revised, ReportRevision(before, after)


def build_revision_role(role: Role[Any, Any]) -> Role[RevisionInput, DraftRevision]:
    """Return the role with which the engine of a writer is asked to correct its draft."""
    return Role(
        role.name,
        RevisionInput,
        DraftRevision,
        render_revision_prompt,
        _render_headline,
        step_kind=StepKind.ROLE_CALL,
        label="correct",
        prompt_formats=(REVISION_TEXT_FORMAT,),
    )


def build_revision_input(question: str, check: DraftCheck) -> RevisionInput:
    """Build the input from the check of a draft. Passages beyond the limit are left out, the last ones first."""
    listed = check.problems[:MAX_PROBLEM_SENTENCES]
    passages: list[RetrievedPassage] = []
    used = 0
    for passage in passages_from_evidence(check.evidence):
        used += len(passage.text)
        if used <= MAX_PASSAGE_CHARS:
            passages.append(passage)
    return RevisionInput(question=question, sentences=tuple(map(_list_sentence, listed)), passages=tuple(passages))


def render_revision_prompt(inputs: RevisionInput) -> tuple[Message, ...]:
    sentences = "\n\n".join(map(_render_sentence, inputs.sentences))
    parts = (f"The question:\n{inputs.question}", *map(render_passage, inputs.passages))
    return build_prompt(SYSTEM_PROMPT, (*parts, f"The sentences to correct:\n\n{sentences}"))


def apply_revision(draft: ReportDraft, revision: DraftRevision) -> ReportDraft:
    """Return the draft with the corrected sentences. Sentences with an empty text are removed, unknown ids ignored.

    A corrected sentence stays in its place: a row of its table, an item of its list.
    """
    revised = {one.id: one for one in revision.sentences}
    number = 0
    if draft.answer.strip():
        number = 1
        draft = _revise_answer(draft, revised["s1"]) if "s1" in revised else draft
    sections: list[DraftSection] = []
    for section in draft.sections:
        sentences: list[DraftSentence] = []
        for sentence in section.sentences:
            number += bool(sentence.text.strip())
            new = revised.get(f"s{number}") if sentence.text.strip() else None
            if new is None:
                sentences.append(sentence)
            elif new.text.strip():
                sentences.append(sentence.model_copy(update={"text": new.text, "citations": new.citations}))
        if sentences:
            sections.append(section.model_copy(update={"sentences": tuple(sentences)}))
    return draft.model_copy(update={"sections": tuple(sections)})


def parse_text_revision(text: str, _inputs: RevisionInput) -> DraftRevision | InvalidOutput:
    """Parse corrected sentences as text, one per line."""
    block = parse_whole(text)
    lines = [match for line in (block.text if block else "").splitlines() if (match := _LINE.fullmatch(line.strip()))]
    if not lines:
        return InvalidOutput("There is no line with the number of a sentence, such as s4: The corrected sentence.")
    return DraftRevision(sentences=tuple(_parse_line(match[1], match[2]) for match in lines))


def render_text_revision(output: DraftRevision, _inputs: RevisionInput) -> str:
    return "\n".join(f"{one.id}: {render_cited(one.text, one.citations) or REMOVED}" for one in output.sentences)


def _parse_line(id: str, text: str) -> RevisedSentence:
    text = remove_bold(text.removeprefix("**")).strip()
    if _REMOVAL.fullmatch(text):
        return RevisedSentence(id=id, text="")
    draft = parse_report(f"## {id}\n- {text}", id)
    if isinstance(draft, InvalidOutput) or not draft.sections:
        return RevisedSentence(id=id, text=text)
    sentence = draft.sections[0].sentences[0]
    return RevisedSentence(id=id, text=sentence.text, citations=sentence.citations)


def _revise_answer(draft: ReportDraft, sentence: RevisedSentence) -> ReportDraft:
    """Return the draft with another short answer. Its quotes replace those that the answer had.

    If the writer names only passages, an answer without quotes keeps their ids as markers.
    """
    if draft.answer_citations or any(citation.quote.strip() for citation in sentence.citations):
        return draft.model_copy(update={"answer": sentence.text.strip(), "answer_citations": sentence.citations})
    return draft.model_copy(update={"answer": _add_markers(sentence)})


def _add_markers(sentence: RevisedSentence) -> str:
    """Return the text of a short answer with the ids that it cites, in place of quotes."""
    missing = [c.evidence for c in sentence.citations if not re.search(rf"\b{re.escape(c.evidence)}\b", sentence.text)]
    markers = f" [{', '.join(dict.fromkeys(missing))}]" if missing and sentence.text.strip() else ""
    return f"{sentence.text.strip()}{markers}"


def _list_sentence(sentence: ProblemSentence) -> RevisionSentence:
    problems = tuple(
        RevisionProblem(message=p.message, evidence=p.evidence, excerpt=p.excerpt) for p in sentence.problems
    )
    return RevisionSentence(id=sentence.id, text=sentence.text, citations=sentence.citations, problems=problems)


def _render_sentence(sentence: RevisionSentence) -> str:
    problems = "\n".join(_render_problem(problem) for problem in sentence.problems)
    return f"{sentence.id}: {render_cited(sentence.text, sentence.citations)}\n{problems}"


def _render_problem(problem: RevisionProblem) -> str:
    if not problem.excerpt:
        return f"- {problem.message}"
    return f"- {problem.message} {problem.evidence} says:\n{wrap_untrusted(problem.excerpt)}"


def _render_headline(output: DraftRevision) -> Headline:
    removed = sum(not one.text.strip() for one in output.sentences)
    corrected = len(output.sentences) - removed
    return Headline(f"{corrected} sentences corrected, {removed} removed")


REVISION_TEXT_FORMAT = build_text_format(
    render_revision_prompt, TEXT_FORMAT_RULE, parse_text_revision, render_text_revision
)
