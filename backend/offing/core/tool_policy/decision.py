"""Decide whether a run may make a tool call.

`forbid` takes precedence over `replace`, `replace` over `ask`, and `ask` over `allow`. A call is denied if no rule
allows it, or if the rules cannot be evaluated for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from offing.core.tool import ToolSpec
from offing.core.tool_policy.conditions import UndecidableError, check_args, explain_mismatch
from offing.core.tool_policy.context import NEW_RUN_CONTEXT, ToolCallContext
from offing.core.tool_policy.copy_detection import contains_copied_text, iter_strings
from offing.core.tool_policy.graph_tools import is_graph_tool
from offing.core.tool_policy.hosts_and_paths import find_destination
from offing.core.tool_policy.rules import Condition, RuleEffect, Substitute, ToolPolicy, ToolRule, render_rule_name
from offing.core.url import InvalidUrl, parse_url


class DecisionType(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    """A person decides about exactly this call."""
    REPLACE = "replace"
    """The call is not made; the decision contains the replacement."""


@dataclass(frozen=True, slots=True)
class ReplacementCall:
    """A call in place of another one. It is validated and decided like any other call."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolPolicyDecision:
    """Decision about one tool call."""

    type: DecisionType
    rule: str = ""
    """Name of the rule that decided. Empty means that no rule did."""
    reason: str = ""
    """Reason for a model or a person why the call is not simply allowed.

    For a replacement it is the message that takes the place of a result.
    """
    replacement: ReplacementCall | None = None
    """`None` means that no other call is made."""

    @property
    def is_allowed(self) -> bool:
        """Whether the call may be made at once and without changes."""
        return self.type is DecisionType.ALLOW


def deny(reason: str, rule: str = "") -> ToolPolicyDecision:
    return ToolPolicyDecision(DecisionType.DENY, rule, reason)


def decide(
    tool_policy: ToolPolicy | None, spec: ToolSpec, args: Mapping[str, Any], context: ToolCallContext = NEW_RUN_CONTEXT
) -> ToolPolicyDecision:
    """Decide a tool call. If `tool_policy` is `None`, every call is denied."""
    if tool_policy is None:
        return deny("The run has no valid tool policy.")
    try:
        return _CallEvaluation(spec, args, context).decide(tool_policy)
    except UndecidableError as unjudged:
        return deny(str(unjudged))
    except Exception as error:  # an unexpected error of the evaluation must not allow a call
        return deny(f"The tool policy could not be evaluated ({type(error).__name__}).")


_LEAK_MESSAGE = (
    "It would carry text that was copied from outside to {}, which neither the question nor a search has named. Search "
    "for it first, or write it without what was read."
)
_UNKNOWN_URL_MESSAGE = (
    "{} holds text that was copied from outside, and neither the question nor a search has given this address. Search "
    "for the page, and take its address from the results."
)


