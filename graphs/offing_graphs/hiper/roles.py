"""The graph's one role: how it is asked, how its answer shows, who answers without a model."""

from offing.sdk import Headline, Role, StepKind, shortened
from offing_graphs.hiper import extractive, forms, prompts, rules
from offing_graphs.hiper.shapes import AgentInput, Switch, Turn


def _line(output: Turn) -> Headline:
    action = output.action
    args = ", ".join(f"{name}={value!r}" for name, value in action.args.items())
    said = action.report.answer if action.report else ""
    did = f"{action.tool}: {said}" if action.ends else f"{action.tool}({args})"
    new = output.switch is Switch.SWITCH
    return Headline(shortened(did), shortened(f"new subgoal: {output.subgoal}" if new else f"for: {output.subgoal}"))


AGENT = Role(
    "agent",
    AgentInput,
    Turn,
    prompts.agent,
    _line,
    kind=StepKind.TURN,
    label="act",
    extractive=extractive.agent,
    forms=forms.AGENT,
    rules=rules.AGENT,
)
ROLES = (AGENT,)
