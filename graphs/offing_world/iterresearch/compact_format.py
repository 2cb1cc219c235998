"""The compact prompt format of the researcher for a small planner.

The planner says only which look-up it makes, or that it answers. Rules derive the report
and the answer from the known facts. Each prompt is rebuilt, so that the words of
entities depend only on the question, the report and the last result.
"""

from collections.abc import Sequence

from offing.sdk import CompletionSpan, InvalidOutput, Message, PromptFormat, SpanKind
from offing_graphs.iterresearch.schemas import Round, TurnPhase, Workspace
from offing_world.compact_facts import render_compact_fact
from offing_world.compact_notation import (
    EntityIndex,
    build_entity_index,
    parse_compact_call,
    render_compact_call,
    render_compact_question,
    render_compact_values,
)
from offing_world.iterresearch.rule_roles import build_answer_turn, build_look_up_turn, list_known_facts
from offing_world.question_solver import KnownFact, LookUp, fact_from_call

ANSWER = "answer"


def render_prompt(inputs: Workspace) -> tuple[Message, ...]:
    """Render the question, the known facts and the last call with its result.

    In the final turn, add `stop`.
    """
    return render_workspace(inputs, list_known_facts(inputs), _build_entity_index(inputs))


def render_workspace(inputs: Workspace, known: Sequence[KnownFact], entity_index: EntityIndex) -> tuple[Message, ...]:
    """Render the question, these facts and the last call with its result. In the final turn, add `stop`."""
    facts = (f"known {render_compact_fact(k, entity_index)}" for k in known)
    stop = ("stop",) if inputs.phase is TurnPhase.FINAL else ()
    question = render_compact_question(inputs.question)
    return (Message("user", (question, *facts, *_render_last_call(inputs, entity_index), *stop)),)


def parse_output(text: str, inputs: Workspace) -> Round | InvalidOutput:
    """Parse a tool, a relation and an entity, or `answer`, as the phase of the turn allows."""
    if text.strip() == ANSWER:
        return (
            build_answer_turn(inputs)
            if inputs.phase is not TurnPhase.FIRST
            else InvalidOutput("Nothing is known yet; call a tool.")
        )
    if inputs.phase is TurnPhase.FINAL:
        return InvalidOutput(f"No tool can be called any more; write {ANSWER}.")
    call = parse_compact_call(text, _build_entity_index(inputs))
    return (
        call
        if isinstance(call, InvalidOutput)
        else build_look_up_turn(inputs, LookUp(call.relation, call.entity), call.tool)
    )


def find_spans(text: str) -> tuple[CompletionSpan, ...]:
    """Return one span for the whole completion."""
    stripped = text.strip()
    start = text.find(stripped)
    kind = SpanKind.ANSWER if stripped == ANSWER else SpanKind.ACTION
    return (CompletionSpan(kind, start, start + len(stripped)),) if stripped else ()


def render_output(output: Round, inputs: Workspace) -> str:
    """Render the output in compact words.

    Raises `InvalidInput` if the call is not a look-up of an entity that has appeared.
    """
    if output.action is None:
        return ANSWER
    args = output.action.args
    return render_compact_call(
        output.action.tool, str(args.get("relation")), str(args.get("entity")), _build_entity_index(inputs)
    )


def _build_entity_index(inputs: Workspace) -> EntityIndex:
    return build_entity_index(inputs.question, list_known_facts(inputs))


def _render_last_call(inputs: Workspace, entity_index: EntityIndex) -> tuple[str, ...]:
    """Render the last call with its result.

    Empty means that there was none that the words can express.
    """
    if inputs.action is None or inputs.result is None:
        return ()
    fact = None if inputs.result.message else fact_from_call(inputs.action.args, inputs.result.content)
    if fact is None:
        return ("result failed",)
    words = render_compact_call(inputs.action.tool, fact.relation, fact.entity, entity_index)
    return (f"{words} result {render_compact_values(fact.values, entity_index, closed=fact.closed)}",)


COMPACT_FORMAT = PromptFormat("compact", render_prompt, parse_output, find_spans, render_output)
