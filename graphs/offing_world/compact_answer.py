"""The compact words in which a small model writes a short answer and the records that state it: `answer e1 m0 m2`.

Neither follows from a rule: the report has exactly the answer that the model writes and the sentences of the records
that it cites, right or wrong. Words in any other arrangement are rejected.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from offing.core.errors import InvalidInput
from offing.sdk import DraftSection, DraftSentence, InvalidOutput, ReportDraft, shorten_line
from offing_world.compact_notation import MAX_ENTITIES, MAX_RECORDS, EntityIndex, render_compact_values
from offing_world.lookup_rules import UNKNOWN_ANSWER, render_fact
from offing_world.question_solver import NOT_ANSWERABLE, KnownFact

ANSWER, SUMMARY = "answer", "summary"
HEADING = "What was looked up"
FIXED_ANSWERS = (UNKNOWN_ANSWER, NOT_ANSWERABLE)
"""Answers that are written in their own words."""
FORMAT_HELP = f"Write an answer and the records that state it, such as {ANSWER} e1 m0 m2."


@dataclass(frozen=True, slots=True)
class CitableRecord:
    """What an answer cites by one word."""

    word: str
    facts: tuple[KnownFact, ...]
    """The facts that it states, at least one. Each becomes a sentence."""


def list_citable_records(
    facts_by_record: Iterable[Sequence[KnownFact]], summary: Sequence[KnownFact] = ()
) -> tuple[CitableRecord, ...]:
    """Return what can be cited: `m0`, `m1` and so on by the position of the record, and `summary`.

    A record without facts cannot be cited, and neither can those for which there are no more words.
    """
    numbered = enumerate(list(facts_by_record)[:MAX_RECORDS])
    records = ((f"m{number}", tuple(facts)) for number, facts in numbered)
    return tuple(CitableRecord(word, facts) for word, facts in ((SUMMARY, tuple(summary)), *records) if facts)


def build_cited_report(question: str, answer: str, cited: Sequence[KnownFact]) -> ReportDraft:
    """Return the report that states the answer and one sentence per cited fact."""
    sentences = tuple(DraftSentence(text=render_record_fact(fact)) for fact in cited)
    sections = (DraftSection(heading=HEADING, sentences=sentences),) if sentences else ()
    return ReportDraft(title=shorten_line(question, 120), answer=answer, sections=sections)


def render_record_fact(fact: KnownFact) -> str:
    """Render what a tool returned. A tool that cannot answer does not say that there is nothing."""
    if fact.values or fact.closed:
        return render_fact(fact)
    return f"{fact.relation} of {fact.entity}: the tool returned nothing."


def parse_cited_report(
    words: Sequence[str], question: str, records: Sequence[CitableRecord], entity_index: EntityIndex
) -> ReportDraft | InvalidOutput:
    """Parse `answer`, the words of the answer, and the words of citable records, each at most once."""
    if not words or words[0] != ANSWER:
        return InvalidOutput(FORMAT_HELP)
    answer_words = list(takewhile(lambda word: word[:1] != "m" and word != SUMMARY, words[1:]))
    answer = _parse_answer(answer_words, entity_index)
    if isinstance(answer, InvalidOutput):
        return answer
    cited = _parse_citations(words[1 + len(answer_words) :], records)
    return cited if isinstance(cited, InvalidOutput) else build_cited_report(question, answer, cited)


def render_cited_report(draft: ReportDraft, records: Sequence[CitableRecord], entity_index: EntityIndex) -> str:
    """Render a report as compact words.

    Raises `InvalidInput` if it has a sentence that no record states, or an answer without words.
    """
    remaining = [sentence.text for section in draft.sections for sentence in section.sentences]
    free, cited = list(records), list[str]()
    while remaining:
        record = _find_record(remaining, free)
        if record is None:
            raise InvalidInput("sections", _explain_sentence(remaining[0], records), "Cite records, each once")
        free.remove(record)
        cited.append(record.word)
        remaining = remaining[len(record.facts) :]
    return " ".join((ANSWER, _render_answer(draft.answer, entity_index), *cited))


def _find_record(sentences: Sequence[str], free: Sequence[CitableRecord]) -> CitableRecord | None:
    """Return a record whose facts are the first sentences. One with exactly their words comes first."""
    for render in (render_record_fact, render_fact):
        for record in free:
            if list(sentences[: len(record.facts)]) == [render(fact) for fact in record.facts]:
                return record
    return None


def _explain_sentence(sentence: str, records: Sequence[CitableRecord]) -> str:
    is_stated = any(sentence in (render_record_fact(fact), render_fact(fact)) for r in records for fact in r.facts)
    return f"{sentence[:60]!r} is stated too often" if is_stated else f"No record states {sentence[:60]!r}"


def _parse_answer(words: Sequence[str], entity_index: EntityIndex) -> str | InvalidOutput:
    text = " ".join(words)
    if text in FIXED_ANSWERS:
        return text
    if words and all(len(word) == 1 and word in "0123456789" for word in words):
        number = "".join(words)
        return number if number == str(int(number)) else InvalidOutput(f"{text[:20]!r} is no number. {FORMAT_HELP}")
    by_word = {entity_index.entity_word(entity): entity for entity in entity_index.entities[:MAX_ENTITIES]}
    if not words or len(set(words)) < len(words) or any(word not in by_word for word in words):
        return InvalidOutput(f"{text[:40]!r} is no answer. {FORMAT_HELP}")
    return ", ".join(by_word[word] for word in words)


def _render_answer(answer: str, entity_index: EntityIndex) -> str:
    if answer in FIXED_ANSWERS:
        return answer
    return render_compact_values(answer.split(", "), entity_index)


def _parse_citations(words: Sequence[str], records: Sequence[CitableRecord]) -> list[KnownFact] | InvalidOutput:
    by_word = {record.word: record.facts for record in records}
    if wrong := next((word for word in words if word not in by_word), None):
        return InvalidOutput(f"{wrong[:20]!r} is no record with a result. {FORMAT_HELP}")
    if len(set(words)) < len(words):
        return InvalidOutput(f"A record is cited twice. {FORMAT_HELP}")
    return [fact for word in words for fact in by_word[word]]
