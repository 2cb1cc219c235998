"""Decide sample calls with a tool policy, before a run is submitted with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from offing.core.tool import ToolSpec
from offing.core.tool_policy.context import NEW_RUN_CONTEXT, ToolCallContext
from offing.core.tool_policy.decision import DecisionType, ReplacementCall, ToolPolicyDecision, decide
from offing.core.tool_policy.graph_tools import is_graph_tool, restrict_to_graph_tool
from offing.core.tool_policy.rules import ToolPolicy

INVALID = "invalid"
"""Outcome of a call that no tool policy decides, because the tool or its arguments do not exist."""


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What would happen to a sample call at the start of a run."""

    outcome: str
    """A `DecisionType`, or `INVALID`."""
    rule: str
    """Name of the rule that decides. Empty means that no rule does."""
    reason: str
    """Why the call is not simply allowed. Empty if it is."""
    replacement: ReplacementCall | None = None
    """The call that is made instead."""
    then: "TrialOutcome | None" = None
    """What happens to the replacement."""


def try_call(
    tool_policy: ToolPolicy, specs: Mapping[str, ToolSpec], tool: str, args: Mapping[str, Any], *, is_tainted: bool
) -> TrialOutcome:
    """Decide a call as a run does whose limits are not used up.

    `is_tainted` says whether the run has read untrusted text. Which text that is, and therefore whether the call copies
    it, is not known here.
    """
    return _try(tool_policy, specs, tool, args, replace(NEW_RUN_CONTEXT, is_tainted=is_tainted))


def _try(
    tool_policy: ToolPolicy,
    specs: Mapping[str, ToolSpec],
    tool: str,
    args: Mapping[str, Any],
    context: ToolCallContext,
) -> TrialOutcome:
    if is_graph_tool(tool):
        return _try_graph_tool(tool_policy, tool, args, context)
    if tool not in specs:
        return TrialOutcome(INVALID, "", f"The run has no tool {tool[:100]!r}.")
    try:
        complete = specs[tool].args.model_validate(args).model_dump(mode="json")
    except ValidationError as error:
        return TrialOutcome(INVALID, "", _describe_invalid(error))
    decision = decide(tool_policy, specs[tool], complete, context)
    return _describe(decision, tool_policy, specs, context)


def _try_graph_tool(
    tool_policy: ToolPolicy, tool: str, args: Mapping[str, Any], context: ToolCallContext
) -> TrialOutcome:
    """Decide a call of one of the graph's own tools. Without a rule about it, it is allowed."""
    rules = restrict_to_graph_tool(tool_policy, tool)
    if not rules.rules:
        return TrialOutcome(DecisionType.ALLOW, "", "")
    return _describe(decide(rules, ToolSpec(tool, "", BaseModel, "calls"), args, context), rules, {}, context)


def _describe(
    decision: ToolPolicyDecision, tool_policy: ToolPolicy, specs: Mapping[str, ToolSpec], context: ToolCallContext
) -> TrialOutcome:
    instead = decision.replacement
    then = (
        None
        if instead is None
        else _try(tool_policy, specs, instead.tool, instead.args, replace(context, is_substitute=True))
    )
    return TrialOutcome(decision.type, decision.rule, decision.reason, instead, then)


def _describe_invalid(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"The arguments do not fit the tool: {f'{field}: ' if field else ''}{first['msg']}."
