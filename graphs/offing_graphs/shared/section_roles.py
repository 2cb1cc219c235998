"""The calls that write a report section by section, as roles. The engine of the graph's writer answers them."""

from offing.sdk import REPORT_ANSWER_TOKENS, Headline, Role, StepKind, shorten_line
from offing_graphs.shared.schemas import WriterInput
from offing_graphs.shared.section_formats import (
    OPENING_TEXT_FORMAT,
    OUTLINE_TEXT_FORMAT,
    SECTION_TEXT_FORMAT,
    repair_section,
)
from offing_graphs.shared.section_prompts import render_opening_prompt, render_outline_prompt, render_section_prompt
from offing_graphs.shared.section_schemas import Opening, OpeningInput, Outline, SectionInput, WrittenSection


def build_outline_role(name: str) -> Role[WriterInput, Outline]:
    """Return the role with which the engine of a writer is asked for an outline."""
    return Role(
        name,
        WriterInput,
        Outline,
        render_outline_prompt,
        lambda output: Headline(f"{len(output.sections)} sections", shorten_line(output.title)),
        step_kind=StepKind.ROLE_CALL,
        label="outline",
        prompt_formats=(OUTLINE_TEXT_FORMAT,),
    )


def build_section_role(name: str) -> Role[SectionInput, WrittenSection]:
    """Return the role with which the engine of a writer is asked for one section."""
    return Role(
        name,
        SectionInput,
        WrittenSection,
        render_section_prompt,
        _render_section_headline,
        step_kind=StepKind.ROLE_CALL,
        label="section",
        prompt_formats=(SECTION_TEXT_FORMAT,),
        answer_tokens=REPORT_ANSWER_TOKENS,
        repair_output=repair_section,
    )


def build_opening_role(name: str) -> Role[OpeningInput, Opening]:
    """Return the role with which the engine of a writer is asked for title, short answer and limits."""
    return Role(
        name,
        OpeningInput,
        Opening,
        render_opening_prompt,
        lambda output: Headline(shorten_line(output.title), shorten_line(output.answer)),
        step_kind=StepKind.ROLE_CALL,
        label="opening",
        prompt_formats=(OPENING_TEXT_FORMAT,),
    )


def _render_section_headline(output: WrittenSection) -> Headline:
    sentences = [sentence for part in output.parts for sentence in part.sentences]
    words = sum(len(sentence.text.split()) for sentence in sentences)
    return Headline(shorten_line(output.parts[0].heading), f"{len(sentences)} sentences, {words} words")
