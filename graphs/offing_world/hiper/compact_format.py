"""The compact prompt format of the agent for small models.

The prompt only grows: earlier turns are repeated unchanged, so that a turn continues the
tokens of the turn before.
"""

import re

from offing.sdk import CompletionSpan, InvalidOutput, Message, PromptFormat
from offing_graphs.hiper.prompts import TAGS, build_turn, spans_from_blocks
from offing_graphs.hiper.schemas import ANSWER, FINAL_ACTIONS, Action, AgentInput, Turn
from offing_graphs.shared.tagged_text import Block, Blocks
from offing_world.compact_notation import (
    build_entity_index,
    render_compact_call,
    render_compact_question,
    render_compact_relation,
)
from offing_world.compact_notation import parse_compact_call as read_words
from offing_world.lookup_rules import build_solution_report, list_learned_facts, render_compact_observation
from offing_world.semantics import RELATIONS

LOOK_UP_PREFIX = "look up "
"""Prefix of a small planner's subgoal, which is one relation of any entity."""
CONTINUE_WORD = "go"
"""Word that a small planner reads after an answer that did not end the run."""
_COMPACT_PATTERN = re.compile(r"\s*(?P<switch>\S+)\s+(?P<subgoal>\S+)\s+(?P<action>\S.*?)\s*", re.DOTALL)
_RELATIONS_BY_WORD = {render_compact_relation(relation): relation for relation in RELATIONS}


def parse_compact_blocks(text: str) -> Blocks | InvalidOutput:
    """Parse KEEP or SWITCH, a relation and an action in compact words."""
    match = _COMPACT_PATTERN.fullmatch(text)
    if match is None:
        return InvalidOutput("Write KEEP or SWITCH, a relation, and an action, such as SWITCH r0 t0 r0 e0.")
    return {tag: Block(match[tag], match.start(tag), match.end(tag)) for tag in TAGS}


def render_compact_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    """Render the question, then each output and its observation as separate messages.

    The word `stop` asks for an answer.
    """
    names = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    seen = {
        r.output_seq: CONTINUE_WORD if r.tool in FINAL_ACTIONS else render_compact_observation(r, names)
        for r in inputs.memory
    }
    messages = [Message("user", (render_compact_question(inputs.question),))]
    for n, past in enumerate(inputs.past, start=1):
        observed = seen.get(past.seq, "failed")
        last = n == len(inputs.past) and inputs.reason
        messages.append(Message("assistant", (render_compact_turn(past.output, inputs),), turn=past.seq))
        messages.append(Message("user", (f"{observed} stop" if last else observed,)))
    return tuple(messages)


def parse_compact_turn(text: str, inputs: AgentInput) -> Turn | InvalidOutput:
    blocks = parse_compact_blocks(text)
    if isinstance(blocks, InvalidOutput):
        return blocks
    relation = _RELATIONS_BY_WORD.get(blocks["subgoal"].text)
    action = _parse_compact_action(blocks["action"].text, inputs)
    if relation is None or isinstance(action, InvalidOutput):
        return (
            action
            if isinstance(action, InvalidOutput)
            else InvalidOutput(f"{blocks['subgoal'].text[:20]!r} is no relation.")
        )
    return build_turn({"switch": blocks["switch"].text, "subgoal": LOOK_UP_PREFIX + relation, "action": action}, inputs)


def render_compact_turn(output: Turn, inputs: AgentInput) -> str:
    """Render a turn in compact words.

    Raises `InvalidInput` if the turn is neither an answer nor a look-up of an entity that has
    appeared.
    """
    relation = render_compact_relation(output.subgoal.removeprefix(LOOK_UP_PREFIX))
    args = output.action.args
    names = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    call = (
        ""
        if output.action.is_final
        else render_compact_call(output.action.tool, args["relation"], args["entity"], names)
    )
    return f"{output.switch} {relation} {call or ANSWER}"


def find_compact_spans(text: str) -> tuple[CompletionSpan, ...]:
    return spans_from_blocks(parse_compact_blocks(text))


def _parse_compact_action(text: str, inputs: AgentInput) -> Action | InvalidOutput:
    """Parse the action. The planner does not write an answer; its text follows from the look-ups."""
    known = list_learned_facts(inputs.memory)
    if text == ANSWER:
        return Action(tool=ANSWER, report=build_solution_report(inputs.question, known))
    call = read_words(text, build_entity_index(inputs.question, known))
    return call if isinstance(call, InvalidOutput) else Action(tool=call.tool, args=dict(call.args))


COMPACT_FORMAT = PromptFormat(
    "compact", render_compact_prompt, parse_compact_turn, find_compact_spans, render_compact_turn
)
