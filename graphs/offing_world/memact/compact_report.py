"""The prompt format `compact-report` of the agent: as `compact`, and the agent writes its report, too.

`answer e1 m0 summary` gives the answer e1 and cites record m0 and the summary. A note states what the agent has noted.
"""

from offing.sdk import InvalidOutput, Message, PromptFormat
from offing_graphs.memact.schemas import Act, AgentInput
from offing_world.compact_answer import ANSWER, CitableRecord, list_citable_records, parse_cited_report
from offing_world.compact_answer import render_cited_report as render_cited
from offing_world.lookup_rules import UNKNOWN_ANSWER
from offing_world.memact import compact_format
from offing_world.memact.facts import list_record_facts, parse_facts


def render_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    """Render the question, then each action and its observation."""
    return compact_format.render_prompt(inputs, render_action)


def render_action(action: Act, inputs: AgentInput) -> str:
    """Render an action in compact words.

    Raises `InvalidInput` if the action names something that has no word, or states what no record states.
    """
    if action.answer is None:
        return compact_format.render_action(action, inputs)
    return render_cited(action.answer, _list_citable(inputs), compact_format.build_context_index(inputs))


def parse_action(text: str, inputs: AgentInput) -> Act | InvalidOutput:
    """Parse exactly one action."""
    words = text.split()
    if words[:1] != [ANSWER]:
        return compact_format.parse_action(text, inputs)
    names = compact_format.build_context_index(inputs)
    report = parse_cited_report(words, inputs.question, _list_citable(inputs), names)
    if isinstance(report, InvalidOutput):
        return report
    act = Act(answer=report, found=report.answer != UNKNOWN_ANSWER)
    return act if render_action(act, inputs) == text else act.model_copy(update={"written": text})


def _list_citable(inputs: AgentInput) -> tuple[CitableRecord, ...]:
    return list_citable_records(map(list_record_facts, inputs.records), parse_facts(inputs.summary))


COMPACT_REPORT_FORMAT = PromptFormat(
    "compact-report", render_prompt, parse_action, compact_format.find_spans, render_action
)
