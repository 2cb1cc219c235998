"""Prompts of the calls that write a report section by section: the outline, one section, and the opening."""

from collections.abc import Iterable, Sequence

from offing.sdk import UNTRUSTED_BLOCK_RULE, DraftSection, DraftSentence, Message, shorten_line, wrap_untrusted
from offing_graphs.shared.prompt_parts import (
    ShownPassages,
    build_prompt,
    render_analysis,
    render_open_parts,
    render_passages,
    render_task,
)
from offing_graphs.shared.prompt_room import PromptRoom, compute_room
from offing_graphs.shared.report_blocks import collapse_white_space
from offing_graphs.shared.report_style import WRITING_RULES, render_report_style
from offing_graphs.shared.schemas import MemoryRecord, RetrievedPassage, WriterInput
from offing_graphs.shared.section_schemas import (
    MAX_SECTIONS,
    Opening,
    OpeningInput,
    Outline,
    SectionInput,
    WrittenSection,
)

MAX_OUTLINE_EVIDENCE_CHARS = 48_000
MAX_SECTION_EVIDENCE_CHARS = 32_000
"""Maximum number of characters of the passages in one prompt, where the window of the model is unknown."""
MAX_OUTLINE_EVIDENCE_TOKENS = 96_000
MAX_SECTION_EVIDENCE_TOKENS = 48_000
"""Maximum estimated tokens of the passages in one prompt, however large the window is."""
MAX_INDEX_LINE_CHARS = 140
"""Maximum number of characters of a passage in the index."""

OUTLINE_PROMPT = (
    "You plan a report that answers a question from retrieved passages. It is written section by section: each section "
    "by someone who sees only the passages that you name for it. Say for each section its heading, what it answers, "
    "and the ids of all passages that it needs; a passage may serve several sections. Give every part of the question "
    "its place, in the order in which a reader asks. Where things are compared, or where passages disagree, one "
    f"section has both sides. Plan as many sections as the passages fill, at most {MAX_SECTIONS}; a section of less "
    "than two paragraphs belongs to another one. Do not plan an introduction or a summary: the short answer is written "
    "afterwards and stands above the sections."
)
SECTION_PROMPT = (
    "You write one section of a report from retrieved passages and from nothing else. Every statement of fact cites at "
    "least one passage by its id and copies from it, letter by letter, the words that carry the statement; the copied "
    "words are checked against the stored text. The other sections are written by others at the same time: write what "
    f"this section answers and nothing else, without an introduction or a summary. {WRITING_RULES}"
)
OPENING_PROMPT = (
    "You write what stands above the finished sections of a report: its title, and the short answer to the question. "
    "Answer directly, in a few sentences, with the numbers that matter and with what is contested. State nothing that "
    "the sections do not state, and put behind each statement the ids of the passages that the sections cite for it, "
    "like [E3]. Then say in a few sentences what could not be established. Do not write or repeat sections. Write in "
    "the language of the sections."
)


def render_outline_prompt(inputs: WriterInput) -> tuple[Message, ...]:
    values = _render_values(list_values(inputs.memory))
    before = (
        *render_task(inputs),
        *render_report_style(inputs.report_style),
        render_analysis(inputs.analysis),
        *values,
    )
    after = (*render_open_parts(inputs.open_parts), _render_reason(inputs.reason))
    room = compute_room(inputs.context_tokens, Outline, (OUTLINE_PROMPT, UNTRUSTED_BLOCK_RULE, *before, *after))
    index, passages = _render_evidence(inputs, room)
    return build_prompt(OUTLINE_PROMPT, (*before, *index, *passages.parts, *after), passages.omitted)


def render_section_prompt(inputs: SectionInput) -> tuple[Message, ...]:
    headings = "\n".join(f"{number}. {one}" for number, one in enumerate(inputs.headings, start=1))
    style = render_report_style(inputs.report_style, shows_length=False)
    report = f"The report: {inputs.title}\nIts sections:\n{headings}"
    before = (*render_task(inputs), *style, report, *_render_values(inputs.values))
    request = _render_request(inputs)
    room = compute_room(inputs.context_tokens, WrittenSection, (SECTION_PROMPT, UNTRUSTED_BLOCK_RULE, *before, request))
    allowance = room.allow(MAX_SECTION_EVIDENCE_CHARS, MAX_SECTION_EVIDENCE_TOKENS)
    passages = render_passages((inputs.heading, inputs.answers), inputs.passages, allowance)
    return build_prompt(SECTION_PROMPT, (*before, *passages.parts, request), passages.omitted)


