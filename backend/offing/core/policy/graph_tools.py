"""Rules about the tools of a graph's own: the only home of how they are named and of what holds without a rule.

The platform knows neither their arguments nor what they do, so no rule is needed for them; those that name one hold.
"""

from offing.core.policy.rules import Policy, Rule

PREFIX = "graph:"


def graph_tool(name: str) -> str:
    """Return the name by which rules mean a tool of the graph's own, which may be called like one of the platform's."""
    return f"{PREFIX}{name}"


def is_graph_tool(named: str) -> bool:
    """Return whether the tool of a rule is one of the graph's own."""
    return named.startswith(PREFIX)


def rules_for_graph_tool(policy: Policy, named: str) -> Policy:
    """Return what a policy says of such a tool: what no allow rule limits is allowed."""
    rules = tuple(rule for rule in policy.rules if rule.tool == named)
    if rules and not any(rule.effect == "allow" for rule in rules):
        rules = (*rules, Rule(tool=named, others=True, copies=True))
    return Policy(rules=rules)
