"""The graph's one role: what it is given, how it is asked, how its answer shows, who answers without a model."""

import json

from offing.sdk import Headline, Role, StepKind, shortened
from offing_graphs.memact import compact, extractive, plain, rules
from offing_graphs.memact.chat import render
from offing_graphs.memact.shapes import Act, AgentInput


def _headline(output: Act) -> Headline:
    if output.answer:
        return Headline(shortened(f"Answer: {output.answer.answer or output.answer.title}"))
    if output.summary:
        return Headline(shortened(f"Summary: {output.summary}"))
    return Headline(shortened(f"{output.tool}({json.dumps(output.args, ensure_ascii=False, sort_keys=True)})"))


AGENT = Role(
    "agent",
    AgentInput,
    Act,
    render,
    _headline,
    kind=StepKind.TURN,
    label="act",
    extractive=extractive.agent,
    forms=(plain.FORM, compact.FORM),
    rules=rules.RULES,
)
ROLES = (AGENT,)
