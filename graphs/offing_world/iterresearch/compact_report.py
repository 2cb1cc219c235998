"""The prompt format `compact-report` of the researcher: the researcher writes its report in every round.

`report r1 e0 e5 action t3 r1 e5` keeps one fact and makes a look-up, and `report r1 e0 e5 answer e5 m0` ends the
work with the answer e5, which cites the first fact of that report. What a report leaves out is lost: the next prompt
shows the facts of the last report and the last result, and no rule adds any.
"""

import re
from collections.abc import Sequence

from offing.sdk import CompletionSpan, InvalidOutput, Message, PromptFormat, SpanKind
from offing_graphs.iterresearch.schemas import Round, TurnPhase, Workspace
from offing_world.compact_answer import (
    ANSWER,
    CitableRecord,
    list_citable_records,
    parse_cited_report,
    render_cited_report,
)
from offing_world.compact_facts import parse_compact_facts, render_compact_facts
from offing_world.compact_notation import (
    EntityIndex,
    build_entity_index,
    parse_compact_call,
    render_compact_call,
)
from offing_world.iterresearch.compact_format import render_workspace
from offing_world.iterresearch.rule_roles import (
    build_answer_output,
    build_look_up_output,
    list_new_facts,
    parse_report_facts,
)
from offing_world.question_solver import KnownFact, LookUp

REPORT, ACTION = "report", "action"
_OUTCOME_PATTERN = re.compile(rf"(?<!\S)({ACTION}|{ANSWER})(?!\S)")
FORMAT_HELP = f"Write {REPORT}, the facts to keep, and {ACTION} t0 r0 e0, or {ANSWER} e1 m0."


def render_prompt(inputs: Workspace) -> tuple[Message, ...]:
    """Render the question, the facts of the last report and the last call with its result.

    In the final turn, add `stop`.
    """
    return render_workspace(inputs, parse_report_facts(inputs.report), _build_entity_index(inputs))


def parse_output(text: str, inputs: Workspace) -> Round | InvalidOutput:
    """Parse `report` with facts, then a call or an answer, as the phase of the turn allows."""
    words = text.split()
    end = next((n for n, word in enumerate(words) if word in (ACTION, ANSWER)), None)
    if words[:1] != [REPORT] or end is None:
        return InvalidOutput(FORMAT_HELP)
    facts = parse_compact_facts(words[1:end], _build_entity_index(inputs), FORMAT_HELP)
    if isinstance(facts, InvalidOutput):
        return facts
    return (_parse_answer if words[end] == ANSWER else _parse_call)(words[end:], facts, inputs)


def _parse_answer(words: Sequence[str], facts: tuple[KnownFact, ...], inputs: Workspace) -> Round | InvalidOutput:
    if inputs.phase is TurnPhase.FIRST:
        return InvalidOutput("Nothing is known yet; call a tool.")
    draft = parse_cited_report(words, inputs.question, _list_citable(facts), _build_entity_index(inputs))
    return draft if isinstance(draft, InvalidOutput) else build_answer_output(inputs, facts, draft)


def _parse_call(words: Sequence[str], facts: tuple[KnownFact, ...], inputs: Workspace) -> Round | InvalidOutput:
    if inputs.phase is TurnPhase.FINAL:
        return InvalidOutput(f"No tool can be called any more; write {ANSWER}.")
    call = parse_compact_call(" ".join(words[1:]), _build_entity_index(inputs))
    if isinstance(call, InvalidOutput):
        return call
    return build_look_up_output(inputs, facts, LookUp(call.relation, call.entity), call.tool)


def render_output(output: Round, inputs: Workspace) -> str:
    """Render the output in compact words.

    Raises `InvalidInput` if the call is not a look-up of an entity that has appeared, or the answer states what the
    report does not.
    """
    names, facts = _build_entity_index(inputs), parse_report_facts(output.report)
    report = f"{REPORT} {render_compact_facts(facts, names)}"
    if output.answer is not None:
        return f"{report} {render_cited_report(output.answer, _list_citable(facts), names)}"
    assert output.action is not None, "an output has an action or an answer"
    args = output.action.args
    call = render_compact_call(output.action.tool, str(args.get("relation")), str(args.get("entity")), names)
    return f"{report} {ACTION} {call}"


def find_spans(text: str) -> tuple[CompletionSpan, ...]:
    """Return one span for the report, and one for the call or the answer after it."""
    stripped = text.strip()
    start = text.find(stripped)
    end = start + len(stripped)
    outcome = _OUTCOME_PATTERN.search(text)
    if outcome is None:
        return (CompletionSpan(SpanKind.REPORT, start, end),) if stripped else ()
    kind = SpanKind.ACTION if outcome[0] == ACTION else SpanKind.ANSWER
    report = text[start : outcome.start()].rstrip()
    reported = (CompletionSpan(SpanKind.REPORT, start, start + len(report)),) if report else ()
    return (*reported, CompletionSpan(kind, outcome.start(), end))


def _list_citable(facts: Sequence[KnownFact]) -> tuple[CitableRecord, ...]:
    return list_citable_records((fact,) for fact in facts)


def _build_entity_index(inputs: Workspace) -> EntityIndex:
    return build_entity_index(inputs.question, (*parse_report_facts(inputs.report), *list_new_facts(inputs)))


COMPACT_REPORT_FORMAT = PromptFormat("compact-report", render_prompt, parse_output, find_spans, render_output)
