"""The compact prompt format of the generator for small models: a short answer and the records that state it.

The prompt is the question and every tool call of the run, such as `m0 t3 r1 e0 result e1`. The completion `answer e1
m0` gives the answer e1 and cites record m0.
"""

from offing.sdk import CompletionSpan, InvalidOutput, Message, PromptFormat, ReportDraft, SpanKind
from offing_graphs.shared.schemas import MemoryRecord, WriterInput
from offing_world.compact_answer import (
    CitableRecord,
    list_citable_records,
    parse_cited_report,
    render_cited_report,
)
from offing_world.compact_notation import (
    MAX_RECORDS,
    EntityIndex,
    build_entity_index,
    render_compact_call,
    render_compact_question,
)
from offing_world.lookup_rules import list_learned_facts, list_record_facts, render_compact_observation
from offing_world.semantics import RELATIONS, TOOLS

RESULT = "result"


def list_shown_records(inputs: WriterInput) -> tuple[MemoryRecord, ...]:
    """Return the latest records, as many as there are words. The position of a record is its word."""
    return inputs.memory[-MAX_RECORDS:]


def render_prompt(inputs: WriterInput) -> tuple[Message, ...]:
    """Render the question and the calls with their results, oldest first, in one message."""
    names = _build_entity_index(inputs)
    records = (_render_record(n, record, names) for n, record in enumerate(list_shown_records(inputs)))
    return (Message("user", (" ".join((render_compact_question(inputs.question), *records)),)),)


def parse_report(text: str, inputs: WriterInput) -> ReportDraft | InvalidOutput:
    """Parse `answer`, the words of the answer, and the words of records with a result, each at most once."""
    return parse_cited_report(text.split(), inputs.question, _list_citable(inputs), _build_entity_index(inputs))


def render_report(output: ReportDraft, inputs: WriterInput) -> str:
    """Render a report as compact words.

    Raises `InvalidInput` if it has a sentence that no record states, or an answer without words.
    """
    return render_cited_report(output, _list_citable(inputs), _build_entity_index(inputs))


def find_spans(text: str) -> tuple[CompletionSpan, ...]:
    """Return one span for the whole completion."""
    stripped = text.strip()
    start = text.find(stripped)
    return (CompletionSpan(SpanKind.ANSWER, start, start + len(stripped)),) if stripped else ()


def _build_entity_index(inputs: WriterInput) -> EntityIndex:
    names = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    called = (record.args.get("entity") for record in list_shown_records(inputs))
    return names.with_entities(entity for entity in called if isinstance(entity, str))


def _list_citable(inputs: WriterInput) -> tuple[CitableRecord, ...]:
    """Return the shown records. One whose call failed cannot be cited."""
    return list_citable_records(list_record_facts(record) for record in list_shown_records(inputs))


def _render_record(number: int, record: MemoryRecord, names: EntityIndex) -> str:
    """Render a record. A call that has no words is shown as its result alone."""
    relation, entity = record.args.get("relation"), record.args.get("entity")
    has_words = record.tool in TOOLS and relation in RELATIONS and entity in names.entities
    call = (render_compact_call(record.tool, str(relation), str(entity), names),) if has_words else ()
    return " ".join((f"m{number}", *call, RESULT, render_compact_observation(record, names)))


COMPACT_FORMAT = PromptFormat("compact", render_prompt, parse_report, find_spans, render_report)
