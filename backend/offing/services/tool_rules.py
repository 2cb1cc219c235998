"""The tool policy that a run starts with: the platform's default, and what its graph brings along.

The only home of the rule for own tools. A graph's declared tools are allowed to its runs alone, within the bounds of
their own argument schemas, if they only read. One that has an effect is refused.
"""

from offing.core.policy import MOST_CALLS, Policy, Rule, default_policy
from offing.core.tool import Effect
from offing.sdk import Graph
from offing.services.graphs import own_tools


def starting_policy(graph: Graph, *, web: bool = False, code: bool = False) -> Policy:
    """Of a run of this graph. `web`, `code`: it was asked with the web, with code."""
    specs = [tool.spec for tool in own_tools(graph) if tool.spec.effect is Effect.PURE]
    rules = (Rule(tool=s.name, others=True, most=MOST_CALLS, name=f"{s.name}: of {graph.name}") for s in specs)
    return Policy(rules=(*default_policy(web=web, code=code).rules, *rules))