def render_opening_prompt(inputs: OpeningInput) -> tuple[Message, ...]:
    """Render the prompt of the opening. Sections that do not fit are cut at their end, and the prompt says so."""
    style = render_report_style(inputs.report_style, shows_length=False)
    limits = "\n".join(f"- {one}" for one in inputs.limits)
    gaps = (f"What the writers of the sections could not establish:\n{wrap_untrusted(limits)}",) if limits else ()
    before = (*render_task(inputs), *style)
    after = (*gaps, _render_reason(inputs.reason))
    room = compute_room(inputs.context_tokens, Opening, (OPENING_PROMPT, UNTRUSTED_BLOCK_RULE, *before, *after))
    return build_prompt(OPENING_PROMPT, (*before, *_render_sections(inputs.sections, room), *after))


def list_values(memory: Iterable[MemoryRecord]) -> tuple[str, ...]:
    """Return the results of tool calls that are not passages, one per line."""
    return tuple(f"{record.sub_goal}: {record.value}" for record in memory if record.value)


def _render_values(values: Sequence[str]) -> tuple[str, ...]:
    return (f"Other results of the run:\n{wrap_untrusted(chr(10).join(values))}",) if values else ()


def _render_reason(reason: str) -> str:
    return f"Collecting has ended; the reason is: {reason.replace('_', ' ')}."


def _render_request(inputs: SectionInput) -> str:
    answers = f" It answers: {inputs.answers}" if inputs.answers else ""
    size = f"At most {inputs.max_words:,} words, and fewer if the passages do not say as much."
    return f"Write section {inputs.number}, \u201c{inputs.heading}\u201d.{answers} {size}"


def _render_evidence(inputs: WriterInput, room: PromptRoom) -> tuple[tuple[str, ...], ShownPassages]:
    """Render the passages, after an index of all of them if not all can be shown."""
    questions, first_ids = (inputs.question, *inputs.analysis.sub_questions), (*inputs.covering, *inputs.quoted)
    allowance = room.allow(MAX_OUTLINE_EVIDENCE_CHARS, MAX_OUTLINE_EVIDENCE_TOKENS)
    passages = render_passages(questions, inputs.evidence, allowance, inputs.left_out_passages, first_ids)
    if passages.omitted <= inputs.left_out_passages:
        return (), passages
    index = ("Index of all passages:\n" + wrap_untrusted("\n".join(map(_render_index_line, inputs.evidence))),)
    allowance = room.without(index).allow(MAX_OUTLINE_EVIDENCE_CHARS, MAX_OUTLINE_EVIDENCE_TOKENS)
    return index, render_passages(questions, inputs.evidence, allowance, inputs.left_out_passages, first_ids)


def _render_index_line(passage: RetrievedPassage) -> str:
    location = f"{passage.title} \u203a {passage.heading}" if passage.heading else passage.title
    return shorten_line(f"{passage.id} {location}: {collapse_white_space(passage.text)}", MAX_INDEX_LINE_CHARS)


def _render_sections(sections: Sequence[DraftSection], room: PromptRoom) -> tuple[str, ...]:
    """Render the sections as the model's own text, with the ids that they cite and without the copied words."""
    whole = [_render_section(section, len(section.sentences)) for section in sections]
    if room.tokens is None or room.without(whole).tokens:
        return ("The sections:", *whole)
    max_sentences = max((len(one.sentences) for one in sections), default=0)
    shorter = whole
    while max_sentences > 1 and not room.without(shorter).tokens:
        max_sentences -= 1
        shorter = [_render_section(section, max_sentences) for section in sections]
    return (f"The sections, of which only the first {max_sentences} sentences are shown, for lack of room:", *shorter)


def _render_section(section: DraftSection, max_sentences: int) -> str:
    lines = [_render_sentence(one) for one in section.sentences[:max_sentences]]
    return f"## {collapse_white_space(section.heading)}\n{wrap_untrusted(chr(10).join(lines))}"


def _render_sentence(sentence: DraftSentence) -> str:
    ids = dict.fromkeys(citation.evidence for citation in sentence.citations)
    return " ".join([collapse_white_space(sentence.text), *(f"[{id}]" for id in ids)])
