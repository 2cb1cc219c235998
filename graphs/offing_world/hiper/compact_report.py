"""The prompt format `compact-report` of the agent: as `compact`, and the agent writes its report, too.

Each observation begins with the word of its record, such as `m0 e1`. The turn `KEEP r1 answer e1 m0` gives the answer
e1 and cites record m0.
"""

from offing.sdk import InvalidOutput, Message, PromptFormat
from offing_graphs.hiper.schemas import ANSWER, Action, AgentInput, Turn
from offing_world.compact_answer import CitableRecord, list_citable_records, parse_cited_report, render_cited_report
from offing_world.compact_notation import MAX_RECORDS, EntityIndex, build_entity_index
from offing_world.hiper.compact_format import (
    find_compact_spans,
    parse_call,
    parse_turn,
    render_call,
    render_observations,
    render_prompt,
    render_turn,
)
from offing_world.lookup_rules import list_learned_facts, list_record_facts


def render_report_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    """Render the question, then each output and its observation with the word of its record."""
    words = {record.output_seq: f"m{number} " for number, record in enumerate(inputs.memory[:MAX_RECORDS])}
    observations = {seq: f"{words.get(seq, '')}{text}" for seq, text in render_observations(inputs).items()}
    return render_prompt(inputs, render_report_turn, observations)


def parse_report_turn(text: str, inputs: AgentInput) -> Turn | InvalidOutput:
    """Parse KEEP or SWITCH, a relation, and a call or a report."""
    return parse_turn(text, inputs, _parse_action)


def render_report_turn(output: Turn, inputs: AgentInput) -> str:
    """Render a turn in compact words.

    Raises `InvalidInput` if the turn is neither a look-up of an entity that has appeared nor a report of what the
    records state.
    """
    return render_turn(output, inputs, _render_action)


def _parse_action(text: str, inputs: AgentInput) -> Action | InvalidOutput:
    words = text.split()
    if words[:1] != [ANSWER]:
        return parse_call(text, inputs)
    report = parse_cited_report(words, inputs.question, _list_citable(inputs), _build_entity_index(inputs))
    return report if isinstance(report, InvalidOutput) else Action(tool=ANSWER, report=report)


def _render_action(action: Action, inputs: AgentInput) -> str:
    if action.report is None:
        return render_call(action, inputs)
    return render_cited_report(action.report, _list_citable(inputs), _build_entity_index(inputs))


def _list_citable(inputs: AgentInput) -> tuple[CitableRecord, ...]:
    return list_citable_records(map(list_record_facts, inputs.memory))


def _build_entity_index(inputs: AgentInput) -> EntityIndex:
    return build_entity_index(inputs.question, list_learned_facts(inputs.memory))


COMPACT_REPORT_FORMAT = PromptFormat(
    "compact-report", render_report_prompt, parse_report_turn, find_compact_spans, render_report_turn
)
