"""The kind of a follow-up that the person left open: a model classifies it, or rules do."""

import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from offing.sdk import (
    FollowUpKind,
    Headline,
    InvalidOutput,
    Message,
    ReportDraft,
    Role,
    StepKind,
    shorten_line,
    wrap_untrusted,
)
from offing_graphs.extractive.analysis import analyze_task
from offing_graphs.extractive.coverage import assess_parts
from offing_graphs.shared.prompt_parts import build_prompt, render_task
from offing_graphs.shared.schemas import FrozenModel, RetrievedPassage, TaskContext
from offing_graphs.shared.tagged_text import build_text_format, parse_tagged, render_tagged, validate_output
from offing_graphs.shared.text_repairs import build_tag_repair

MAX_QUESTION_WORDS = 24
"""Maximum number of words of a question that rules answer from the evidence of the earlier report."""
MAX_OUTLINE_SECTIONS = 40

SYSTEM_PROMPT = (
    "A person has received a research report and now writes a follow-up. Decide what it asks for. question: it asks "
    "something that the report and the passages it was made from are likely to answer, such as an explanation or a "
    "detail. edit: it asks for the same report in another form, and for no new facts: shorter, in another language, "
    "format or tone, or without a section. research: it asks for something that must be looked up anew. If the "
    "follow-up asks for an edit and for new facts, it is research. Do not answer it."
)
TEXT_FORMAT_RULE = """<kind>question, edit or research</kind>
<why>one sentence</why>"""
TAGS = ("kind", "why")

_EDIT_VERB = (
    r"shorten|condense|abridge|compress|trim|translate|rewrite|rephrase|reword|paraphrase|reformat|format|restructure|"
    r"reorder|simplify|proofread|polish|summari[sz]e|convert|turn|drop|remove|delete|omit|cut|leave out|strip"
)
_POLITE = re.compile(
    r"^(?:(?:please|now|ok(?:ay)?|thanks|and|then|just)\b[\s,.!]*|(?:can|could|would|will) you\b\s*(?:please\b)?\s*)+",
    re.IGNORECASE,
)
_EDIT = re.compile(
    rf"^(?:(?:{_EDIT_VERB})\b"
    r"|(?:make|write|put|give|keep|present|show)\b.{0,40}?\b(?:short(?:er)?|brief(?:er)?|concise|simpler|plain(?:er)?|"
    r"formal|informal|friendl(?:y|ier)|bullets?|bullet points|list|table|paragraphs?|prose|words|sentences|tone|"
    r"in (?:german|french|spanish|italian|portuguese|dutch|chinese|japanese|korean|russian|arabic|english))\b"
    r"|in (?:german|french|spanish|italian|portuguese|dutch|chinese|japanese|korean|russian|arabic|english)\b"
    r"|(?:shorter|briefer|simpler|more formal|less formal)\b)",
    re.IGNORECASE,
)
_NEW_FACTS = re.compile(
    r"\b(?:add|also (?:cover|include|look)|include|search|look up|find|research|update|compare|newer|latest|recent)\b",
    re.IGNORECASE,
)


class KindInput(TaskContext):
    """The input of the decision."""

    outline: str
    """Title, short answer and headings of the earlier report."""


class KindChoice(FrozenModel):
    """The decision."""

    kind: Literal["question", "edit", "research"]
    why: str = Field(default="", description="Why, in one sentence.")


def build_kind_role(writer: Role[Any, Any]) -> Role[KindInput, KindChoice]:
    """Return the role with which the engine of a graph's writer classifies a follow-up."""
    return Role(
        writer.name,
        KindInput,
        KindChoice,
        render_kind_prompt,
        lambda output: Headline(f"Kind of the follow-up: {output.kind}", shorten_line(output.why)),
        step_kind=StepKind.ROLE_CALL,
        label="classify",
        prompt_formats=(KIND_TEXT_FORMAT,),
    )


def render_kind_prompt(inputs: KindInput) -> tuple[Message, ...]:
    return build_prompt(
        SYSTEM_PROMPT, (f"The report that the person has:\n{wrap_untrusted(inputs.outline)}", *render_task(inputs))
    )


def render_outline(draft: ReportDraft) -> str:
    """Render the title, the short answer and the headings of a report."""
    headings = [f"- {s.heading} ({len(s.sentences)} sentences)" for s in draft.sections[:MAX_OUTLINE_SECTIONS]]
    return "\n".join([draft.title, shorten_line(draft.answer, 600), *headings])


def choose_kind_by_rules(
    task: TaskContext, draft: ReportDraft, passages: Sequence[RetrievedPassage]
) -> tuple[FollowUpKind, str]:
    """Return the kind by the words of the follow-up, with the reason.

    An edit begins with a word such as shorten or translate. A short question whose parts are covered by the evidence
    of the report is answered from it. Anything else is research.
    """
    if not any(section.sentences for section in draft.sections) and not draft.answer:
        return FollowUpKind.RESEARCH, "The earlier report states nothing."
    if is_edit(task.question):
        return FollowUpKind.EDIT, "It begins with a word that asks for another form of the report."
    parts = analyze_task(task).sub_questions
    if len(task.question.split()) > MAX_QUESTION_WORDS:
        return FollowUpKind.RESEARCH, "It is too long for a question on the report."
    if _NEW_FACTS.search(task.question):
        return FollowUpKind.RESEARCH, "It asks for something new."
    if all(part.covered and part.hits for part in assess_parts(parts, (), passages, ())):
        return FollowUpKind.QUESTION, "The evidence of the report holds the words that it asks about."
    return FollowUpKind.RESEARCH, "The evidence of the report does not cover it."


def is_edit(text: str) -> bool:
    """Return whether a follow-up begins as a request for another form of the report, and asks for nothing new."""
    stripped = _POLITE.sub("", text.strip())
    return bool(_EDIT.match(stripped)) and not _NEW_FACTS.search(stripped)


def parse_kind(text: str, _inputs: KindInput) -> KindChoice | InvalidOutput:
    blocks = parse_tagged(text, TAGS)
    if isinstance(blocks, InvalidOutput):
        return blocks
    return validate_output(KindChoice, {"kind": blocks["kind"].text.strip().lower(), "why": blocks["why"].text})


def render_kind(output: KindChoice, _inputs: KindInput) -> str:
    return render_tagged((("kind", output.kind), ("why", output.why)))


KIND_TEXT_FORMAT = build_text_format(
    render_kind_prompt, TEXT_FORMAT_RULE, parse_kind, render_kind, repair=build_tag_repair(TAGS)
)