class _CallEvaluation:
    """The evaluation of one call in the current state of its run."""

    def __init__(self, spec: ToolSpec, args: Mapping[str, Any], context: ToolCallContext) -> None:
        self._spec, self._args, self._context = spec, args, context

    def decide(self, tool_policy: ToolPolicy) -> ToolPolicyDecision:
        check_args(self._args)
        unknown = [name for name in self._args if name not in self._spec.args.model_fields]
        if unknown and not is_graph_tool(self._spec.name):  # the arguments of such a tool are not known here
            return deny(f"{self._spec.name} has no argument {unknown[0][:100]!r}.")
        rules = [
            (rule, render_rule_name(rule, n))
            for n, rule in enumerate(tool_policy.rules, 1)
            if rule.tool == self._spec.name
        ]
        if met := self._matching_rules(rules, "forbid"):
            rule, name = met[0]
            return deny(f"Rule {name!r} forbids it. {rule.reason}".strip(), name)
        if met := self._matching_rules(rules, "replace"):
            return self._decide_replacement(*met[0])
        if met := self._matching_rules(rules, "ask"):
            return self._decide_approval(met)
        return self._decide_allow(rules)

    def _matching_rules(self, rules: list[tuple[ToolRule, str]], effect: RuleEffect) -> list[tuple[ToolRule, str]]:
        """Return the rules of this effect, other than allow, that match the call. Raises UndecidableError."""
        return [(rule, name) for rule, name in rules if rule.effect == effect and self._matches(rule)]

    def _matches(self, rule: ToolRule) -> bool:
        return self._applies_now(rule) and all(self._is_condition_met(condition) for condition in rule.when)

    def _is_condition_met(self, condition: Condition) -> bool:
        if condition.arg not in self._args:
            return condition.optional
        return not explain_mismatch(condition, self._args[condition.arg], grants=False)

    def _applies_now(self, rule: ToolRule) -> bool:
        return rule.when_tainted is None or rule.when_tainted is self._context.is_tainted

    def _decide_replacement(self, rule: ToolRule, name: str) -> ToolPolicyDecision:
        if self._context.is_substitute:
            return deny(f"It stands in for another call, and rule {name!r} would replace it again.", name)
        if rule.substitute is None:
            return ToolPolicyDecision(DecisionType.REPLACE, name, rule.message)
        return ToolPolicyDecision(DecisionType.REPLACE, name, rule.reason, self._build_replacement(rule.substitute))

    def _build_replacement(self, substitute: Substitute) -> ReplacementCall:
        args = {
            g.arg: self._args[g.from_arg] if g.from_arg else g.value
            for g in substitute.args
            if not g.from_arg or g.from_arg in self._args
        }
        return ReplacementCall(substitute.tool, args)

    def _decide_approval(self, matching: list[tuple[ToolRule, str]]) -> ToolPolicyDecision:
        """Let a person decide if at least one of the rules has not reached its limits."""
        limits = [(self._find_limit(rule), rule, name) for rule, name in matching]
        for limit, rule, name in limits:
            if not limit:
                return ToolPolicyDecision(DecisionType.ASK, name, rule.reason)
        limit, _, name = limits[0]
        return deny(limit, name)

    def _decide_allow(self, rules: list[tuple[ToolRule, str]]) -> ToolPolicyDecision:
        refusals: list[str] = []
        for rule, name in rules:
            if rule.effect == "allow":
                denial = self._find_denial(rule)
                if not denial:
                    return ToolPolicyDecision(DecisionType.ALLOW, name)
                refusals.append(denial)
        return deny(refusals[0] if refusals else f"No rule allows {self._spec.name}.")

    def _find_denial(self, rule: ToolRule) -> str:
        """Return why an allow rule does not admit this call. Empty means that it does."""
        if not self._applies_now(rule):
            return "It is not allowed before, or not after, the run has read text from outside."
        for condition in rule.when:
            if condition.arg not in self._args:
                if not condition.optional:
                    return f"{condition.arg}: it must be given."
            elif problem := _explain_unmet(condition, self._args[condition.arg]):
                return f"{condition.arg}: {problem}"
        return self._find_limit(rule)

    def _find_limit(self, rule: ToolRule) -> str:
        """Return which limit of an allow or ask rule the call exceeds. Empty means that it exceeds none."""
        spec, context = self._spec, self._context
        if rule.max_calls is not None and context.call_counts.get(spec.name, 0) >= rule.max_calls:
            return f"The run may call {spec.name} {rule.max_calls} times, and it has."
        if rule.max_bytes is not None and context.received_bytes.get(spec.name, 0) >= rule.max_bytes:
            return f"{spec.name} may answer {rule.max_bytes} bytes in the run, and it has."
        conditioned = {condition.arg for condition in rule.when}
        loose = [name for name in self._args if name not in conditioned]
        if loose and not rule.allow_other_args:
            return f"{loose[0]}: this argument is not part of what is allowed."
        return "" if rule.allow_copied_text else self._find_leak()

    def _find_leak(self) -> str:
        """Return a message if the call would send copied text to a new destination. Empty means that it would not."""
        if self._context.untrusted_shingles.is_complete and not self._context.untrusted_shingles.shingles:
            return ""
        texts = [text for value in self._args.values() for text in iter_strings(value)]
        destinations = [
            destination_name
            for text in texts
            if (destination_name := find_destination(text, allow_bare=self._spec.sends_data_out)) is not None
        ]
        new = [destination for destination in destinations if destination not in self._context.known_hosts]
        if not new:
            return next((_UNKNOWN_URL_MESSAGE.format(text[:200]) for text in texts if self._is_unknown_url(text)), "")
        if not any(contains_copied_text(text, self._context.untrusted_shingles) for text in texts):
            return ""
        return _LEAK_MESSAGE.format(new[0] or "an address that cannot be read")

    def _is_unknown_url(self, text: str) -> bool:
        """Return whether the text is an unknown address that contains copied untrusted text."""
        target = parse_url(text)
        if isinstance(target, InvalidUrl) or target.url in self._context.known_urls:
            return False
        return contains_copied_text(target.path, self._context.untrusted_shingles)


def _explain_unmet(condition: Condition, value: Any) -> str:
    """Explain why a value does not meet a condition of an allow rule.

    A value that cannot be evaluated does not meet it.
    """
    try:
        return explain_mismatch(condition, value, grants=True)
    except UndecidableError as unjudged:
        return str(unjudged)
