"""Rules about a graph's own tools: their names in rules, and the default without a rule.

Their arguments and behavior are unknown to the platform, so they need no rule. A rule that
names one applies.
"""

from offing.core.tool_policy.rules import ToolPolicy, ToolRule

GRAPH_TOOL_PREFIX = "graph:"


def graph_tool_name(name: str) -> str:
    """Return the name of a graph's own tool in rules. A tool of the platform may have the same name."""
    return f"{GRAPH_TOOL_PREFIX}{name}"


def is_graph_tool(tool: str) -> bool:
    """Return whether the tool of a rule is one of the graph's own."""
    return tool.startswith(GRAPH_TOOL_PREFIX)


def restrict_to_graph_tool(tool_policy: ToolPolicy, tool: str) -> ToolPolicy:
    """Return the rules about such a tool.

    Without an allow rule, all its calls that no other rule decides are allowed.
    """
    rules = tuple(rule for rule in tool_policy.rules if rule.tool == tool)
    if rules and not any(rule.effect == "allow" for rule in rules):
        rules = (*rules, ToolRule(tool=tool, allow_other_args=True, allow_copied_text=True))
    return ToolPolicy(rules=rules)
