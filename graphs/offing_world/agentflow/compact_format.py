"""The compact prompt format of the planner for small models.

The prompt only grows: earlier turns are repeated unchanged, so that a turn continues the
tokens of the turn before.
"""

from offing.sdk import InvalidOutput, Message, PromptFormat
from offing_graphs.agentflow.prompts import find_plan_spans
from offing_graphs.agentflow.schemas import PlannerInput
from offing_graphs.shared.schemas import Plan
from offing_world.compact_notation import (
    build_entity_index,
    parse_compact_call,
    render_compact_call,
    render_compact_question,
)
from offing_world.lookup_rules import list_learned_facts, parse_args, render_args, render_compact_observation
from offing_world.question_solver import LookUp


def render_compact_prompt(inputs: PlannerInput) -> tuple[Message, ...]:
    """Render the question, then the output and the observation of each turn as separate messages."""
    names = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    seen = {record.turn: render_compact_observation(record, names) for record in inputs.memory}
    messages = [Message("user", (render_compact_question(inputs.question),))]
    for past in inputs.past:
        messages.append(Message("assistant", (render_compact_plan(past.plan, inputs),), turn=past.seq))
        messages.append(Message("user", (seen.get(past.turn, "failed"),)))
    return tuple(messages)


def parse_compact_plan(text: str, inputs: PlannerInput) -> Plan | InvalidOutput:
    """Parse a tool, a relation and an entity, each as one word."""
    call = parse_compact_call(text, build_entity_index(inputs.question, list_learned_facts(inputs.memory)))
    if isinstance(call, InvalidOutput):
        return call
    return plan_look_up(LookUp(call.relation, call.entity), call.tool)


def render_compact_plan(output: Plan, inputs: PlannerInput) -> str:
    """Render a plan as compact words.

    Raises `InvalidInput` if the plan is not a look-up of an entity that has appeared.
    """
    args = parse_args(output.context)
    names = build_entity_index(inputs.question, list_learned_facts(inputs.memory))
    return render_compact_call(output.tool, args.get("relation", ""), args.get("entity", ""), names)


def plan_look_up(look_up: LookUp, tool: str, why: str = "") -> Plan:
    """Return the plan that makes one look-up."""
    goal = f"Find the {look_up.relation} of {look_up.entity}"
    return Plan(justification=why, context=render_args(look_up), sub_goal=goal, tool=tool)


COMPACT_FORMAT = PromptFormat(
    "compact", render_compact_prompt, parse_compact_plan, find_plan_spans, render_compact_plan
)
