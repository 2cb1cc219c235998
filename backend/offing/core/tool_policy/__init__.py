"""The tool policy: rules that decide whether a run may make a tool call, and proofs about these rules.

A call that cannot be decided is denied: for example if it has an undeclared argument or a value of
an unexpected type, or if the tool policy is missing. The package is pure; it reads no prompt and no
clock.
"""

from offing.core.tool_policy.checks import ToolPolicyIssue, find_issues
from offing.core.tool_policy.context import NEW_RUN_CONTEXT, ToolCallContext
from offing.core.tool_policy.copy_detection import NO_SHINGLES, UntrustedShingles, contains_copied_text
from offing.core.tool_policy.decision import DecisionType, ReplacementCall, ToolPolicyDecision, decide, deny
from offing.core.tool_policy.graph_tools import graph_tool_name, is_graph_tool, restrict_to_graph_tool
from offing.core.tool_policy.restriction import (
    UnprovenRestriction,
    apply_restriction,
    find_unproven_restriction,
    parse_restriction,
)
from offing.core.tool_policy.rules import (
    DENY_ALL,
    ArgumentSource,
    Condition,
    Substitute,
    ToolPolicy,
    ToolRule,
    hash_tool_policy,
    parse_stored_policy,
)

__all__ = [
    "DENY_ALL",
    "NEW_RUN_CONTEXT",
    "NO_SHINGLES",
    "ArgumentSource",
    "Condition",
    "DecisionType",
    "ReplacementCall",
    "Substitute",
    "ToolCallContext",
    "ToolPolicy",
    "ToolPolicyDecision",
    "ToolPolicyIssue",
    "ToolRule",
    "UnprovenRestriction",
    "UntrustedShingles",
    "apply_restriction",
    "contains_copied_text",
    "decide",
    "deny",
    "find_issues",
    "find_unproven_restriction",
    "graph_tool_name",
    "hash_tool_policy",
    "is_graph_tool",
    "parse_restriction",
    "parse_stored_policy",
    "restrict_to_graph_tool",
]
