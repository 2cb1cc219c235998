"""The tool policy of a run as it is submitted: the only home of what a person may ask for in place of the default.

A policy of one's own may allow any tool that the run has, within the tool's own argument schema; of an MCP server's
tools no more than the operator allows. What is wrong with it is said before anything is stored.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from offing.core.errors import InvalidInput
from offing.core.policy import Finding, Policy, Rule, Unproven, findings, is_graph_tool, is_narrower
from offing.core.tool import ToolSpec
from offing.mcp.catalogue import Catalogue
from offing.sdk import Graph
from offing.services.graphs import own_tools
from offing.services.tool_rules import starting_policy
from offing.tools import registry
from offing.tools.mcp_tools import mcp_tools

FIELD = "tool_policy"


def policy_of_run(graph: Graph, scope: Mapping[str, Any], wanted: Policy | None, servers: Catalogue) -> Policy:
    """What a new run may do. `wanted` None: the default. Raises InvalidInput that names the first thing wrong."""
    outside = servers.rules(scope.get("mcp", ()))
    if wanted is None:
        start = starting_policy(graph, web=bool(scope.get("web")), code=bool(scope.get("code")))
        return Policy(rules=(*start.rules, *outside))
    specs = known_tools(graph, scope, servers)
    for finding in findings(wanted, specs):
        raise refusal(finding)
    if beyond := is_narrower(wanted, _with_graph_tools(ceiling(specs.values(), outside), wanted)):
        raise _beyond(beyond)
    return wanted


def known_tools(graph: Graph, scope: Mapping[str, Any], servers: Catalogue) -> dict[str, ToolSpec]:
    """Every tool that a run of this scope has, by name."""
    world, web, code = str(scope.get("world", "")), bool(scope.get("web")), bool(scope.get("code"))
    tools = registry(world, web=web, code=code, own=own_tools(graph))
    return {tool.spec.name: tool.spec for tool in (*tools, *mcp_tools(servers.named(scope.get("mcp", ()))))}


def ceiling(specs: Iterable[ToolSpec], outside: Iterable[Rule]) -> Policy:
    """The most that any policy of a run may allow. `outside`: the operator's rules for MCP servers."""
    rules = tuple(outside)
    bound = {rule.tool for rule in rules}
    free = (Rule(tool=spec.name, others=True, copies=True) for spec in specs if spec.name not in bound)
    return Policy(rules=(*rules, *free))


def _with_graph_tools(ceiling: Policy, wanted: Policy) -> Policy:
    """A graph's own tools are free, so that every rule about one allows less."""
    own = sorted({rule.tool for rule in wanted.rules if is_graph_tool(rule.tool)})
    return Policy(rules=(*ceiling.rules, *(Rule(tool=name, others=True, copies=True) for name in own)))


def refusal(finding: Finding) -> InvalidInput:
    return InvalidInput(f"{FIELD}.{finding.field}", f"{finding.rule}: {finding.problem}", finding.remedy)


def _beyond(unproven: Unproven) -> InvalidInput:
    remedy = "Keep to the operator's conditions and limits for this tool, and tighten them."
    return InvalidInput(FIELD, f"{unproven.rule} may allow more of an MCP server than the operator does", remedy)
