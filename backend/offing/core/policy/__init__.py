"""Whether a run may make a tool call: the tool policy's rules, their order, and what can be proved about them.

Whatever cannot be judged is denied: an argument that the tool does not declare, a value of an unexpected type, a
missing policy. Pure; nothing here reads a prompt or a clock.
"""

from offing.core.policy.checks import Finding, findings
from offing.core.policy.context import FRESH, PolicyContext
from offing.core.policy.copying import NOTHING_SEEN, Seen, copied
from offing.core.policy.deciding import decide
from offing.core.policy.decision import Decision, Replacement, Verdict, denied
from offing.core.policy.defaults import MOST_CALLS, MOST_WEB_CALLS, WORLD_TOOLS, default_policy
from offing.core.policy.graph_tools import graph_tool, is_graph_tool, rules_for_graph_tool
from offing.core.policy.narrowing import Unproven, is_narrower, narrowed, proposed
from offing.core.policy.rules import (
    NOTHING,
    Condition,
    Given,
    Policy,
    Rule,
    Substitute,
    policy_hash,
    policy_of,
)

__all__ = [
    "FRESH",
    "MOST_CALLS",
    "MOST_WEB_CALLS",
    "NOTHING",
    "NOTHING_SEEN",
    "WORLD_TOOLS",
    "Condition",
    "Decision",
    "Finding",
    "Given",
    "Policy",
    "PolicyContext",
    "Replacement",
    "Rule",
    "Seen",
    "Substitute",
    "Unproven",
    "Verdict",
    "copied",
    "decide",
    "default_policy",
    "denied",
    "findings",
    "graph_tool",
    "is_graph_tool",
    "is_narrower",
    "narrowed",
    "policy_hash",
    "policy_of",
    "proposed",
    "rules_for_graph_tool",
]
