"""The tool policy of a submitted run: the default, or one that the user has passed.

A user's policy may allow any tool of the run within the tool's argument schema. For the tools of an MCP server it may
allow no more than the operator does. An invalid policy is rejected before anything is stored.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from offing.core.errors import InvalidInput
from offing.core.tool import SideEffect, ToolSpec
from offing.core.tool_policy import (
    ToolPolicy,
    ToolPolicyIssue,
    ToolRule,
    UnprovenRestriction,
    find_issues,
    find_unproven_restriction,
    is_graph_tool,
)
from offing.mcp.server_registry import McpServerRegistry
from offing.sdk import Graph
from offing.services.graphs import custom_tools_of
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy
from offing.tools.mcp_tools import create_mcp_tools
from offing.tools.platform_tool import MAX_CALLS

FIELD = "tool_policy"


def build_tool_policy(
    graph: Graph, scope: Mapping[str, Any], requested: ToolPolicy | None, servers: McpServerRegistry
) -> ToolPolicy:
    """Return the tool policy of a new run. If `requested` is `None`, it is the default.

    Raises InvalidInput with the first issue.
    """
    outside = servers.build_rules(scope.get("mcp", ()))
    if requested is None:
        start = build_default_tool_policy(graph, web=bool(scope.get("web")), code=bool(scope.get("code")))
        return ToolPolicy(rules=(*start.rules, *outside))
    specs = list_tool_specs(graph, scope, servers)
    for finding in find_issues(requested, specs):
        raise error_from_issue(finding)
    if beyond := find_unproven_restriction(
        requested, _add_graph_tools(build_ceiling(specs.values(), outside), requested)
    ):
        raise _beyond_ceiling_error(beyond)
    return requested


def list_tool_specs(graph: Graph, scope: Mapping[str, Any], servers: McpServerRegistry) -> dict[str, ToolSpec]:
    """Return every tool that a run of this scope has, by name."""
    environment, web, code = str(scope.get("environment", "")), bool(scope.get("web")), bool(scope.get("code"))
    tools = create_tools(environment, web=web, code=code, custom=custom_tools_of(graph))
    return {
        tool.spec.name: tool.spec for tool in (*tools, *create_mcp_tools(servers.require_servers(scope.get("mcp", ()))))
    }


def build_ceiling(specs: Iterable[ToolSpec], mcp_rules: Iterable[ToolRule]) -> ToolPolicy:
    """Return the most permissive tool policy of a run. `mcp_rules` are the operator's rules for MCP servers."""
    rules = tuple(mcp_rules)
    bound = {rule.tool for rule in rules}
    free = (
        ToolRule(tool=spec.name, allow_other_args=True, allow_copied_text=True)
        for spec in specs
        if spec.name not in bound
    )
    return ToolPolicy(rules=(*rules, *free))


def _add_graph_tools(ceiling: ToolPolicy, requested: ToolPolicy) -> ToolPolicy:
    """Add a rule without limits for each of the graph's own tools, so that any rule about one is a restriction."""
    own = sorted({rule.tool for rule in requested.rules if is_graph_tool(rule.tool)})
    return ToolPolicy(
        rules=(*ceiling.rules, *(ToolRule(tool=name, allow_other_args=True, allow_copied_text=True) for name in own))
    )


def error_from_issue(issue: ToolPolicyIssue) -> InvalidInput:
    return InvalidInput(f"{FIELD}.{issue.field}", f"{issue.rule}: {issue.problem}", issue.remedy)


def _beyond_ceiling_error(unproven: UnprovenRestriction) -> InvalidInput:
    remedy = "Use the operator's conditions and limits for this tool, and only tighten them."
    return InvalidInput(
        FIELD, f"{unproven.rule} may allow more calls of an MCP server than the operator allows", remedy
    )


MAX_SIDE_EFFECT_CALLS = 64
"""Maximum number of calls of one custom tool with side effects in a run."""

SIDE_EFFECT_REASON = "It changes something outside the run."


def build_default_tool_policy(graph: Graph, *, web: bool = False, code: bool = False) -> ToolPolicy:
    """Return the default tool policy of a run of this graph.

    `web` and `code` say whether the scope includes them.
    """
    rules = tuple(_rule_for_custom_tool(graph, tool.spec) for tool in custom_tools_of(graph))
    return ToolPolicy(rules=(*default_tool_policy(web=web, code=code).rules, *rules))


def _rule_for_custom_tool(graph: Graph, spec: ToolSpec) -> ToolRule:
    """Return the rule of a custom tool.

    It allows all arguments, because the schema is validated before the tool policy.
    """
    named = f"{spec.name}: of {graph.name}"
    if spec.side_effect is SideEffect.PURE:
        return ToolRule(tool=spec.name, allow_other_args=True, max_calls=MAX_CALLS, name=named)
    return ToolRule(
        tool=spec.name,
        effect="ask",
        allow_other_args=True,
        max_calls=MAX_SIDE_EFFECT_CALLS,
        name=named,
        reason=SIDE_EFFECT_REASON,
    )
