"""The compact prompt format of the agent for small models.

The prompt only grows: earlier turns are repeated unchanged, so that a turn continues the
tokens of the turn before.
"""

import re
from collections.abc import Callable, Mapping

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
RenderTurn = Callable[[Turn, AgentInput], str]
"""Renders a turn as an agent with this input would have written it."""
_COMPACT_PATTERN = re.compile(r"\s*(?P<switch>\S+)\s+(?P<subgoal>\S+)\s+(?P<action>\S.*?)\s*", re.DOTALL)
_RELATIONS_BY_WORD = {render_compact_relation(relation): relation for relation in RELATIONS}


def parse_compact_blocks(text: str) -> Blocks | InvalidOutput:
    """Parse KEEP or SWITCH, a relation and an action in compact words."""
    match = _COMPACT_PATTERN.fullmatch(text)
    if match is None:
        return InvalidOutput("Write KEEP or SWITCH, a relation, and an action, such as SWITCH r0 t0 r0 e0.")
    return {tag: Block(match[tag], match.start(tag), match.end(tag)) for tag in TAGS}


def render_compact_prompt(inputs: AgentInput) -> tuple[Message, ...]:
    """Render the question, then each output and its observation as separate messages."""
    return render_prompt(inputs, render_compact_turn, render_observations(inputs))


def render_prompt(inputs: AgentInput, render: RenderTurn, observations: Mapping[int, str]) -> tuple[Message, ...]:
    """Render the question, then each output and its observation by its seq, as separate messages.

    The word `stop` asks for an answer.
    """
    messages = [Message("user", (render_compact_question(inputs.question),))]
    for n, past in enumerate(inputs.past, start=1):
        observed = observations.get(past.seq, "failed")
        last = n == len(inputs.past) and inputs.reason
        messages.append(Message("assistant", (render(past.output, inputs),), turn=past.seq))
        messages.append(Message("user", (f"{observed} stop" if last else observed,)))
    return tuple(messages)


def render_observations(inputs: AgentInput) -> dict[int, str]:
    """Render what each output has led to, by its seq and in the order of the records."""
    names = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    return {
        r.output_seq: CONTINUE_WORD if r.tool in FINAL_ACTIONS else render_compact_observation(r, names)
        for r in inputs.memory
    }


def parse_compact_turn(text: str, inputs: AgentInput) -> Turn | InvalidOutput:
    """Parse a turn whose answer, if it is one, follows from the look-ups."""
    return parse_turn(text, inputs, _parse_action)


def parse_turn(
    text: str, inputs: AgentInput, parse_action: Callable[[str, AgentInput], Action | InvalidOutput]
) -> Turn | InvalidOutput:
    """Parse KEEP or SWITCH, a relation, and an action that `parse_action` parses."""
    blocks = parse_compact_blocks(text)
    if isinstance(blocks, InvalidOutput):
        return blocks
    relation = _RELATIONS_BY_WORD.get(blocks["subgoal"].text)
    action = parse_action(blocks["action"].text, inputs)
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
    return render_turn(output, inputs, lambda action, of: ANSWER if action.is_final else render_call(action, of))


def render_turn(output: Turn, inputs: AgentInput, render_action: Callable[[Action, AgentInput], str]) -> str:
    """Render a turn whose action `render_action` renders."""
    relation = render_compact_relation(output.subgoal.removeprefix(LOOK_UP_PREFIX))
    return f"{output.switch} {relation} {render_action(output.action, inputs)}"


def render_call(action: Action, inputs: AgentInput) -> str:
    """Render a look-up. Raises `InvalidInput` if its entity has not appeared."""
    names = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    return render_compact_call(action.tool, action.args["relation"], action.args["entity"], names)


def parse_call(text: str, inputs: AgentInput) -> Action | InvalidOutput:
    """Parse a look-up."""
    call = read_words(text, build_entity_index(inputs.question, list_learned_facts(inputs.memory)))
    return call if isinstance(call, InvalidOutput) else Action(tool=call.tool, args=dict(call.args))


def find_compact_spans(text: str) -> tuple[CompletionSpan, ...]:
    return spans_from_blocks(parse_compact_blocks(text))


def _parse_action(text: str, inputs: AgentInput) -> Action | InvalidOutput:
    """Parse the action. The planner does not write an answer; its text follows from the look-ups."""
    if text == ANSWER:
        known = list_learned_facts(inputs.memory)
        return Action(tool=ANSWER, report=build_solution_report(inputs.question, known))
    return parse_call(text, inputs)


COMPACT_FORMAT = PromptFormat(
    "compact", render_compact_prompt, parse_compact_turn, find_compact_spans, render_compact_turn
)
