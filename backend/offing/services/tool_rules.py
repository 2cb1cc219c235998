"""The tool policy that a run starts with: the platform's default, and what its graph brings along.

The only home of the rule for own tools. A graph's declared tools are allowed to its runs alone, within the bounds of
their own argument schemas, if they only read. For one that has an effect a person is asked, each time.
"""

from offing.core.policy import MOST_CALLS, Policy, Rule, default_policy
from offing.core.tool import Effect, ToolSpec
from offing.sdk import Graph
from offing.services.graphs import own_tools

MOST_EFFECTS = 64
"""Calls of one own tool with an effect in a run."""

WHY = "It changes something outside the run."


def starting_policy(graph: Graph, *, web: bool = False, code: bool = False) -> Policy:
    """Of a run of this graph. `web`, `code`: it was asked with the web, with code."""
    rules = tuple(_rule(graph, tool.spec) for tool in own_tools(graph))
    return Policy(rules=(*default_policy(web=web, code=code).rules, *rules))


def _rule(graph: Graph, spec: ToolSpec) -> Rule:
    """Any arguments that its schema takes: those were checked before the policy is asked."""
    named = f"{spec.name}: of {graph.name}"
    if spec.effect is Effect.PURE:
        return Rule(tool=spec.name, others=True, most=MOST_CALLS, name=named)
    return Rule(tool=spec.name, effect="ask", others=True, most=MOST_EFFECTS, name=named, reason=WHY)
