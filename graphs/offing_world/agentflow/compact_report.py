"""The compact prompt format of the generator for small models: a short answer and the records that state it.

The prompt is the question and every tool call of the run, such as `m0 t3 r1 e0 result e1`. The completion `answer e1
m0` gives the answer e1 and cites record m0. Neither follows from a rule: the report has exactly the sentences that the
model cites and the answer that it writes, right or wrong. Words in any other arrangement are rejected.
"""

from collections.abc import Sequence
from itertools import takewhile

from offing.core.errors import InvalidInput
from offing.sdk import (
    CompletionSpan,
    DraftSection,
    DraftSentence,
    InvalidOutput,
    Message,
    PromptFormat,
    ReportDraft,
    SpanKind,
    shorten_line,
)
from offing_graphs.shared.schemas import MemoryRecord, WriterInput
from offing_world.compact_notation import (
    MAX_RECORDS,
    EntityIndex,
    build_entity_index,
    render_compact_call,
    render_compact_question,
    render_compact_values,
)
from offing_world.lookup_rules import (
    UNKNOWN_ANSWER,
    fact_from_record,
    list_learned_facts,
    render_compact_observation,
    render_fact,
)
from offing_world.question_solver import NOT_ANSWERABLE, KnownFact
from offing_world.semantics import RELATIONS, TOOLS

ANSWER, RESULT = "answer", "result"
HEADING = "What was looked up"
FIXED_ANSWERS = (UNKNOWN_ANSWER, NOT_ANSWERABLE)
"""Answers that are written in their own words."""
FORMAT_HELP = f"Write an answer and the records that state it, such as {ANSWER} e1 m0 m2."


def list_shown_records(inputs: WriterInput) -> tuple[MemoryRecord, ...]:
    """Return the latest records, as many as there are words. The position of a record is its word."""
    return inputs.memory[-MAX_RECORDS:]


def build_cited_report(question: str, answer: str, cited: Sequence[KnownFact]) -> ReportDraft:
    """Return the report that states the answer and one sentence per cited record."""
    sentences = tuple(DraftSentence(text=render_record_fact(fact)) for fact in cited)
    sections = (DraftSection(heading=HEADING, sentences=sentences),) if sentences else ()
    return ReportDraft(title=shorten_line(question, 120), answer=answer, sections=sections)


def render_record_fact(fact: KnownFact) -> str:
    """Render what a tool returned. A tool that cannot answer does not say that there is nothing."""
    if fact.values or fact.closed:
        return render_fact(fact)
    return f"{fact.relation} of {fact.entity}: the tool returned nothing."


def render_prompt(inputs: WriterInput) -> tuple[Message, ...]:
    """Render the question and the calls with their results, oldest first, in one message."""
    names = _build_entity_index(inputs)
    records = (_render_record(n, record, names) for n, record in enumerate(list_shown_records(inputs)))
    return (Message("user", (" ".join((render_compact_question(inputs.question), *records)),)),)


def parse_report(text: str, inputs: WriterInput) -> ReportDraft | InvalidOutput:
    """Parse `answer`, the words of the answer, and the words of records with a result, each at most once."""
    words = text.split()
    if words[:1] != [ANSWER]:
        return InvalidOutput(FORMAT_HELP)
    answer_words = list(takewhile(lambda word: word[:1] != "m", words[1:]))
    answer = _parse_answer(answer_words, _build_entity_index(inputs))
    if isinstance(answer, InvalidOutput):
        return answer
    cited = _parse_citations(words[1 + len(answer_words) :], inputs)
    if isinstance(cited, InvalidOutput):
        return cited
    return build_cited_report(inputs.question, answer, cited)


def render_report(output: ReportDraft, inputs: WriterInput) -> str:
    """Render a report as compact words.

    Raises `InvalidInput` if it has a sentence that no record states, or an answer without words.
    """
    names = _build_entity_index(inputs)
    texts = [
        () if fact is None else (render_record_fact(fact), render_fact(fact)) for fact in _list_record_facts(inputs)
    ]
    sentences = [sentence.text for section in output.sections for sentence in section.sentences]
    if unknown := [text for text in sentences if not any(text in one for one in texts)]:
        raise InvalidInput("sections", f"No record states {unknown[0][:60]!r}", "Write sentences of records only")
    free = list(enumerate(texts))
    cited: list[str] = []
    for text in sentences:
        entry = next((one for n in (1, 2) for one in free if text in one[1][:n]), None)
        if entry is None:
            raise InvalidInput("sections", f"{text[:60]!r} is stated too often", "Cite a record once")
        free.remove(entry)
        cited.append(f"m{entry[0]}")
    return " ".join((ANSWER, _render_answer(output.answer, names), *cited))


def find_spans(text: str) -> tuple[CompletionSpan, ...]:
    """Return one span for the whole completion."""
    stripped = text.strip()
    start = text.find(stripped)
    return (CompletionSpan(SpanKind.ANSWER, start, start + len(stripped)),) if stripped else ()


def _build_entity_index(inputs: WriterInput) -> EntityIndex:
    names = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    called = (record.args.get("entity") for record in list_shown_records(inputs))
    return names.with_entities(entity for entity in called if isinstance(entity, str))


def _list_record_facts(inputs: WriterInput) -> list[KnownFact | None]:
    """Return the fact of each shown record. `None` means that its call failed, so it cannot be cited."""
    return [fact_from_record(r) if r.status == "ok" else None for r in list_shown_records(inputs)]


def _render_record(number: int, record: MemoryRecord, names: EntityIndex) -> str:
    """Render a record. A call that has no words is shown as its result alone."""
    relation, entity = record.args.get("relation"), record.args.get("entity")
    has_words = record.tool in TOOLS and relation in RELATIONS and entity in names.entities
    call = (render_compact_call(record.tool, str(relation), str(entity), names),) if has_words else ()
    return " ".join((f"m{number}", *call, RESULT, render_compact_observation(record, names)))


def _parse_answer(words: Sequence[str], names: EntityIndex) -> str | InvalidOutput:
    text = " ".join(words)
    if text in FIXED_ANSWERS:
        return text
    if words and all(len(word) == 1 and word in "0123456789" for word in words):
        number = "".join(words)
        return number if number == str(int(number)) else InvalidOutput(f"{text[:20]!r} is no number. {FORMAT_HELP}")
    by_word = {names.entity_word(entity): entity for entity in names.entities}
    if not words or len(set(words)) < len(words) or any(word not in by_word for word in words):
        return InvalidOutput(f"{text[:40]!r} is no answer. {FORMAT_HELP}")
    return ", ".join(by_word[word] for word in words)


def _render_answer(answer: str, names: EntityIndex) -> str:
    if answer in FIXED_ANSWERS:
        return answer
    return render_compact_values(answer.split(", "), names)


def _parse_citations(words: Sequence[str], inputs: WriterInput) -> list[KnownFact] | InvalidOutput:
    facts = {f"m{n}": fact for n, fact in enumerate(_list_record_facts(inputs)) if fact is not None}
    if wrong := next((word for word in words if word not in facts), None):
        return InvalidOutput(f"{wrong[:20]!r} is no record with a result. {FORMAT_HELP}")
    if len(set(words)) < len(words):
        return InvalidOutput(f"A record is cited twice. {FORMAT_HELP}")
    return [facts[word] for word in words]


COMPACT_FORMAT = PromptFormat("compact", render_prompt, parse_report, find_spans, render_report)
